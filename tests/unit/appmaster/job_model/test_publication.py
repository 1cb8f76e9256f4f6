"""What a published JobModel leaves in the coordinator stream, and what the allocator gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.job_model.publication import Owners, publish, version_of
from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    epoch_floor_message,
)
from homeport.job_coordinator.metadata.lifecycle import RetryManager, RetryState, StopManager
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.metadata.topics import InputPartitionManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

P0, P1, P2 = ProcessorId("0"), ProcessorId("1"), ProcessorId("2")


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def task(name: str, changelog: int | None = None, *more: str) -> TaskModel:
    """A task that reads the partitions of its own name and of ``more``."""
    number = int(name[1:])
    ssps = {SystemStreamPartition("kafka", topic, number) for topic in ("in", *more)}
    partition = number if changelog is None else changelog
    return TaskModel(TaskName(name), tuple(sorted(ssps)), partition)


INPUTS = {"task.inputs": "kafka.in", "task.broadcast.inputs": "kafka.all#[0-1]"}


def model(containers: Mapping[str, str], **config: str) -> JobModel:
    """Tasks per processor, as ``{"0": "t0 t1"}``."""
    return JobModel(
        Config({"job.name": "j", "job.default.system": "kafka", **INPUTS, **config}),
        {
            ProcessorId(p): ContainerModel(
                ProcessorId(p), {TaskName(name): task(name) for name in names.split()}
            )
            for p, names in containers.items()
        },
    )


T0 = TaskName("t0")
BROADCAST = (SystemStreamPartition("kafka", "all", 0), SystemStreamPartition("kafka", "in", 5))
THREE = model({"0": "t0 t3", "1": "t1", "2": "t2"})
ONE = model({"0": "t0 t1 t2 t3"})


def same(host: Host) -> Host:
    """All locality has names."""
    return host


def published(stream: InMemoryCoordinatorStream, now: JobModel) -> JobModelPublished:
    """The model is published."""
    return publish(now, stream, same)


def inc(processor: str, epoch: int) -> Incarnation:
    """An incarnation."""
    return Incarnation(ProcessorId(processor), epoch)


def permitted(
    stream: InMemoryCoordinatorStream, processor: str, epoch: int, *fence: Incarnation
) -> None:
    """That incarnation has a permit."""
    record = ProcessorEpoch(epoch, 1, fence)
    write_permit(EpochManager(stream), ProcessorId(processor), record)
    stream.catch_up()


def reported(
    stream: InMemoryCoordinatorStream, processor: str, epoch: int, *fenced: Incarnation
) -> None:
    """That incarnation has fenced these."""
    EpochManager(stream).write_fenced(ProcessorId(processor), FenceReport(epoch, fenced))
    stream.catch_up()


def records(stream: InMemoryCoordinatorStream) -> dict[str, ProcessorEpoch]:
    """What the stream says of epochs."""
    return {str(p): record for p, record in EpochManager(stream).read_processor_epochs().items()}


def keys(stream: InMemoryCoordinatorStream, message_type: MessageType) -> set[str]:
    """What the stream has records of."""
    return set(stream.latest(message_type))


# --- what is written


def test_the_first_model_is_written_whole(stream: InMemoryCoordinatorStream) -> None:
    """G21: assignment, modes, inputs, changelogs, version; nothing is there to be deleted.

    Samza deletes with an empty set; we write no tombstone that deletes nothing.
    """
    assert published(stream, THREE).version == 1
    assert TaskAssignmentManager(stream).read() == {"t0": "0", "t3": "0", "t1": "1", "t2": "2"}
    assert set(TaskModeManager(stream).read().values()) == {TaskMode.ACTIVE}
    inputs = TaskPartitionManager(stream).read()
    assert inputs[SystemStreamPartition("kafka", "in", 2)] == ("t2",)
    assert ChangelogPartitionManager(stream).read() == {"t0": 0, "t1": 1, "t2": 2, "t3": 3}
    assert all(value is not None for _, value in stream.log)
    assert records(stream) == {}


def test_the_first_counts_of_inputs_are_written_once(stream: InMemoryCoordinatorStream) -> None:
    """Of whole inputs: a broadcast one is read partition by partition, as its key names them."""
    published(stream, ONE)
    assert InputPartitionManager(stream).read() == {SystemStream("kafka", "in"): 4}
    shared = ContainerModel(P0, {T0: replace(task(T0), system_stream_partitions=BROADCAST)})
    published(stream, replace(THREE, containers={P0: shared}))
    assert InputPartitionManager(stream).read() == {SystemStream("kafka", "in"): 4}


def test_the_same_model_is_not_written_again(stream: InMemoryCoordinatorStream) -> None:
    """G22: nothing is deleted. Samza writes all again, for us it is there: no record, no version.

    So publishes a driver that starts in mid-change, or that does not know whether its transaction
    was committed: it receives all as before.
    """
    published(stream, THREE)
    permitted(stream, "0", 4)
    first = published(stream, ONE)
    length = len(stream.log)
    assert version_of(ONE, stream).version == 2
    again = publish(ONE, stream, same, restart_all=True)
    assert again == replace(first, is_cooperative=False)
    assert len(stream.log) == length


def test_what_is_removed_is_deleted_and_the_rest_stays(stream: InMemoryCoordinatorStream) -> None:
    """G23: one container grows to two; and back: its locality goes, those of tasks stay.

    Samza deletes and rewrites what stays the same, in several steps; Homeport writes differences,
    in one transaction, so that no reader sees half a model.
    """
    published(stream, ONE)
    LocalityManager(stream).write(P0, [TaskName("t0"), TaskName("t1")], Host("nm1"), 1)
    two = published(stream, model({"0": "t0 t2", "1": "t1 t3"}))
    assert dict(two.processors) == {P0: "nm1", P1: "nm1"}
    LocalityManager(stream).write(P1, [TaskName("t1")], Host("nm2"), 1)
    stream.catch_up()
    one = published(stream, ONE)
    assert keys(stream, MessageType.SET_CONTAINER_HOST) == {"0"}
    assert keys(stream, MessageType.SET_TASK_HOST) == {"t0", "t1"}
    assert set(TaskAssignmentManager(stream).read().values()) == {"0"}
    assert set(one.processors) == {P0}


def test_a_task_that_is_gone_leaves_its_changelog_partition_only(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Its state may be needed again; where it ran, in which mode and of what, is deleted."""
    published(stream, ONE)
    LocalityManager(stream).write(P0, [TaskName("t0"), TaskName("t3")], Host("nm1"), 1)
    stream.catch_up()
    published(stream, model({"0": "t0 t1 t2"}))
    for kind in (
        MessageType.SET_TASK_CONTAINER,
        MessageType.SET_TASK_MODE,
        MessageType.SET_TASK_HOST,
    ):
        assert "t3" not in keys(stream, kind)
        assert "t0" in keys(stream, kind)
    assert len(TaskPartitionManager(stream).read()) == 3
    assert ChangelogPartitionManager(stream).read()[TaskName("t3")] == 3


