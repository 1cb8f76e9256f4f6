"""Adjunct stores under the TestRunner: filled by inputs, seen by tasks, kept and restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from homeport.container.callables import TaskFailedError
from homeport.container.processing.records import UndecodableError
from homeport.testing import TestRunner, TestRunnerError
from tests.unit.testing.counting_job import feed
from tests.unit.testing.joining_job import PARTITIONS, Join, Models, config

TASKS = ("Partition 0", "Partition 1")
_EXTRACTOR = f"{Models.__module__}:Models"


def _runner(factory: str = "rocksdb", **more: str) -> TestRunner:
    return TestRunner(config(factory, **more), task=Join, partitions=PARTITIONS)


def _planes(runner: TestRunner, partition: int = 0, **models: str) -> None:
    for tail, model in models.items():
        runner.send("kafka.planes", key=tail, value={"model": model}, partition=partition)


def _airlines(runner: TestRunner, partition: int = 0, **names: str) -> None:
    for airline, name in names.items():
        runner.send("kafka.airlines", key=airline, value=name, partition=partition)


def _fly(runner: TestRunner, tail: str, airline: str, partition: int = 0) -> str:
    feed(runner, "kafka.flights", key=tail, value={"airline": airline}, partition=partition)
    value: str = runner.output("kafka.out")[-1].value
    return value


@pytest.mark.parametrize("factory", ["rocksdb", "in-memory"])
def test_later_messages_see_each_update_of_reference_data(factory: str) -> None:
    """New, changed and deleted entries, of a task's part and of what the container shares."""
    with _runner(factory) as runner:
        assert _fly(runner, "N1", "UA") == "-/-/1"
        _planes(runner, N1="737")
        _airlines(runner, UA="United")
        _airlines(runner, partition=1, AA="American")
        assert _fly(runner, "N1", "UA") == "737/United/2"
        assert _fly(runner, "N1", "AA", partition=1) == "-/American/1"
        _planes(runner, N1="A320")
        runner.send("kafka.airlines", key="UA", value=None, partition=0)
        assert _fly(runner, "N1", "UA") == "A320/-/3"


def test_records_of_adjunct_streams_are_read_once_and_moved_in_every_checkpoint() -> None:
    """The container's store is filled by one of its tasks; all have the offsets, none the rows."""
    with _runner() as runner:
        _airlines(runner, UA="United", AA="American")
        _planes(runner, partition=1, N2="A380")
        assert runner.run() == 3
        assert not runner.output("kafka.out")
        for partition in (0, 1):
            offsets = runner.checkpoint(task=TASKS[partition])
            assert offsets["kafka.airlines.0"] == 1
            assert dict(runner.store("airlines", task=TASKS[partition]).all()) == {
                "AA": "American",
                "UA": "United",
            }
        assert not dict(runner.store("planes", task=TASKS[0]).all())
        assert dict(runner.store("planes", task=TASKS[1]).all()) == {"N2": {"model": "A380"}}


def test_bootstrap_streams_come_before_flights_that_were_there_first() -> None:
    """At the start all that they hold is in the stores before the first flight is seen."""
    with _runner() as runner:
        runner.stop()
        for n in range(3):
            runner.send("kafka.flights", key="N1", value={"airline": "UA"}, partition=n % 2)
        _planes(runner, N1="737")
        _planes(runner, partition=1, N1="A320")
        _airlines(runner, UA="United")
        runner.restart()
        runner.run()
        values = sorted(record.value for record in runner.output("kafka.out"))
        assert values == ["737/United/1", "737/United/2", "A320/United/1"]


def test_a_store_that_is_filled_holds_only_the_task_that_reads_it() -> None:
    """One task has its part to fill, the other one nothing: it works meanwhile, and comes first."""
    with TestRunner(config(), task=Join, partitions=PARTITIONS, batch_rows=1) as runner:
        runner.stop()
        for n in range(4):
            runner.send("kafka.flights", key="N1", value={"airline": "UA"}, partition=n % 2)
        _planes(runner, N2="757", N3="767", N4="777", N1="737")
        runner.restart()
        runner.run()
        values = [record.value for record in runner.output("kafka.out")]
        assert values == ["-/-/1", "-/-/2", "737/-/1", "737/-/2"]


@pytest.mark.parametrize("is_crash", [False, True], ids=["stop", "crash"])
def test_a_restart_on_the_same_host_keeps_what_was_stored(*, is_crash: bool) -> None:
    """Nothing is read again, and what is new is."""
    with _runner() as runner:
        _planes(runner, N1="737", N3="757")
        _airlines(runner, UA="United")
        assert _fly(runner, "N1", "UA") == "737/United/1"
        if is_crash:
            runner.crash()
        runner.restart()
        assert runner.run() == 0
        _planes(runner, N1="A320")
        assert _fly(runner, "N1", "UA") == "A320/United/2"
        assert _fly(runner, "N3", "UA") == "757/United/1"


