"""A changelog that a Samza job wrote on after its last commit goes back to there, in any crash."""

from __future__ import annotations

import functools
import itertools
import json
import logging
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.incarnation import start_up
from homeport.container.incarnation.changelog_trims import portions
from homeport.container.kafka.checkpoints import Checkpoint, read_whole_checkpoints
from homeport.container.progress.checkpoint import CheckpointKey, encode_key
from homeport.container.progress.transaction_plan import Changes, StoreId
from homeport.container.storage.container_storage import ContainerStorage
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.testing import TestRunner
from homeport.testing.broker import Broker
from homeport.testing.clients import MemoryLog, MemoryProducer
from homeport.testing.memory_container import InjectedCrash
from tests.unit.testing.counting_job import Count, config

PARTITIONS = 2
LOG = "counts-changelog"
FACTORY = "org.apache.samza.storage.KafkaChangelogStateBackendFactory"
BOTH = ("v1", "v2")


def broker_of(runner: TestRunner) -> Broker:
    """The only broker of the job."""
    return runner._around.brokers["kafka"]


def grouper_of(runner: TestRunner) -> str:
    """The grouper's name in the keys of checkpoints."""
    return runner._job.job.ssp_grouper_factory


class SamzaJob:
    """Goes on after all that was committed, as a job of Samza's does; ``end`` is its SIGKILL."""

    def __init__(self, runner: TestRunner) -> None:
        self._runner = runner
        self._log = [Counter(runner.changelog("counts", partition=p)) for p in range(PARTITIONS)]
        self._last = [
            runner.checkpoint(partition=p).get(f"kafka.in.{p}", -1) for p in range(PARTITIONS)
        ]

    def process(self, partition: int, count: int) -> None:
        """So many messages more are counted, and their counts are in the changelog."""
        records = broker_of(self._runner).partitions("in")[partition]
        for _, stored in itertools.islice(records.read(self._last[partition] + 1), count):
            key = (stored.key or b"").decode()
            self._log[partition][key] += 1
            value = struct.pack(">q", self._log[partition][key])
            broker_of(self._runner).append(LOG, stored.key, value, partition=partition)
            self._last[partition] += 1

    def commit(self, partition: int, versions: tuple[str, ...] = BOTH) -> None:
        """Its checkpoint, of each version, as Samza writes it."""
        head = broker_of(self._runner).partitions(LOG)[partition].head
        newest = str(head - 1) if head else None
        log = {"system": "kafka", "partition": str(partition), "stream": LOG}
        own = {**log, "stream": "in", "offset": str(self._last[partition])}
        marker = {
            "version": 1,
            "changelog-ssp": {**log, "partition": partition, "keyBucket": -1},
            "changelog-offset": newest,
        }
        text = f"17-1:{json.dumps(newest).strip(chr(34))}"
        values: dict[str, dict[str, Any]] = {
            "v1": {"in": own, "log": {**log, "offset": text}},
            "v2": {
                "checkpoint-id": "17-1",
                "input-offsets": {f"kafka.in.{partition}": own["offset"]},
                "state-checkpoint-markers": {FACTORY: {"counts": json.dumps(marker)}},
                "version": 2,
            },
        }
        task = TaskName(f"Partition {partition}")
        for version in versions:
            kind = {"v1": "checkpoint", "v2": "checkpoint-v2"}[version]
            key = encode_key(CheckpointKey(grouper_of(self._runner), task, kind))
            value = json.dumps(values[version]).encode()
            broker_of(self._runner).append(self._topic, key, value, partition=0)

    @property
    def _topic(self) -> str:
        return self._runner._job.task.checkpoint_topic


def send(runner: TestRunner, records: int) -> None:
    """They take turns at the partitions and at five keys."""
    for n in range(records):
        runner.send("kafka.in", key=f"k{n % 5}", value={"n": 1}, partition=n % PARTITIONS)


