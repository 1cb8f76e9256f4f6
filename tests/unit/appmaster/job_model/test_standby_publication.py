"""What a published JobModel with standby containers leaves in the stream, and what it reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.protocol.events import (
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
)
from homeport.appmaster.job_model.publication import publish
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import MessageType
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    ProcessorEpoch,
    processor_epoch_message,
)
from homeport.job_coordinator.metadata.failover import FailoverManager, RecordedFailover
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import JobModel, SystemStream

P0, P1 = ProcessorId("0"), ProcessorId("1")
S0, S1 = ProcessorId("0-0"), ProcessorId("0-1")
NM2 = Host("nm2")


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def model(replicas: int, partitions: int = 2, containers: int = 2) -> JobModel:
    """So many replicas of each active container; with as many tasks as partitions."""
    config = {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.container.count": str(containers),
        "job.host-affinity.enabled": "true",
        "job.hotstandby.enabled": str(replicas > 0).lower(),
        "job.hotstandby.replicationcount": str(max(replicas, 1)),
        "task.inputs": "kafka.in",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
    }
    counts = {SystemStream("kafka", "in"): partitions}
    return calculate_job_model(Config(config), counts, NOTHING)


def published(stream: InMemoryCoordinatorStream, now: JobModel) -> JobModelPublished:
    """The model is published on a cluster that has every host."""
    return publish(now, stream, lambda host: host)


def failed_over(
    stream: InMemoryCoordinatorStream, active: str, standby: ProcessorId | None, step: str
) -> None:
    """The failover of the active one is under way."""
    used, host = ((standby,), NM2) if standby is not None else ((), None)
    recorded = RecordedFailover(4, standby, host, step, used)
    stream.write([FailoverManager.message(ProcessorId(active), recorded)])
    stream.catch_up()


def test_the_allocator_gets_the_active_of_each_standby(stream: InMemoryCoordinatorStream) -> None:
    """By the field of the model, not by the form of an id."""
    stated = published(stream, model(replicas=1))
    assert dict(stated.standbys) == {S0: P0, ProcessorId("1-0"): P1}
    assert set(stated.processors) == {P0, P1, S0, "1-0"}
    assert published(stream, model(replicas=0)).standbys == {}


def test_a_key_never_stops_an_active_container_and_its_standby_together(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A change that every start reads raises the epochs of active containers; a lost task, both."""
    before = model(replicas=1)
    published(stream, before)
    epochs = EpochManager(stream)
    stream.write(
        [processor_epoch_message(p, ProcessorEpoch(3, 1)) for p in (P0, P1, S0, ProcessorId("1-0"))]
    )
    stream.catch_up()
    after = replace(before, config=before.config.merged({"my.key": "5"}))
    publish(after, stream, lambda host: host, restart_all=True)
    raised = {p for p, record in epochs.read_processor_epochs().items() if record.is_raised}
    assert raised == {P0, P1}
    publish(model(replicas=1, containers=1), stream, lambda host: host, restart_all=True)
    raised = {p for p, record in epochs.read_processor_epochs().items() if record.is_raised}
    assert raised == {P0, P1, S0, "1-0"}


def test_the_allocator_receives_failovers_under_way(stream: InMemoryCoordinatorStream) -> None:
    """Be it a driver of this attempt or of the next one."""
    now = model(replicas=2)
    published(stream, now)
    failed_over(stream, "0", S1, "standby")
    failed_over(stream, "1", None, "other-host")
    first = FailoverRecord(4, S1, NM2, FailoverStep.STANDBY, (S1,))
    last = FailoverRecord(4, None, None, FailoverStep.OTHER_HOST)
    assert published(stream, now).failovers == {P0: first, P1: last}


@pytest.mark.parametrize(
    ("active", "standby", "step"),
    [
        ("0", S1, "standby"),
        ("1", S0, "standby"),
        ("2", None, "other-host"),
        ("0-0", None, "other-host"),
        ("0", S0, "of another version"),
    ],
)
def test_a_failover_that_the_model_has_no_room_for_is_over(
    stream: InMemoryCoordinatorStream, active: str, standby: ProcessorId | None, step: str
) -> None:
    """Hot standby has fewer replicas now, or is off: its record goes with the publication."""
    published(stream, model(replicas=2))
    failed_over(stream, "1", ProcessorId("1-0"), "standby")
    failed_over(stream, active, standby, step)
    stated = published(stream, model(replicas=1))
    assert set(stated.failovers) == {P1} - {active}
    assert set(stream.latest(MessageType.SET_FAILOVER)) == set(stated.failovers)


def test_a_change_elsewhere_leaves_a_standby_alone(stream: InMemoryCoordinatorStream) -> None:
    """What it replicates is the same, though no record has the name of its active task."""
    published(stream, model(1, partitions=4, containers=2))
    for processor in ("0", "0-0", "1", "1-0"):
        EpochManager(stream).write_processor_epoch(ProcessorId(processor), ProcessorEpoch(3, 1))
    stream.catch_up()
    stated = published(stream, model(1, partitions=5, containers=2))
    raised = {p for p, floor in stated.floors.items() if floor > stated.epochs[p]}
    assert raised == stated.gainers == {P0, S0}