def test_standby_tasks_are_deleted_with_active_ones(stream: InMemoryCoordinatorStream) -> None:
    """G24: both kinds, once, as one set; Samza deletes twice."""
    standby = TaskModel(TaskName("Standby-t0-0"), (), 0, TaskMode.STANDBY)
    replica = ContainerModel(ProcessorId("0-0"), {standby.task_name: standby})
    published(stream, replace(ONE, containers={**ONE.containers, ProcessorId("0-0"): replica}))
    assert TaskModeManager(stream).read()[standby.task_name] is TaskMode.STANDBY
    published(stream, model({"0": "t0"}))
    assert dict(TaskModeManager(stream).read()) == {TaskName("t0"): TaskMode.ACTIVE}
    assert dict(TaskAssignmentManager(stream).read()) == {TaskName("t0"): P0}


def test_a_new_version_forgives_charged_failures(stream: InMemoryCoordinatorStream) -> None:
    """As the allocator does, so that the next driver knows; the same version forgives nothing.

    The reason of a processor that stays is kept, since its last failure is shown.
    """
    published(stream, THREE)
    charged = {P0: RetryState(1, 5, 4, "division by zero"), P1: RetryState(2, 5, 1, "no table")}
    stream.write([RetryManager.message(p, state) for p, state in charged.items()])
    stream.catch_up()
    published(stream, THREE)
    assert RetryManager(stream).read() == charged
    published(stream, ONE)
    assert RetryManager(stream).read() == {P0: RetryState(0, 0, 4, "division by zero")}