def require_exact(runner: TestRunner, records: int) -> None:
    """Store and changelog count each of so many records once; no checkpoint of Samza's is left."""
    for p in range(PARTITIONS):
        own = Counter[str]()
        for _, stored in broker_of(runner).partitions("in")[p].read(0):
            own[(stored.key or b"").decode()] += 1
        assert dict(runner.store("counts", partition=p).all()) == own
        assert runner.changelog("counts", partition=p) == own
    last = records // PARTITIONS - 1
    tasks = {TaskName(f"Partition {p}") for p in range(PARTITIONS)}
    found = checkpoints(runner)
    assert set(found) == tasks
    for p, task in enumerate(sorted(tasks)):
        assert not found[task].is_samzas
        assert found[task].offsets == {SystemStreamPartition("kafka", "in", p): last}


def checkpoints(runner: TestRunner) -> dict[TaskName, Checkpoint]:
    """Those that a container finds."""
    task = runner._job.task
    tasks = {TaskName(f"Partition {p}") for p in range(PARTITIONS)}
    log = MemoryLog(broker_of(runner))
    return read_whole_checkpoints(log, task.checkpoint_topic, grouper_of(runner), tasks, {})


@contextmanager
def job(engine: str = "rocksdb", **more: object) -> Iterator[TestRunner]:
    """Ten records are counted and committed here; the container is gone, ten more records wait."""
    with TestRunner(config(engine, **more), task=Count, partitions=PARTITIONS) as runner:
        send(runner, 10)
        runner.run()
        runner.crash()
        send(runner, 10)
        yield runner


@pytest.mark.parametrize("engine", ["rocksdb", "in-memory"])
@pytest.mark.parametrize("versions", [BOTH, ("v1",), ("v2",)])
@pytest.mark.parametrize("committed", [0, 3, 5])
def test_what_follows_the_last_commit_is_counted_once(
    engine: str, versions: tuple[str, ...], committed: int
) -> None:
    """All of it, some or nothing; K4: the checkpoints are of either version, or of both."""
    with job(engine) as runner:
        samza = SamzaJob(runner)
        for p in range(PARTITIONS):
            samza.process(p, committed)
            samza.commit(p, versions)
            samza.process(p, 5 - committed)
        runner.restart()
        for p in range(PARTITIONS):
            log = broker_of(runner).partitions(LOG)[p]
            trimmed = [s for _, s in log.read(0) if s.transaction is not None][5:]
            assert len(trimmed) == (5 - committed)
        runner.run()
        require_exact(runner, 20)


def test_a_job_that_has_committed_nothing_but_its_start_begins_with_an_empty_state() -> None:
    """Samza's own next start would keep the state and read all of its input again."""
    with TestRunner(config(), task=Count, partitions=PARTITIONS) as runner:
        runner.crash()
        broker_of(runner)._topics[runner._job.task.checkpoint_topic][0]._records.clear()
        send(runner, 10)
        samza = SamzaJob(runner)
        for p in range(PARTITIONS):
            samza.commit(p)
            samza.process(p, 5)
        runner.restart()
        assert not list(runner.store("counts", partition=0).all())
        runner.run()
        require_exact(runner, 10)


CALLS: list[tuple[type, str]] = [
    *((MemoryProducer, name) for name in ("begin", "send_changes", "send", "deliver", "commit")),
    (ContainerStorage, "follow"),
]


def dying(at: int, before: int, call: Callable[..., object]) -> Callable[..., object]:
    """The call, at whose time number ``at`` the process dies: before it (1) or after it (0)."""
    times = itertools.count()

    def wrapped(*arguments: object, **named: object) -> object:
        time = next(times)
        if before and time == at:
            raise InjectedCrash
        result = call(*arguments, **named)
        if not before and time == at:
            raise InjectedCrash
        return result

    return wrapped


@pytest.mark.parametrize("same_host", [True, False])
@pytest.mark.parametrize("before", [1, 0])
@pytest.mark.parametrize(
    ("owner", "name", "at"),
    [(*call, at) for call in CALLS for at in range(1 if call[1] == "send" else 4)],
)
def test_a_crash_at_any_step_of_the_trim_leaves_it_right(
    owner: type,
    name: str,
    at: int,
    before: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    same_host: bool,
) -> None:
    """In one of several transactions, between two of them, and before the store has it."""
    few = functools.partial(portions, records=1)
    monkeypatch.setattr(start_up, "portions", few)
    with job() as runner:
        samza = SamzaJob(runner)
        for p in range(PARTITIONS):
            samza.process(p, 2)
            samza.commit(p)
            samza.process(p, 2)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying(at, before, getattr(owner, name)))
            with pytest.raises(InjectedCrash):
                runner.restart()
        runner.restart(same_host=same_host)
        runner.run()
        require_exact(runner, 20)


