"""What a published JobModel of mixed containers leaves in the stream, and raises."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Mapping

import pytest
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.job_model.publication import publish
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
    set_changelog,
    set_task_container_assignment,
    tombstone,
)
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    fence_report_message,
)
from homeport.job_coordinator.metadata.recorded_model import ModelRecords
from homeport.job_coordinator.metadata.task_assignment import LocalityManager, TaskAssignmentManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
    mirrored,
)

P0, P1, P2 = ProcessorId("0"), ProcessorId("1"), ProcessorId("2")
T0 = TaskName("t0")
KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.inputs": "kafka.in",
    "job.hotstandby.enabled": "true",
}


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def mixed(containers: Mapping[str, str], *, has_roles: str = "true") -> JobModel:
    """Active tasks with a small t, their standbys with an s: ``{"0": "t0 s1", "1": "t1 s0"}``."""
    config = Config({**KEYS, "job.container.mixed-roles": has_roles})
    found = {
        ProcessorId(p): ContainerModel(
            ProcessorId(p), {TaskName(name): _task(name) for name in names.split()}
        )
        for p, names in containers.items()
    }
    return JobModel(config, mirrored(config, found))


def _task(name: str) -> TaskModel:
    number = int(name[1:])
    mode = TaskMode.ACTIVE if name.startswith("t") else TaskMode.STANDBY
    ssp = SystemStreamPartition("kafka", "in", number)
    return TaskModel(TaskName(name), (ssp,), number, mode)


def same(host: Host) -> Host:
    """All locality has names."""
    return host


def published(stream: InMemoryCoordinatorStream, now: JobModel) -> JobModelPublished:
    """The model is published."""
    return publish(now, stream, same)


def inc(processor: str, epoch: int) -> Incarnation:
    """An incarnation."""
    return Incarnation(ProcessorId(processor), epoch)


def permitted(stream: InMemoryCoordinatorStream, processor: str, epoch: int) -> None:
    """That incarnation has a permit."""
    write_permit(EpochManager(stream), ProcessorId(processor), ProcessorEpoch(epoch, 1))
    stream.catch_up()


def records(stream: InMemoryCoordinatorStream) -> dict[str, ProcessorEpoch]:
    """The epochs in the stream."""
    return {str(p): record for p, record in EpochManager(stream).read_processor_epochs().items()}


MIXED = mixed({"0": "t0 s1", "1": "t1 s0", "2": "t2", "3": ""})


def test_standbys_of_mixed_containers_come_and_go_within_an_incarnation(
    stream: InMemoryCoordinatorStream,
) -> None:
    """No epoch is raised, and no container has gained; the stream has them where they are now."""
    published(stream, MIXED)
    for processor, epoch in (("0", 4), ("1", 2), ("2", 7), ("3", 1)):
        permitted(stream, processor, epoch)
    before = records(stream)
    LocalityManager(stream).write(P1, [TaskName("t1"), TaskName("s0")], Host("nm1"), 2)
    stream.catch_up()
    after = mixed({"0": "t0", "1": "t1 s2", "2": "t2 s1", "3": "s0"})
    for in_force in (None, MIXED):
        stated = publish(after, stream, same, in_force=in_force)
        assert stated.version == 2
        assert records(stream) == before
        assert stated.gainers == frozenset()
        assert (dict(stated.retired), dict(stated.standbys)) == ({}, {})
        assert set(stated.processors) == {P0, P1, P2, "3"}
        stream.catch_up()
    assert TaskAssignmentManager(stream).read()[TaskName("s0")] == "3"
    # Where the moved standby was is no home of its next container.
    assert LocalityManager(stream).read_tasks() == {TaskName("t1"): Host("nm1")}
    assert stated.processors[ProcessorId("3")] is None


def test_a_promoted_standby_is_a_change_of_active_tasks(stream: InMemoryCoordinatorStream) -> None:
    """Of the lost container and of the one that takes over, which fences the owner before."""
    published(stream, MIXED)
    for processor, epoch in (("0", 4), ("1", 2), ("2", 7)):
        permitted(stream, processor, epoch)
    LocalityManager(stream).write(P0, [T0], Host("gone"), 4)
    LocalityManager(stream).write(P1, [TaskName("t1")], Host("nm1"), 2)
    stream.catch_up()
    stated = published(stream, mixed({"0": "", "1": "t0 t1", "2": "t2 s1 s0", "3": ""}))
    assert stated.gainers == {P1}
    assert records(stream) == {
        "0": ProcessorEpoch(5, 2, (inc("0", 4),), permitted=4),
        "1": ProcessorEpoch(3, 2, (inc("0", 4), inc("1", 2)), permitted=2),
        "2": ProcessorEpoch(7, 1),
    }
    assert stated.processors[P1] == "nm1"
    assert stated.processors[P0] == "gone"


def test_a_container_that_comes_has_its_tasks_home_and_one_that_goes_is_retired(
    stream: InMemoryCoordinatorStream,
) -> None:
    """As without mixed roles; also a container that had nothing but standbys, or no task."""
    before = mixed({"0": "t0 t1", "1": "t2", "2": "s0", "3": ""})
    published(stream, before)
    for processor in ("0", "1", "2", "3"):
        permitted(stream, processor, 3)
    LocalityManager(stream).write(P0, [T0, TaskName("t1")], Host("nm0"), 3)
    stream.catch_up()
    stated = publish(mixed({"0": "t0", "1": "t2", "4": "t1"}), stream, same, in_force=before)
    assert set(stated.retired) == {P2, "3"}
    assert {p for p, record in records(stream).items() if record.is_raised} == {"0", "2", "3"}
    assert stated.processors[ProcessorId("4")] == "nm0"


def test_standby_containers_count_as_before(stream: InMemoryCoordinatorStream) -> None:
    """Without mixed roles, other standby tasks are another incarnation."""
    published(stream, mixed({"0": "t0", "1": "t1", "0-0": "s0", "1-0": "s1"}, has_roles="false"))
    permitted(stream, "0", 4)
    permitted(stream, "0-0", 4)
    stated = published(
        stream, mixed({"0": "t0", "1": "t1", "0-0": "s1", "1-0": "s0"}, has_roles="false")
    )
    assert records(stream)["0"].epoch == 4
    assert records(stream)["0-0"].epoch == 5
    assert stated.gainers == {"0-0", "1-0"}
    changed_over = published(stream, mixed({"0": "t0 s1", "1": "t1 s0"}))
    assert set(changed_over.retired) == {"0-0"}
    assert records(stream)["0"].epoch == 4


class Log(InMemoryCoordinatorStream):
    """A stream into which others write right before, and right after, the next transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.earlier: list[CoordinatorStreamMessage] = []
        self.later: list[CoordinatorStreamMessage] = []
        self.is_away = False

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Write these, between those of others."""
        if self.is_away:
            raise UnavailableError("Kafka", "writing", "away")
        own, earlier, later = list(messages), self.earlier, self.later
        self.earlier, self.later = [], []
        super().write([*earlier, *own, *later])


def next_of(model: JobModel, chance: random.Random) -> JobModel:
    """Some tasks and standbys are elsewhere, or gone, or new; the others are the same objects."""
    tasks = {p: dict(c.tasks) for p, c in model.containers.items()}
    for _ in range(chance.randint(0, 3)):
        there = tasks[chance.choice(sorted(tasks))]
        if there and chance.random() < 0.8:
            task = there.pop(chance.choice(sorted(there)))
            if task.task_mode is TaskMode.ACTIVE or chance.random() < 0.7:
                tasks[chance.choice(sorted(tasks))][task.task_name] = task
    if chance.random() < 0.3:
        number = chance.randrange(10, 1_000_000)
        ssps = tuple(SystemStreamPartition("kafka", "in", n) for n in (number, number + 1))
        name = TaskName(f"new{number}")
        tasks[chance.choice(sorted(tasks))][name] = TaskModel(name, ssps, number)
    if chance.random() < 0.2:
        tasks[ProcessorId(f"p{chance.randint(0, 9)}")] = {}
    empty = sorted(p for p, own in tasks.items() if not own)
    if empty and chance.random() < 0.3:
        del tasks[empty[0]]
    found = {p: ContainerModel(p, dict(sorted(own.items()))) for p, own in sorted(tasks.items())}
    return JobModel(model.config, found)


def odd_records(chance: random.Random, model: JobModel) -> list[CoordinatorStreamMessage]:
    """What a tool, or a program of Samza's, may write."""
    if chance.random() < 0.6:
        return []
    name = chance.choice(sorted(model.tasks()))
    ssp = model.tasks()[name].system_stream_partitions[0]
    key = f'{{"system": "kafka", "stream": "in", "partition": {ssp.partition}}}'
    odd = [
        set_task_container_assignment(name, "elsewhere"),
        set_task_container_assignment("unknown", "0"),
        tombstone(MessageType.SET_TASK_CONTAINER, name),
        tombstone(MessageType.SET_TASK_MODE, name),
        CoordinatorStreamMessage(MessageType.SET_TASK_MODE, name, {"taskMode": "Odd"}),
        CoordinatorStreamMessage(MessageType.SET_TASK_PARTITION, key, {"taskNames": "[]"}),
        set_changelog(name, 77),
        tombstone(MessageType.SET_CHANGELOG, name),
        tombstone(MessageType.SET_STATE_FACT, "partitions 0"),
    ]
    return chance.sample(odd, chance.randint(1, 2))