# --- what the allocator receives


def test_the_allocator_receives_homes_and_epochs(stream: InMemoryCoordinatorStream) -> None:
    """The last host, in the cluster or not, and the last epoch of each processor."""
    published(stream, THREE)
    locality = LocalityManager(stream)
    locality.write(P0, [TaskName("t0"), TaskName("t3")], Host("nm2"), 4)
    locality.write(P1, [TaskName("t1")], Host("nm9"), 1)
    permitted(stream, "0", 4)
    stated = published(stream, THREE)
    assert dict(stated.processors) == {P0: "nm2", P1: "nm9", P2: None}
    assert (dict(stated.epochs), dict(stated.floors)) == ({P0: 4}, {P0: 4})
    assert (dict(stated.retired), stated.gainers) == ({}, frozenset())


def test_retired_processors_are_reported_until_there_is_evidence_of_their_stop(
    stream: InMemoryCoordinatorStream,
) -> None:
    """With the epoch that may still run, which is not the raised one."""
    published(stream, THREE)
    permitted(stream, "1", 2)
    permitted(stream, "2", 7)
    assert dict(published(stream, ONE).retired) == {P1: 2, P2: 7}
    StopManager(stream).write(inc("2", 7), "ordered")
    stream.catch_up()
    assert dict(published(stream, ONE).retired) == {P1: 2}


# --- what a successor must fence (safety I1), and which epochs are raised (safety I2)