def test_samza_and_we_may_take_turns() -> None:
    """Each goes on after the other's last commit."""
    with job() as runner:
        for turn in range(1, 4):
            samza = SamzaJob(runner)
            samza.process(0, 2)
            samza.commit(0)
            samza.process(0, 1)
            runner.restart(same_host=turn % 2 == 0)
            runner.run()
            require_exact(runner, 10 + 10 * turn)
            runner.restart()  # once it is ours, a checkpoint of Samza's counts no more
            require_exact(runner, 10 + 10 * turn)
            runner.stop()
            send(runner, 10)


def test_a_changelog_that_is_shorter_than_the_checkpoint_has_it_is_refused() -> None:
    """One line names store, offset, changelog, its end, and what to do; nothing is written."""
    with job() as runner:
        samza = SamzaJob(runner)
        samza.process(1, 2)
        samza.commit(1)
        log = broker_of(runner).partitions(LOG)[1]
        del log._records[-1:]
        head = log.head
        with pytest.raises(
            StoreError,
            match=rf"store counts/Partition 1: the state of the last checkpoint ends at offset "
            rf"{head} of kafka.{LOG} partition 1, but it ends at {head}: it was recreated, or has "
            r"lost records; let the Samza job run until its next commit, or .*--reset-state",
        ):
            runner.restart()
        assert log.head == head


def test_a_store_that_the_checkpoint_does_not_name_keeps_its_changelog(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log warns: it may be another job's."""
    with job() as runner:
        samza = SamzaJob(runner)
        samza.process(0, 2)
        samza.commit(0, ("v2",))
        topic = broker_of(runner).partitions(runner._job.task.checkpoint_topic)[0]
        (_, last) = list(topic.read(0))[-1]
        value = (last.value or b"").replace(LOG.encode(), b"elsewhere")
        broker_of(runner).append(runner._job.task.checkpoint_topic, last.key, value, partition=0)
        with caplog.at_level(logging.WARNING):
            runner.restart()
        assert (
            "does not say where SystemStreamPartition [kafka, counts-changelog, 0]" in caplog.text
        )
        runner.run()
        require_exact(runner, 20)


def test_a_doubt_about_compaction_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """The key is new, or its older value is gone; the lag is 0 here, and over at once."""
    with job() as runner:
        runner.send("kafka.in", key="new", value={"n": 1}, partition=0)
        samza = SamzaJob(runner)
        samza.process(0, 5)
        samza.commit(0)
        samza.process(0, 1)
        with caplog.at_level(logging.WARNING):
            runner.restart()
        assert "store counts/Partition 0: of 1 keys that changed behind offset" in caplog.text


CHANGES = Changes(StoreId("s", TaskName("t")), SystemStream("kafka", "log"), 0, {})


def _entries(*sizes: int) -> Changes:
    entries = {b"%d" % n: b"x" * (size - 1) for n, size in enumerate(sizes)}
    return Changes(StoreId("s", TaskName("t")), SystemStream("kafka", "log"), 0, entries)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], [[]]),
        ([CHANGES], [[]]),
        ([_entries(5, 5)], [[2]]),
        ([_entries(5, 5, 1)], [[2], [1]]),
        ([_entries(20), _entries(1)], [[1], [1]]),
        ([_entries(1, 1), _entries(1, 1)], [[2, 1], [1]]),
        ([_entries(9), CHANGES, _entries(2, 1)], [[1], [2]]),
    ],
)
def test_a_transaction_carries_so_many_records_and_bytes(
    changes: list[Changes], expected: list[list[int]]
) -> None:
    """One that is too large by itself goes alone; there is always one transaction."""
    found = portions(changes, records=3, size=10)
    assert [[len(item.entries) for item in part] for part in found] == expected
    together = [pair for part in found for item in part for pair in item.entries.items()]
    assert together == [pair for item in changes for pair in item.entries.items()]
