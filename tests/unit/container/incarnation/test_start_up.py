"""The steps of a container's start, while AM and Kafka come and go."""

from __future__ import annotations

import json
import logging
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Message
from small_jobs import LOGGED, context_in, job_of, store_keys
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.container.container_job import ContainerJob
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.incarnation import start_up
from homeport.container.incarnation.context import IncarnationContext, Phases
from homeport.container.incarnation.stream_container import (
    StreamContainer,
    report_change,
    report_lost,
)
from homeport.container.kafka import kept_clients
from homeport.container.kafka.checkpoints import Checkpoint
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.checkpoint import NOTHING, Change
from homeport.container.progress.input_position import InputPosition, LostInputError
from homeport.container.progress.restore import OffsetRange
from homeport.container.progress.transaction_plan import Changes
from homeport.container.reporting.work_report import WorkReport
from homeport.container.storage.container_storage import ContainerStorage
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel


class _Coordinator:
    """Takes the report of a start."""

    def report_started(self, _message: Started) -> None:
        """It has it."""


def _unheard(_event: str, **_fields: object) -> None:
    """A history that is not looked at."""


KEYS = {
    **LOGGED,
    "task.inputs": "elsewhere.in",
    "systems.elsewhere.consumer.bootstrap.servers": "b:1",
    "systems.unused.producer.bootstrap.servers": "c:1",
}
TASK = TaskName("Partition 0")
SSPS = tuple(SystemStreamPartition("elsewhere", "in", i) for i in range(2))


def _job(processor_id: str = "0", over: Mapping[str, str] | None = None) -> ContainerJob:
    """Processor 0 has one task with two partitions, 0-0 is its standby."""
    return job_of({**KEYS, **(over or {})}, processor_id, TaskModel(TASK, SSPS, 0))


@pytest.mark.parametrize(
    ("processor_id", "role"),
    [("0", {}), ("0-0", {"processor_role": "standby", "active_processor_id": "0"})],
)
def test_the_events_of_a_standby_name_its_active(
    processor_id: str, role: dict[str, str], tmp_path: Path
) -> None:
    """Those of an active container say nothing of a role; all name their incarnation."""
    permit = Permit(Incarnation(ProcessorId(processor_id), 4), 7, ())
    context = context_in(tmp_path, _job(processor_id), permit, coordinator=_Coordinator())
    start_up.report_started(context, {})
    (file,) = context.environment.history_folder(_job().job).iterdir()
    event = json.loads(file.read_text(encoding="utf-8"))
    assert (event["event"], event["processor_id"], event["epoch"]) == ("started", processor_id, 4)
    assert {
        k: v for k, v in event.items() if k in {"processor_role", "active_processor_id"}
    } == role


def test_a_processor_with_another_file_than_the_leader_begins_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the leader's file the input fills a store; a container on YARN has no file of its own."""
    stream = InMemoryCoordinatorStream()
    fills = store_keys("planes", adstore_input="elsewhere.in")
    leaders = {**KEYS, **fills, "task.inputs": "elsewhere.in, elsewhere.more"}
    ConfigManager(stream).replace(leaders, "leader")
    opened = SimpleNamespace(
        bootstrap=stream.catch_up,
        latest=stream.latest,
        write=stream.write,
        record_count=0,
        rest=lambda: None,
        close=lambda: None,
    )
    monkeypatch.setattr(start_up, "open_coordinator_stream", lambda _job: opened)
    monkeypatch.setattr(start_up, "await_kafka", lambda *_: None)
    coordinator = SimpleNamespace(confirm=lambda *_: None)
    permit = Permit(Incarnation(ProcessorId("0"), 4), 7, ())
    context = context_in(tmp_path, _job(), permit, coordinator=coordinator)
    with start_up.confirmed_stream(context, lambda _: 5) as (_, fenced):
        assert fenced == 5
    context = context_in(tmp_path, _job(), replace(permit, model="m"), coordinator=coordinator)
    with (
        pytest.raises(ConfigError, match=r"stores\.planes\.adstore\.input is missing: by"),
        start_up.confirmed_stream(context, lambda _: 5),
    ):
        pytest.fail("it has begun")