@pytest.mark.parametrize(
    ("factory", "same_host", "read_again"),
    [("rocksdb", True, 0), ("rocksdb", False, 3), ("in-memory", True, 3)],
)
def test_bootstrap_is_forced_where_no_store_is_found(
    factory: str, *, same_host: bool, read_again: int
) -> None:
    """On another host, and for a store in memory."""
    with _runner(factory) as runner:
        _planes(runner, N1="737")
        _airlines(runner, UA="United", AA="American")
        assert _fly(runner, "N1", "UA") == "737/United/1"
        runner.restart(same_host=same_host)
        assert runner.run() == read_again
        assert _fly(runner, "N1", "AA") == "737/American/2"


@pytest.mark.parametrize(
    ("factory", "same_host", "name"),
    [("rocksdb", True, "United"), ("rocksdb", False, "-"), ("in-memory", True, "-")],
)
def test_without_bootstrap_a_new_store_continues_from_the_last_offset(
    factory: str, *, same_host: bool, name: str
) -> None:
    """The checkpoint counts where there is no store, and only there."""
    with _runner(factory, systems__kafka__streams__airlines__samza__bootstrap="false") as runner:
        _airlines(runner, UA="United")
        assert _fly(runner, "N1", "UA") == "-/United/1"
        runner.restart(same_host=same_host)
        assert runner.run() == 0
        assert _fly(runner, "N1", "UA") == f"-/{name}/2"
        _airlines(runner, AA="American")
        assert _fly(runner, "N1", "AA") == "-/American/3"


@pytest.mark.parametrize(("validity_ms", "read_again"), [("1000", 1), ("60000", 0), ("-1", 0)])
def test_a_store_that_was_not_kept_for_too_long_is_filled_again(
    validity_ms: str, read_again: int
) -> None:
    """By its last flush; what is left of it before is gone."""
    with _runner(stores__planes__adstore__validity__ms=validity_ms) as runner:
        _planes(runner, N1="737")
        runner.run()
        runner.advance(5000)
        runner.crash()
        runner.restart()
        assert runner.run() == read_again
        assert dict(runner.store("planes", task=TASKS[0]).all()) == {"N1": {"model": "737"}}


_STORES = ("airlines/container-0", "planes/Partition_0", "planes/Partition_1")
_OFFSETS = ("flush", "write-OFFSET", "write-OFFSET-v2", "write-STORE-META")
_STEPS = (
    *(f"write-adjunct {store}" for store in _STORES),
    *("end-tasks", "await-broker", "record-ending", "begin", "send-outputs"),
    *(f"send-changelog counts/{task}" for task in TASKS),
    *("send-checkpoints", "deliver", "commit", "record-committed"),
    *(f"apply counts/{task}" for task in TASKS),
    *(f"{step} counts/{task}" for task in TASKS for step in _OFFSETS),
    *(f"{step}-adjunct {store}" for store in _STORES for step in ("flush", "touch")),
)
"""A test compares them with the job's: no job runs while tests are collected."""
_IN_SHORT = ("commit", "write-adjunct planes/Partition_1", "flush-adjunct airlines/container-0")


def test_a_crash_is_tried_before_each_step_there_is() -> None:
    """The list is the job's own."""
    with _runner() as runner:
        assert runner.commit_steps == _STEPS


def test_a_step_that_does_not_come_names_the_stream_that_brings_it() -> None:
    """A record of the job's input alone moves no reference data."""
    with _runner() as runner:
        runner.send("kafka.flights", key="N1", value={"airline": "U0"}, partition=0)
        line = r"Partition_1' did not come: send a record of kafka\.planes, which fills it, before"
        with pytest.raises(TestRunnerError, match=line):
            runner.crash_before("write-adjunct planes/Partition_1")


def _crashes() -> Iterator[Any]:
    for step in _STEPS:
        yield pytest.param(step, True, marks=() if step in _IN_SHORT else pytest.mark.long)
        yield pytest.param(step, False, marks=pytest.mark.long)


