"""A container that dies before any step of a commit: each record counts exactly once."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import FencedError
from homeport.config.settings.sections import SystemConfig
from homeport.container.progress.transaction_plan import Send
from homeport.testing import TestRunner
from homeport.testing.broker import Broker
from homeport.testing.clients import MemoryProducer
from homeport.testing.job_under_test import TaskClass
from tests.unit.testing.counting_job import Count, CountBatch, config, feed

_TASKS = ("Partition 0", "Partition 1")
_KEPT = ("flush", "write-OFFSET", "write-OFFSET-v2", "write-STORE-META")
SYSTEM = SystemConfig.of(Config({"systems.kafka.consumer.bootstrap.servers": "b:1"}), "kafka")


def _commit(*first: str) -> tuple[str, ...]:
    """The steps in memory that follow the ``first``."""
    return (
        *first,
        *(f"send-changelog counts/{task}" for task in _TASKS),
        *("send-checkpoints", "deliver", "commit", "record-committed"),
        *(f"apply counts/{task}" for task in _TASKS),
    )


_FLUSH = tuple(f"{step} counts/{task}" for task in _TASKS for step in _KEPT)
_IN_MEMORY = _commit("end-tasks", "await-broker", "record-ending", "begin", "send-outputs")
_ROCKSDB = _IN_MEMORY + _FLUSH
_AT_ONCE = _commit("end-tasks", "await-broker", "settle-outputs", "record-ending", "begin") + _FLUSH
"""A test compares them with the job's: no job runs while tests are collected."""

_CASES = [
    *(("rocksdb", Count, is_same, step) for is_same in (True, False) for step in _ROCKSDB),
    *(("in-memory", CountBatch, True, step) for step in _IN_MEMORY),
]


@pytest.mark.parametrize(
    ("engine", "more", "steps"),
    [
        ("rocksdb", {}, _ROCKSDB),
        ("in-memory", {}, _IN_MEMORY),
        ("rocksdb", {"task__exactly__once": "false"}, _AT_ONCE),
    ],
)
def test_a_crash_is_tried_before_each_step_there_is(
    engine: str, more: dict[str, str], steps: tuple[str, ...]
) -> None:
    """The lists are the job's own."""
    with TestRunner(config(engine, **more), task=Count, partitions=2) as runner:
        assert runner.commit_steps == steps


def _send(runner: TestRunner, records: int) -> None:
    for n in range(records):
        runner.send("kafka.in", key=f"k{n % 3}", value={"n": 1}, partition=n % 2)


def _is_exact(runner: TestRunner, records: int, *, outputs_once: bool) -> None:
    """Stores, changelogs and checkpoints count every record once; outputs too, or in the end."""
    for partition in (0, 1):
        own = [f"k{n % 3}" for n in range(records) if n % 2 == partition]
        right = {key: own.count(key) for key in set(own)}
        assert dict(runner.store("counts", partition=partition).all()) == right
        assert runner.changelog("counts", partition=partition) == right
        assert runner.checkpoint(partition=partition) == {f"kafka.in.{partition}": len(own) - 1}
    if outputs_once:
        assert len(runner.output("kafka.out")) == records


@pytest.mark.parametrize(("engine", "task", "same_host", "step"), _CASES)
def test_a_crash_before_any_step_counts_every_record_once(
    engine: str, task: TaskClass, *, same_host: bool, step: str
) -> None:
    """In the first transaction and in a later one; on the same host and on another."""
    outputs_once = task is Count
    with TestRunner(config(engine), task=task, partitions=2) as runner:
        for total in (6, 12):
            _send(runner, 6)
            runner.crash_before(step)
            assert not runner.is_running
            runner.restart(same_host=same_host)
            runner.run()
            _is_exact(runner, total, outputs_once=outputs_once)


@pytest.mark.parametrize("step", _AT_ONCE)
def test_with_outputs_at_once_state_is_exact_and_outputs_come_at_least_once(step: str) -> None:
    """What is no part of the transaction may be sent again, and is never missing."""
    keys = config("rocksdb", task__exactly__once="false")
    with TestRunner(keys, task=Count, partitions=2) as runner:
        _send(runner, 6)
        runner.crash_before(step)
        runner.restart()
        runner.run()
        _is_exact(runner, 6, outputs_once=False)
        seen = {(r.key, r.value) for r in runner.output("kafka.out")}
        assert seen == {(b"k0", b"1"), (b"k1", b"1"), (b"k2", b"1")}


def test_what_was_sent_before_a_commit_is_seen_by_nobody() -> None:
    """Records of an open or an aborted transaction are there for readers of all records alone."""
    with TestRunner(config(), task=Count) as runner:
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.crash_before("commit")
        assert len(runner.output("kafka.out", committed=False)) == 1
        assert runner.output("kafka.out") == []
        assert runner.changelog("counts") == {}
        runner.restart()
        assert runner.output("kafka.out") == []
        runner.run()
        assert len(runner.output("kafka.out", committed=False)) == 2
        assert len(runner.output("kafka.out")) == 1


def test_what_was_committed_is_there_though_the_stores_never_had_it() -> None:
    """The changelog brings it to the store."""
    with TestRunner(config("rocksdb"), task=Count) as runner:
        feed(runner, key="a", value={"n": 1})
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.crash_before("record-committed")
        runner.restart()
        assert runner.store("counts").get("a") == 2
        assert runner.run() == 0


def test_a_crash_loses_what_the_stores_had_not_flushed() -> None:
    """Files are as SIGKILL leaves them: a store is not closed, so its memory is not written."""
    with TestRunner(config("rocksdb", task__commit__ms=600_000), task=Count) as runner:
        feed(runner, key="a", value={"n": 1})
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.crash_before("flush counts/Partition 0")
        runner.restart()
        assert runner.restored("counts").records == 1
        assert runner.store("counts").get("a") == 2


def test_a_reader_of_committed_records_waits_for_an_open_transaction() -> None:
    """Behind the first undecided record there is nothing for it, until that is decided."""
    broker = Broker(lambda _topic: 1, lambda: 0)
    old, plain = MemoryProducer(broker, SYSTEM, "old"), broker.partitions("t")[0]
    old.begin()
    old.send([Send("t", b"k", b"1", 0)])
    broker.append("t", b"k", b"2")
    assert [s.value for _, s in plain.read(0)] == []
    assert plain.stable_end == 0
    new = MemoryProducer(broker, SYSTEM, "old")
    assert [s.value for _, s in plain.read(0)] == [b"2"]
    with pytest.raises(FencedError, match="old: fenced by a newer incarnation"):
        old.commit()
    new.begin()
    new.send([Send("t", b"k", b"3", 0)])
    assert new.commit() == {("t", 0): 3}
    assert [s.value for _, s in plain.read(0)] == [b"2", b"3"]
    assert plain.head == 5