def test_kafka_is_waited_for_in_every_system_that_the_job_uses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not in a system that it only may send to; an order to stop ends the wait."""
    waited: list[str] = []

    class Admin:
        def __init__(self, system: SystemConfig, patience_s: float, client: str) -> None:
            assert patience_s > 0
            assert client == f"the client of {system.name}"
            self._name = system.name

        def await_reachable(self, _log: logging.Logger, may_go_on: Callable[[], object]) -> None:
            may_go_on()
            waited.append(self._name)

    monkeypatch.setattr(kept_clients, "TopicAdmin", Admin)
    monkeypatch.setattr(clients, "admin", lambda system: f"the client of {system.name}")
    stop = StopFlag()
    context = context_in(tmp_path, _job(), Permit(Incarnation(ProcessorId("0"), 4), 7, ()), stop)
    start_up.await_kafka(context)
    assert sorted(waited) == ["elsewhere", "kafka"]
    stop.set()
    with pytest.raises(StopRequestedError):
        start_up.await_kafka(context)
    assert len(waited) == 2


def test_the_history_lists_what_a_standby_has_fenced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All of its permit's list, in the system of the transactions, and which tasks it is for."""
    fenced: list[tuple[str, str]] = []
    monkeypatch.setattr(start_up, "fence", lambda system, id_: fenced.append((system.name, id_)))
    job = _job("0-0")
    earlier = (Incarnation(ProcessorId("0-0"), 3), Incarnation(ProcessorId("0"), 2))
    permit = Permit(Incarnation(ProcessorId("0-0"), 4), 7, earlier)
    events: list[tuple[str, dict[str, Any]]] = []

    def history(event: str, **fields: object) -> None:
        events.append((event, fields))

    start_up.fence_and_only_read(context_in(tmp_path, job, permit, history=history))
    assert sorted(fenced) == sorted(("kafka", job.transactional_id(i)) for i in earlier)
    ids = [{"processor_id": "0-0", "epoch": 3}, {"processor_id": "0", "epoch": 2}]
    assert events == [("fenced", {"fenced": ids, "tasks": [t.task_name for t in job.tasks]})]


@pytest.mark.parametrize("is_off", [False, True])
def test_an_active_container_fences_its_list_before_it_can_begin_a_transaction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_off: bool
) -> None:
    """Safety I3: it goes on once every earlier id, and the own one, are initialised.

    A thread looks for what those have left hanging. ``is_off``: outputs are put by Python.
    """
    steps: list[str] = []
    looked_for: queue.SimpleQueue[AbstractSet[str]] = queue.SimpleQueue()
    monkeypatch.setattr(start_up, "fence", lambda _, id_: steps.append(id_))
    monkeypatch.setattr(start_up, "end_of_fenced", lambda _, ids, __: looked_for.put(ids))

    class Producer:
        def __init__(self, _system: SystemConfig, id_: str, *, native: bool) -> None:
            self._id = id_
            assert native is not is_off

        def initialise(self) -> None:
            steps.append(f"initialised {self._id}")

    monkeypatch.setattr(start_up, "TransactionalProducer", Producer)
    job = _job(over={"task.input.native": "false"} if is_off else {})
    own = Incarnation(ProcessorId("0"), 4)
    earlier = (Incarnation(ProcessorId("0"), 3), Incarnation(ProcessorId("1"), 2))
    start_up.fence_and_begin(context_in(tmp_path, job, Permit(own, 7, earlier)))
    ids = [job.transactional_id(i) for i in earlier]
    assert sorted(steps) == sorted([*ids, f"initialised {job.transactional_id(own)}"])
    assert looked_for.get(timeout=60) == {job.transactional_id(i) for i in earlier}


class _Inputs:
    """Every partition has the same oldest offset and head."""

    def ends(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], OffsetRange]:
        return {place: OffsetRange(10, 20) for place in places}

    def read(self, topic: str, *_: int) -> Iterator[list[Message]]:
        del topic
        return iter(())

    def offset_at(self, topic: str, partition: int, time_ms: int) -> int | None:
        del topic, partition
        return {1000: 12}.get(time_ms)


ELSEWHERE = "systems.elsewhere"
"""The system of the task's input."""