@pytest.mark.parametrize("seed", range(24))
def test_a_driver_that_knows_the_last_model_writes_what_one_writes_that_compares_all(
    seed: int,
) -> None:
    """Byte for byte, and with the same event; whatever others write, or fails, in between."""
    chance = random.Random(seed)  # noqa: S311 - a walk that can be repeated
    knows, compares = Log(), Log()
    model = mixed(
        {"0": "t0 s1 t4", "1": "t1 s0", "2": "t2 s3 s4", "3": "t3 s2"},
        has_roles=chance.choice(["true", "false"]),
    )
    records = ModelRecords(knows)
    in_force: JobModel | None = None
    for _ in range(10):
        if in_force is not None and chance.random() < 0.2:  # a change that Kafka does not take
            knows.is_away = True
            with pytest.raises(UnavailableError):
                publish(next_of(model, chance), knows, same, in_force=in_force, records=records)
            knows.is_away = False
        odd = [odd_records(chance, model) for _ in range(3)]
        epochs = {p: chance.randint(1, 9) for p in model.containers if chance.random() < 0.3}
        fenced = FenceReport(2, (inc("0", 1),))
        restart_all = chance.random() < 0.1
        stated = []
        for stream, kept in ((knows, records), (compares, None)):
            stream.write(odd[0])
            for processor, epoch in epochs.items():
                permitted(stream, processor, epoch)
            stream.catch_up()
            stream.earlier, stream.later = list(odd[1]), list(odd[2])
            if epochs:
                stream.later.append(fence_report_message(P1, fenced))
            before = in_force if stream is knows else copy.deepcopy(in_force)
            parts = (model, stream, same)
            stated.append(publish(*parts, in_force=before, restart_all=restart_all, records=kept))
        assert stated[0] == stated[1]
        assert knows.log == compares.log
        in_force, model = model, next_of(model, chance)


def test_a_report_that_comes_with_the_version_counts() -> None:
    """The next incarnations need not fence what it has fenced."""
    log = Log()
    published(log, MIXED)
    permitted(log, "0", 4)
    permitted(log, "1", 2)
    log.later = [fence_report_message(P1, FenceReport(2, (inc("0", 4),)))]
    stated = published(log, mixed({"0": "", "1": "t0 t1", "2": "t2 s1 s0", "3": ""}))
    assert stated.unfenced[P1] == (inc("1", 2),)


def test_of_a_changed_model_only_the_changes_are_records() -> None:
    """The stream gets the version, and a record of the one standby that has moved."""
    log = Log()
    records = ModelRecords(log)
    publish(MIXED, log, same, records=records)
    written = len(log.log)
    tasks = {p: dict(c.tasks) for p, c in MIXED.containers.items()}
    moved = TaskName("s0")
    tasks[P2][moved] = tasks[P1].pop(moved)
    after = JobModel(MIXED.config, {p: ContainerModel(p, own) for p, own in tasks.items()})
    publish(after, log, same, in_force=MIXED, records=records)
    assert TaskAssignmentManager(log).read()[moved] == "2"
    assert len(log.log) - written == 3  # with a tombstone of where it was