@pytest.mark.parametrize(("step", "same_host"), list(_crashes()))
def test_a_crash_before_any_step_recovers(step: str, *, same_host: bool) -> None:
    """Flights count once, and find the reference data that came before them."""
    with _runner() as runner:
        for partition in (0, 1):
            _planes(runner, partition, N1="737")
            _airlines(runner, partition, **{f"U{partition}": "United"})
            runner.send("kafka.flights", key="N1", value={"airline": "U0"}, partition=partition)
        runner.run()
        for partition in (0, 1):
            _planes(runner, partition, N1="A320")
            _airlines(runner, partition, **{f"U{partition}": "Untied"})
            runner.send("kafka.flights", key="N1", value={"airline": "U0"}, partition=partition)
        runner.crash_before(step)
        runner.restart(same_host=same_host)
        runner.run()
        values = sorted(record.value for record in runner.output("kafka.out"))
        assert values == ["737/United/1", "737/United/1", "A320/Untied/2", "A320/Untied/2"]
        for partition in (0, 1):
            assert dict(runner.store("counts", task=TASKS[partition]).all()) == {"N1": 2}
            assert dict(runner.store("planes", task=TASKS[partition]).all()) == {
                "N1": {"model": "A320"}
            }
        assert dict(runner.store("airlines", task=TASKS[1]).all()) == {
            "U0": "Untied",
            "U1": "Untied",
        }


def test_an_extractor_keeps_what_it_makes_of_a_record() -> None:
    """A key that is None is not stored, a value that is None deletes."""
    with _runner(stores__planes__adstore__key__value__extractor__factory=_EXTRACTOR) as runner:
        runner.send("kafka.planes", key="N1", value={"model": "737", "seats": 9}, partition=0)
        runner.send("kafka.planes", key="balloon-1", value={"model": "hot"}, partition=0)
        runner.send("kafka.planes", key="N2", value={"model": "747"}, partition=0)
        feed(runner, "kafka.planes", key="N2", value=None, partition=0)
        assert dict(runner.store("planes", task=TASKS[0]).all()) == {"N1": {"model": "737"}}
        runner.send("kafka.planes", key="N1", value="burst", partition=0)
        with pytest.raises(Exception, match=r"store planes: .*burst found") as caught:
            runner.run()
        assert "\n" not in str(caught.value)


def test_tasks_only_read_an_adjunct_store() -> None:
    """A write is the task's failure, in one line."""
    with _runner() as runner:
        _planes(runner, N1="737")
        with pytest.raises(TaskFailedError, match=r"filled by kafka\.planes alone"):
            _fly(runner, "N1", "write")


_BAD: list[tuple[Mapping[str, Any], str]] = [
    ({"key": None, "value": b"x"}, "it has no key, under which store airlines would keep it"),
    ({"key": b"UA", "value": b"{"}, "store airlines cannot keep it: not JSON"),
    ({"key": b"\x00homeport.parts", "value": b"1"}, "its key is a reserved one"),
]


@pytest.mark.parametrize(("record", "reason"), _BAD)
@pytest.mark.parametrize("drops", [False, True])
def test_a_record_that_cannot_be_stored_is_refused_in_one_line(
    record: Mapping[str, Any], reason: str, *, drops: bool
) -> None:
    """Or goes to the dead letters; what comes with it is stored."""
    more = {
        "systems__kafka__streams__airlines__samza__msg__serde": "json",
        "task__drop__deserialization__errors": str(drops).lower(),
        "systems__kafka__streams__dead__samza__key__serde": "bytes",
        "systems__kafka__streams__dead__samza__msg__serde": "bytes",
    }
    if drops:
        more["task__dead__letter__stream"] = "kafka.dead"
    with _runner(**more) as runner:
        runner.send("kafka.airlines", key="AA", value="American", partition=0)
        runner.send_bytes("kafka.airlines", partition=0, **record)
        if not drops:
            with pytest.raises(UndecodableError, match=reason) as caught:
                runner.run()
            assert "kafka.airlines partition 0 offset 1" in str(caught.value)
            assert "\n" not in str(caught.value)
            return
        runner.run()
        assert dict(runner.store("airlines", task=TASKS[0]).all()) == {"AA": "American"}
        (dead,) = runner.output("kafka.dead")
        assert reason in (dead.headers["homeport.reason"] or b"").decode()


def test_event_time_does_not_wait_for_adjunct_streams() -> None:
    """A task has no part in them: neither its watermark nor its partitions know them."""
    with _runner(task__watermark__lateness__ms="0") as runner:
        feed(runner, "kafka.flights", key="N1", value={"airline": "U"}, partition=0, timestamp=5000)
        container = runner._running()
        (context,) = [c for c in container.contexts.values() if c.task_name == TASKS[0]]
        assert context.partitions == (("kafka", "flights", 0),)
        assert context.scheduler.watermark_ms == 5000