def _positions(
    monkeypatch: pytest.MonkeyPatch,
    known: dict[SystemStreamPartition, int],
    over: dict[str, str],
    changes: tuple[Change, ...] = (),
) -> start_up.Positions:
    whole = {TASK: Checkpoint(known, changes)}
    monkeypatch.setattr(start_up, "checkpoints_in", lambda *_: whole)
    readers = {name: cast("LogReader", _Inputs()) for name in ("elsewhere", "kafka")}
    job = _job(over={f"{ELSEWHERE}.samza.offset.default": "oldest", **over})
    return start_up.read_positions(job, readers, InMemoryCoordinatorStream())


@pytest.mark.parametrize(("processed", "start"), [(9, 10), (15, 16), (8, 10)])
def test_a_task_goes_on_behind_its_checkpoint(
    processed: int, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its other partition, without one, is begun, and makes the task a new one."""
    found = _positions(monkeypatch, {SSPS[0]: processed}, {})
    ends = dict.fromkeys(SSPS, 20)
    assert found == start_up.Positions(
        {TASK: {SSPS[0]: start, SSPS[1]: 10}}, frozenset({TASK}), ends
    )


def test_the_position_of_an_input_that_has_left_is_committed_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The start writes a checkpoint without it, also where no record comes: it begins on return."""
    left, known = SystemStreamPartition("elsewhere", "left", 0), dict.fromkeys(SSPS, 15)
    assert _positions(monkeypatch, known, {}).new == frozenset()
    found = _positions(monkeypatch, {**known, left: 7}, {})
    assert found.new == {TASK}
    assert found.processed() == {TASK: known}
    assert found.left == ((TASK, Change(left, 8, 8)),)


def test_records_that_are_gone_fail_the_start_or_are_a_gap(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the stream's key, else the system's; a start behind a gap is committed once."""
    known = dict.fromkeys(SSPS, 6)
    with pytest.raises(LostInputError, match=r"next offset to read is 7, but Kafka has 10 to 20"):
        _positions(monkeypatch, known, {})
    found = _positions(monkeypatch, known, {f"{ELSEWHERE}.input.lost": "latest"})
    assert found.starts == {TASK: dict.fromkeys(SSPS, 20)}
    own = f"{ELSEWHERE}.streams.{SSPS[1].stream}.input.lost"
    keys = {f"{ELSEWHERE}.input.lost": "latest", own: "earliest"}
    found = _positions(monkeypatch, {**known, SSPS[0]: 15}, keys)
    assert found.starts == {TASK: {SSPS[0]: 16, SSPS[1]: 10}}
    assert found.lost == {SSPS[1]: InputPosition(10, 3)}
    assert found.new == {TASK}
    noted: dict[str, object] = {}
    with caplog.at_level(logging.ERROR, start_up.__name__):
        report_lost(lambda _, **more: noted.update(more), SSPS[1], found.lost[SSPS[1]])
    assert noted == {"input": "elsewhere.in.1", "first": 7, "next": 10, "lost": 3}
    assert "offsets 7 to 9 (3) were not read" in caplog.text


@pytest.mark.parametrize(
    ("keys", "start"),
    [
        ({"samza.reset.offset": "true"}, 10),
        ({"samza.reset.offset": "true", "samza.offset.default": "upcoming"}, 20),
        ({"samza.reset.offset": "true", "start.time": "1000"}, 12),
        ({"samza.reset.offset": "true", "start.time": "1970-01-01T00:00:02+00:00"}, 20),
        ({"start.time": "1000"}, 16),
        ({}, 16),
    ],
)
def test_a_stream_that_is_reset_begins_at_each_start(
    keys: dict[str, str], start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a task without a checkpoint would; its checkpoint makes no new task of it."""
    over = {f"{ELSEWHERE}.streams.{SSPS[1].stream}.{key}": value for key, value in keys.items()}
    found = _positions(monkeypatch, dict.fromkeys(SSPS, 15), over)
    assert found.starts == {TASK: dict.fromkeys(SSPS, start)}
    assert found.new == frozenset()
    noted: list[dict[str, object]] = []
    for reset in found.resets:
        report_change(lambda _, **more: noted.append(more), "input-reset", *reset)
    fields = {"task": TASK, "first": 16, "next": start}
    places = [] if start == 16 else [f"elsewhere.in.{ssp.partition}" for ssp in SSPS]
    assert noted == [{**fields, "input": place} for place in places]


def test_what_an_operator_has_set_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the container that reads it: task, partition, where it went on and where it does."""
    change = Change(SSPS[0], 20, 16)
    found = _positions(monkeypatch, dict.fromkeys(SSPS, 15), {}, (change,))
    assert found.changes == ((TASK, change),)
    noted: list[object] = []
    report_change(
        lambda name, **more: noted.append((name, more)), "checkpoint-set", *found.changes[0]
    )
    place = f"elsewhere.in.{SSPS[0].partition}"
    assert noted == [("checkpoint-set", {"task": TASK, "input": place, "first": 20, "next": 16})]


def test_without_checkpoints_each_start_says_where_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else says it to the reader of a history."""
    found = _positions(monkeypatch, {}, {"task.checkpoint.factory": "none"})
    assert found.resets == tuple((TASK, Change(ssp, None, 10)) for ssp in SSPS)
    assert _positions(monkeypatch, {}, {}).resets == ()


def test_the_processed_messages_are_all_before_the_start() -> None:
    """The message before the next one; nothing where the first of all is the next."""
    starts = {TASK: {SSPS[0]: 5, SSPS[1]: 0}}
    assert start_up.Positions(starts).processed() == {TASK: {SSPS[0]: 4, SSPS[1]: NOTHING}}


class _Producer:
    """Notes which methods are called, and does nothing."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: self.done.append(name)


def _unfollowed(_changes: Changes, _positions: Mapping[tuple[str, int], int]) -> None:
    """Nothing is trimmed."""


def test_a_start_knows_where_its_transactions_will_probably_write() -> None:
    """To its own partitions of changelogs, the checkpoints, and where a run before has sent."""
    job = _job()
    (store,), (task,) = job.stores, job.tasks
    assert store.changelog is not None
    own = (store.changelog.stream, task.changelog_partition)
    checkpoints = (job.task.checkpoint_topic, None)
    written = {"out", store.changelog.stream, job.task.checkpoint_topic}
    assert start_up.places_of(job, written) == {own, checkpoints, ("out", None)}
    without = _job(over={"task.checkpoint.factory": "none"})
    assert start_up.places_of(without, ()) == {own}


@pytest.mark.parametrize(
    ("new", "over", "commits"),
    [({TASK}, {}, 1), (set(), {}, 0), ({TASK}, {"task.checkpoint.factory": "none"}, 0)],
)
def test_the_start_of_a_task_is_committed_only_without_a_checkpoint(
    new: set[TaskName], over: dict[str, str], commits: int
) -> None:
    """A start with a checkpoint of every partition costs no transaction."""
    producer = _Producer()
    positions = start_up.Positions({TASK: {SSPS[0]: 5}}, frozenset(new))
    pause = StopFlag().pause
    start_up.commit_starts(
        _job(over=over), cast("TransactionalProducer", producer), positions, pause, _unfollowed
    )
    assert producer.done.count("commit") == producer.done.count("begin") == commits
    assert producer.done.count("send") == commits


class _Phased:
    """As much of a context as the end of a start looks at."""

    phases = Phases()


def test_what_is_lost_or_reset_is_said_before_it_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container that dies in between leaves a line too many, not one too few."""
    done: list[str] = []
    monkeypatch.setattr(start_up, "commit_starts", lambda *_: done.append("committed"))
    positions = start_up.Positions(
        {TASK: {SSPS[0]: 5, SSPS[1]: 9}},
        frozenset({TASK}),
        lost={SSPS[0]: InputPosition(5, 2)},
        resets=((TASK, Change(SSPS[1], 20, 9)),),
        changes=((TASK, Change(SSPS[1], 30, 20)),),
        left=((TASK, Change(SystemStreamPartition("elsewhere", "left", 0), 8, 8)),),
    )
    container = StreamContainer.__new__(StreamContainer)
    container._job, container._stop = _job(), StopFlag()
    container._report, container._context = WorkReport(), cast("IncarnationContext", _Phased())
    container._history = lambda name, **_: done.append(name)
    container._storage = cast("ContainerStorage", SimpleNamespace(positions=dict, follow=_unheard))
    container._begin(cast("TransactionalProducer", _Producer()), positions)
    assert done == ["checkpoint-set", "input-reset", "input-left", "input-lost", "committed"]
    assert container._report._lost == 2