def test_an_incarnation_that_reported_has_fenced_its_list(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Only itself is left to fence; its locality alone is no report, nor is an older one's."""
    permitted(stream, "0", 4, inc("0", 3), inc("0", 2))
    everyone = (inc("0", 2), inc("0", 3), inc("0", 4))
    assert Owners.read(stream).unfenced(P0) == everyone
    LocalityManager(stream).write(P0, [], Host("nm1"), 4)
    reported(stream, "0", 3)
    assert Owners.read(stream).unfenced(P0) == everyone
    reported(stream, "0", 4)
    assert Owners.read(stream).unfenced(P0) == (inc("0", 4),)


def test_a_change_raises_the_processors_it_affects_and_lists_all_former_owners(
    stream: InMemoryCoordinatorStream,
) -> None:
    """One transaction with the model; losers, gainers and retired ones, each with its own list.

    A container with an old permit that has not begun finds that it was overtaken (safety I2).
    """
    published(stream, THREE)
    permitted(stream, "0", 4)
    permitted(stream, "1", 2, inc("1", 1))
    permitted(stream, "2", 7, inc("2", 6))
    reported(stream, "2", 7, inc("2", 6))
    stated = published(stream, ONE)
    chains = (inc("0", 4), inc("1", 1), inc("1", 2), inc("2", 7))
    assert records(stream) == {
        "0": ProcessorEpoch(5, 2, chains, permitted=4),
        "1": ProcessorEpoch(3, 2, (inc("1", 1), inc("1", 2)), permitted=2),
        "2": ProcessorEpoch(8, 2, (inc("2", 7),), permitted=7),
    }
    assert (dict(stated.epochs), dict(stated.floors)) == ({P0: 4}, {P0: 5})
    assert dict(stated.unfenced) == {P0: chains}
    assert stated.gainers == {P0}


def test_a_raised_epoch_keeps_how_long_the_permitted_one_can_run_on(
    stream: InMemoryCoordinatorStream,
) -> None:
    """The next attempt waits for the last permit, whatever model came after it (safety A4)."""
    published(stream, THREE)
    write_permit(EpochManager(stream), P0, ProcessorEpoch(4, 1, unseen_ms=42_000))
    stream.catch_up()
    published(stream, ONE)
    raised = records(stream)["0"]
    assert (raised.epoch, raised.permitted, raised.unseen_ms) == (5, 4, 42_000)


def test_a_processor_that_is_not_affected_is_not_raised(stream: InMemoryCoordinatorStream) -> None:
    """Nor is it on anybody's list: it is well, and runs on under the version of its permit."""
    published(stream, THREE)
    permitted(stream, "0", 4)
    permitted(stream, "1", 2)
    permitted(stream, "2", 7)
    stated = published(stream, model({"0": "t0", "1": "t1 t3", "2": "t2"}))
    assert records(stream)["2"] == ProcessorEpoch(7, 1)
    assert dict(stated.floors) == {P0: 5, P1: 3, P2: 7}
    listed = {p: set(incarnations) for p, incarnations in stated.unfenced.items()}
    assert listed == {P0: {inc("0", 4)}, P1: {inc("0", 4), inc("1", 2)}, P2: {inc("2", 7)}}
    assert stated.gainers == {P1}


def test_a_gainer_that_never_ran_has_a_list_and_no_epoch(stream: InMemoryCoordinatorStream) -> None:
    """Its first permit is epoch 1; it adds no incarnation to wait for or to adopt."""
    published(stream, ONE)
    permitted(stream, "0", 4)
    stated = published(stream, THREE)
    assert records(stream)["1"] == ProcessorEpoch(0, 2, (inc("0", 4),))
    assert (dict(stated.epochs), dict(stated.floors)) == ({P0: 4}, {P0: 5})
    assert stated.unfenced[P1] == (inc("0", 4),)


def test_lists_grow_along_owners_that_never_came_to_report(
    stream: InMemoryCoordinatorStream,
) -> None:
    """0 has all, then 1, then 2: neither has fenced anybody, so 2 fences both."""
    published(stream, model({"0": "t0"}))
    permitted(stream, "0", 1)
    published(stream, model({"1": "t0"}))
    permitted(stream, "1", 1, inc("0", 1))
    stated = published(stream, model({"2": "t0"}))
    assert stated.unfenced[P2] == (inc("0", 1), inc("1", 1))
    assert dict(stated.retired) == {P0: 1, P1: 1}
    back = published(stream, model({"1": "t0"}))
    assert back.unfenced[P1] == (inc("0", 1), inc("1", 1))
    assert (dict(back.epochs), dict(back.floors)) == ({P1: 1}, {P1: 3})


def test_a_fenced_incarnation_is_on_no_list_any_more(stream: InMemoryCoordinatorStream) -> None:
    """For good and for everybody, also where the report comes after the change."""
    published(stream, model({"0": "t0"}))
    permitted(stream, "0", 1)
    published(stream, model({"1": "t0"}))
    permitted(stream, "1", 1, inc("0", 1))
    published(stream, model({"2": "t0"}))
    reported(stream, "1", 1, inc("0", 1))
    assert published(stream, model({"2": "t0"})).unfenced[P2] == (inc("1", 1),)


def test_a_task_that_returns_is_fenced_from_all_that_may_still_write(
    stream: InMemoryCoordinatorStream,
) -> None:
    """The former owner is unknown: the list has all that were overtaken, but none that is well."""
    published(stream, model({"0": "t0 t1", "1": "t2"}))
    permitted(stream, "0", 1)
    permitted(stream, "1", 1)
    published(stream, model({"0": "t0", "1": "t2"}))
    stated = published(stream, model({"0": "t0", "1": "t2", "2": "t1"}))
    assert stated.unfenced[P2] == (inc("0", 1),)
    assert stated.unfenced[P1] == (inc("1", 1),)


@pytest.mark.parametrize(
    "other", [task("t1", 7), task("t1", None, "more")], ids=["changelog", "input"]
)
def test_inputs_and_changelog_partitions_are_changes_too(
    stream: InMemoryCoordinatorStream, other: TaskModel
) -> None:
    """A container learns of them only by a start."""
    published(stream, THREE)
    permitted(stream, "1", 2)
    changed = ContainerModel(P1, {other.task_name: other})
    stated = published(stream, replace(THREE, containers={**THREE.containers, P1: changed}))
    assert records(stream) == {"1": ProcessorEpoch(3, 2, (inc("1", 2),), permitted=2)}
    assert stated.gainers == ({P1} if "more" in str(other) else set())


def test_a_model_that_moves_no_task_raises_nothing(stream: InMemoryCoordinatorStream) -> None:
    """Another configuration is a new version, and every epoch stays."""
    published(stream, THREE)
    permitted(stream, "0", 4)
    before = records(stream)
    other = replace(THREE, config=Config({**THREE.config, "task.commit.ms": "1"}))
    assert published(stream, other).version == 2
    assert records(stream) == before


def test_all_epochs_are_raised_where_a_key_says_so(stream: InMemoryCoordinatorStream) -> None:
    """Each fences itself; no processor gains anything."""
    published(stream, THREE)
    permitted(stream, "0", 4)
    permitted(stream, "1", 2)
    other = replace(THREE, config=Config({**THREE.config, "task.commit.ms": "1"}))
    stated = publish(other, stream, same, restart_all=True)
    assert dict(stated.floors) == {P0: 5, P1: 3}
    assert dict(stated.unfenced) == {P0: (inc("0", 4),), P1: (inc("1", 2),), P2: ()}
    assert stated.gainers == frozenset()


def test_a_damaged_task_record_does_not_stop_a_publication(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Its processor is taken to have changed."""
    published(stream, THREE)
    permitted(stream, "1", 2)
    stream.write(map(wire.tombstone, ("set-changelog", "set-state-fact"), ("t1", "partitions 0")))
    stream.catch_up()
    published(stream, replace(THREE, config=Config({**THREE.config, "a": "b"})))
    assert records(stream)["1"].is_raised
    assert ChangelogPartitionManager(stream).read()[TaskName("t1")] == 1


class _History:
    """All permitted owners of each task, kept beside the stream, whole and naive."""

    def __init__(self) -> None:
        self.stream = InMemoryCoordinatorStream()
        self.assigned: dict[str, str] = {}
        self.owned: dict[Incarnation, frozenset[str]] = {}
        self.fences: dict[Incarnation, frozenset[Incarnation]] = {}
        self.well: dict[str, Incarnation] = {}
        self.dead: set[Incarnation] = set()
        self.stated: JobModelPublished | None = None

    def tasks_of(self, processor: str) -> frozenset[str]:
        """What it has now."""
        return frozenset(t for t, p in self.assigned.items() if p == processor)

    def change(self, assigned: dict[str, str]) -> None:
        """Another model; each processor with other tasks than before is overtaken."""
        containers = {p: " ".join(sorted(t for t in assigned if assigned[t] == p)) for p in "0123"}
        self.assigned = assigned
        self.stated = publish(model({p: t for p, t in containers.items() if t}), self.stream, same)
        for processor in list(self.well):
            if self.owned[self.well[processor]] != self.tasks_of(processor):
                del self.well[processor]

    def permit(self, processor: str) -> None:
        """The next incarnation, with the list that the stream has for it."""
        if self.stated is None or not self.tasks_of(processor):
            return
        fence = Owners.read(self.stream).unfenced(ProcessorId(processor))
        record = records(self.stream).get(processor, ProcessorEpoch(0, 0))
        own = inc(processor, record.epoch + 1)
        permit = ProcessorEpoch(own.epoch, self.stated.version, fence)
        write_permit(EpochManager(self.stream), own.processor_id, permit)
        self.stream.catch_up()
        self.owned[own], self.fences[own] = self.tasks_of(processor), frozenset(fence)
        self.well[processor] = own

    def report(self, processor: str) -> None:
        """The one that is well has fenced its list, and says so."""
        own = self.well.get(processor)
        if own is not None:
            reported(self.stream, processor, own.epoch, *sorted(self.fences[own]))
            self.dead |= self.fences[own]

    def judge(self) -> None:
        """Every former owner that may write is listed, and no incarnation that is well."""
        owners = Owners.read(self.stream)
        for processor in {*self.assigned.values()}:
            listed = set(owners.unfenced(ProcessorId(processor)))
            mine = self.tasks_of(processor)
            may_write = {i for i, tasks in self.owned.items() if tasks & mine} - self.dead
            assert may_write <= listed, processor
            others = {i for p, i in self.well.items() if p != processor}
            assert not listed & others, processor


_ASSIGNMENTS = st.dictionaries(
    st.sampled_from(["t0", "t1", "t2", "t3"]), st.sampled_from("0123"), min_size=1
)
_MOVES = st.one_of(
    st.tuples(st.just("change"), _ASSIGNMENTS),
    st.tuples(st.sampled_from(["permit", "report"]), st.sampled_from("0123")),
)


@hypothesis_settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(_MOVES, max_size=20))
def test_lists_are_exact_after_any_sequence(moves: list[tuple[str, object]]) -> None:
    """Against a naive second account of all owners (safety I1); tasks vanish and return."""
    history = _History()
    history.change({"t0": "0", "t1": "1", "t2": "2", "t3": "0"})
    for name, argument in moves:
        getattr(history, name)(argument)
        history.judge()


# --- no permit has a number that an incarnation of the processor had before (safety A6)


def test_every_first_epoch_is_above_what_ran_standalone() -> None:
    """Processors with a record below the floor too; an epoch above it stays."""
    stream = InMemoryCoordinatorStream()
    published(stream, THREE)
    stream.write([epoch_floor_message(7)])
    permitted(stream, "0", 9)
    permitted(stream, "1", 3)
    assert published(stream, THREE).floors == {P0: 9, P1: 7, P2: 7}


def test_no_permit_has_a_number_that_a_report_names() -> None:
    """Its word on that number holds for good."""
    stream = InMemoryCoordinatorStream()
    published(stream, THREE)
    reported(stream, "9", 6, inc("1", 5), inc("1", 2), inc("0", 1))
    permitted(stream, "0", 9)
    owners = Owners.read(stream)
    assert [owners.floor_of(p) for p in (P0, P1, P2)] == [9, 5, 0]


def test_a_report_counts_for_the_permit_that_it_names_alone() -> None:
    """A list without a permit has none yet, whatever a processor of that id has reported before."""
    stream = InMemoryCoordinatorStream()
    published(stream, ONE)
    permitted(stream, "0", 12)
    reported(stream, "1", 3, inc("2", 1))
    reported(stream, "2", 0)
    found = published(stream, THREE)
    assert found.unfenced[P1] == found.unfenced[P2] == (inc("0", 12),)
    permitted(stream, "1", 13, inc("0", 12))
    reported(stream, "1", 14)
    assert Owners.read(stream).unfenced(P1) == (inc("0", 12), inc("1", 13))
    reported(stream, "1", 13, inc("0", 12))
    assert Owners.read(stream).unfenced(P1) == (inc("1", 13),)
