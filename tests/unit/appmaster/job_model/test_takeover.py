"""How an attempt takes over, on a coordinator stream in memory."""

from __future__ import annotations

import pytest

from homeport.appmaster.job_model.publication import publish
from homeport.appmaster.job_model.takeover import permits, take_rank
from homeport.config.config import Config
from homeport.config.errors import FencedError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, ProcessorEpoch, Rank
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskMode,
)
from homeport.job_coordinator.planning.next_model import previous_assignment

P0, P1, P2 = ProcessorId("0"), ProcessorId("1"), ProcessorId("2")
OLD = Rank(1, "application_1_0001", 1)
NOW = Rank(2, "application_1_0002", 1)


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def model(containers: int) -> JobModel:
    """Four tasks on so many containers."""
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "job.container.count": str(containers),
            "job.host-affinity.enabled": "true",
            "task.inputs": "kafka.in",
            "systems.kafka.consumer.bootstrap.servers": "b:1",
        }
    )
    return calculate_job_model(config, {SystemStream("kafka", "in"): 4}, NOTHING)


def same(host: Host) -> Host | None:
    """Every host is one of the cluster's, but nm9."""
    return None if host == "nm9" else host


def test_the_first_attempt_has_no_attempt_to_fence(stream: InMemoryCoordinatorStream) -> None:
    """On an empty stream the rank is written and nothing fenced."""
    fenced: list[Rank] = []
    take_rank(stream, NOW, fenced.append)
    assert fenced == []
    assert EpochManager(stream).read_am_epoch() == AmEpoch(NOW)


def test_lower_ranks_are_fenced_after_the_own_is_written(stream: InMemoryCoordinatorStream) -> None:
    """A fenced attempt finds the higher rank in the stream already (safety A2)."""
    older = Rank(1, "application_1_0000", 3)
    stream.write([])
    EpochManager(stream).write_am_epoch(AmEpoch(OLD, (older,)))
    stream.catch_up()
    seen: list[tuple[Rank, AmEpoch | None]] = []

    def fence(rank: Rank) -> None:
        stream.catch_up()
        seen.append((rank, EpochManager(stream).read_am_epoch()))

    take_rank(stream, NOW, fence)
    written = AmEpoch(NOW, (older, OLD))
    assert seen == [(older, written), (OLD, written)]
    assert EpochManager(stream).read_am_epoch() == AmEpoch(NOW)


def test_an_attempt_that_is_outranked_writes_nothing(stream: InMemoryCoordinatorStream) -> None:
    """A higher rank in the stream ends this attempt for good."""
    EpochManager(stream).write_am_epoch(AmEpoch(NOW))
    stream.catch_up()
    length = len(stream.log)
    with pytest.raises(FencedError):
        take_rank(stream, OLD, lambda _: None)
    assert len(stream.log) == length


def test_a_rank_that_comes_while_fencing_ends_the_attempt(
    stream: InMemoryCoordinatorStream,
) -> None:
    """The second look at the head finds the attempt that came in between."""
    EpochManager(stream).write_am_epoch(AmEpoch(OLD))
    stream.catch_up()
    higher = Rank(3, "application_1_0003", 1)
    with pytest.raises(FencedError):
        take_rank(
            stream, NOW, lambda _: EpochManager(stream).write_am_epoch(AmEpoch(higher, (NOW,)))
        )


def test_the_previous_assignment_is_what_was_published(stream: InMemoryCoordinatorStream) -> None:
    """Tasks, changelog partitions, and the hosts that containers have reported since."""
    assert previous_assignment(stream) == NOTHING
    publish(model(2), stream, same)
    LocalityManager(stream).write(P1, [TaskName("Partition 1")], Host("nm1"), 1)
    stream.catch_up()
    before = previous_assignment(stream)
    tasks = [TaskName(f"Partition {n}") for n in range(4)]
    assert before.task_processors == dict(zip(tasks, (P0, P1, P0, P1), strict=True))
    assert before.changelog_partitions == {task: n for n, task in enumerate(tasks)}
    assert before.task_hosts == {tasks[1]: Host("nm1")}
    assert before.processor_hosts == {P1: Host("nm1")}


def test_standby_tasks_are_no_part_of_the_previous_assignment(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A task counts as active, whatever its name, unless its mode says otherwise."""
    ssp = SystemStreamPartition("kafka", "in", 0)
    stream.write(
        [
            wire.set_task_container_assignment(TaskName("Standby-of-gold"), P0),
            wire.set_task_container_assignment(TaskName("other"), ProcessorId("0-0")),
            wire.set_task_mode_assignment(TaskName("other"), TaskMode.STANDBY),
            wire.set_task_partition_assignment(ssp, ["Standby-of-gold", "other"]),
        ]
    )
    stream.catch_up()
    before = previous_assignment(stream)
    assert before.task_processors == {TaskName("Standby-of-gold"): P0}
    assert before.task_partitions == {TaskName("Standby-of-gold"): frozenset({ssp})}


def test_an_attempts_own_values_are_no_configuration(stream: InMemoryCoordinatorStream) -> None:
    """The tracking URL would else make a new JobModel of every attempt."""
    stream.write([wire.set_config("a", "1"), wire.set_config("yarn.am.tracking.url", "http://x/")])
    stream.catch_up()
    assert dict(ConfigManager(stream).deployed()) == {"a": "1"}


def test_the_last_permit_is_known_of_retired_processors_too(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A raised epoch was never permitted: an incarnation that may still run has the one before.

    For how long is in its record; where an older version wrote that, the given time stands.
    """
    epochs = EpochManager(stream)
    epochs.write_processor_epoch(P0, ProcessorEpoch(4, 1))
    epochs.write_processor_epoch(P1, ProcessorEpoch(8, 2, (), permitted=7, unseen_ms=42_000))
    epochs.write_processor_epoch(P2, ProcessorEpoch(0, 2, (Incarnation(P1, 7),)))
    stream.catch_up()
    assert permits(stream, 500) == {Incarnation(P0, 4): 500, Incarnation(P1, 7): 42_000}
