"""What a published JobModel of mixed containers leaves in the stream, and raises."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.job_model.publication import publish
from homeport.config.config import Config
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
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
