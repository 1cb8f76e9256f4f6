"""How an attempt takes over; what standbys leave in the stream; the JobModels that it keeps."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import (
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
)
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.publication import publish
from homeport.appmaster.job_model.takeover import permits, take_rank
from homeport.config.config import Config
from homeport.config.errors import FencedError, InvariantViolation
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import (
    AmEpoch,
    EpochManager,
    JobModelVersion,
    ProcessorEpoch,
    Rank,
    processor_epoch_message,
)
from homeport.job_coordinator.metadata.lifecycle import FailoverManager, RecordedFailover
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
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


def model(containers: int = 2, partitions: int = 4, replicas: int = 0) -> JobModel:
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


def same(host: Host) -> Host:
    """All locality has names."""
    return host


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
    write_permit(epochs, P0, ProcessorEpoch(4, 1))
    write_permit(epochs, P1, ProcessorEpoch(8, 2, (), permitted=7, unseen_ms=42_000))
    write_permit(epochs, P2, ProcessorEpoch(0, 2, (Incarnation(P1, 7),)))
    stream.catch_up()
    assert permits(stream, 500) == {Incarnation(P0, 4): 500, Incarnation(P1, 7): 42_000}


# --- what a published JobModel with standby containers leaves in the stream, and what it reports


S0, S1 = ProcessorId("0-0"), ProcessorId("0-1")
NM2 = Host("nm2")


def published(stream: InMemoryCoordinatorStream, now: JobModel) -> JobModelPublished:
    """The model is published on a cluster that has every host."""
    return publish(now, stream, same)


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
    stated = published(stream, model(2, 2, 1))
    assert dict(stated.standbys) == {S0: P0, ProcessorId("1-0"): P1}
    assert set(stated.processors) == {P0, P1, S0, "1-0"}
    assert published(stream, model(2, 2, 0)).standbys == {}


def test_a_key_never_stops_an_active_container_and_its_standby_together(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A change that every start reads raises the epochs of active containers; a lost task, both."""
    before = model(2, 2, 1)
    published(stream, before)
    epochs = EpochManager(stream)
    stream.write(
        [processor_epoch_message(p, ProcessorEpoch(3, 1)) for p in (P0, P1, S0, ProcessorId("1-0"))]
    )
    stream.catch_up()
    after = replace(before, config=before.config.merged({"my.key": "5"}))
    publish(after, stream, same, restart_all=True)
    raised = {p for p, record in epochs.read_processor_epochs().items() if record.is_raised}
    assert raised == {P0, P1}
    publish(model(1, 2, 1), stream, same, restart_all=True)
    raised = {p for p, record in epochs.read_processor_epochs().items() if record.is_raised}
    assert raised == {P0, P1, S0, "1-0"}


def test_the_allocator_receives_failovers_under_way(stream: InMemoryCoordinatorStream) -> None:
    """Be it a driver of this attempt or of the next one."""
    now = model(2, 2, 2)
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
    published(stream, model(2, 2, 2))
    failed_over(stream, "1", ProcessorId("1-0"), "standby")
    failed_over(stream, active, standby, step)
    stated = published(stream, model(2, 2, 1))
    assert set(stated.failovers) == {P1} - {active}
    assert set(stream.latest(MessageType.SET_FAILOVER)) == set(stated.failovers)


def test_a_change_elsewhere_leaves_a_standby_alone(stream: InMemoryCoordinatorStream) -> None:
    """What it replicates is the same, though no record has the name of its active task."""
    published(stream, model(2, 4, 1))
    for processor in ("0", "0-0", "1", "1-0"):
        write_permit(EpochManager(stream), ProcessorId(processor), ProcessorEpoch(3, 1))
    stream.catch_up()
    stated = published(stream, model(2, 5, 1))
    raised = {p for p, floor in stated.floors.items() if floor > stated.epochs[p]}
    assert raised == stated.gainers == {P0, S0}


# --- the JobModels of an attempt, by version


def made_of(*processor_ids: ProcessorId) -> JobModel:
    """A model with a secret and these processors."""
    config = Config({"systems.kafka.consumer.sasl.password": "secret"})
    return JobModel(config, {p: ContainerModel(p, {}) for p in processor_ids})


def named(version: int, of: JobModel) -> JobModelVersion:
    """As the coordinator stream names it."""
    body = encode_job_model(of, mask_secrets=False)
    return JobModelVersion(version, hashlib.sha256(body).hexdigest())


def test_a_saved_model_comes_back_by_version_and_digest(tmp_path: Path) -> None:
    """In a new process too, with its secrets, from a private file."""
    JobModelStore(tmp_path).save(3, made_of(P0))
    assert JobModelStore(tmp_path).find(named(3, made_of(P0))) == made_of(P0)
    assert (tmp_path / "job-model-3.json").stat().st_mode & 0o077 == 0


def test_a_model_that_was_never_published_is_not_found(tmp_path: Path) -> None:
    """A driver saved it and died: the stream names another digest, or a lower version."""
    job_models = JobModelStore(tmp_path)
    job_models.save(1, made_of(P0))
    job_models.save(2, made_of(P0, P1))
    assert job_models.find(named(2, made_of(P1))) is None
    assert job_models.find(named(3, made_of(P0))) is None
    job_models.enter(1, made_of(P0))
    assert job_models.get(2) is None


def test_every_version_of_the_attempt_is_served(tmp_path: Path) -> None:
    """The newest by default; more than are kept in memory, and none of before the attempt."""
    job_models = JobModelStore(tmp_path)
    assert job_models.get(None) is None
    models = {v: made_of(*(ProcessorId(str(n)) for n in range(v))) for v in range(4, 14)}
    for version, each in models.items():
        job_models.save(version, each)
        job_models.enter(version, each)
    assert job_models.get(None) == models[13]
    assert (job_models.version, job_models.model) == (13, models[13])
    assert {v: job_models.get(v) for v in models} == models
    assert [job_models.get(v) for v in (0, 3, 14)] == [None] * 3


def test_a_damaged_file_is_no_model(tmp_path: Path) -> None:
    """The store fetches the model as if the file did not exist."""
    job_models = JobModelStore(tmp_path)
    (tmp_path / "job-model-1.json").write_bytes(b"{")
    job_models.enter(2, made_of(P0))
    assert job_models.get(1) is None
    digest = hashlib.sha256(b"{").hexdigest()
    assert job_models.find(JobModelVersion(1, digest)) is None


def test_processors_of_former_models_are_known(tmp_path: Path) -> None:
    """A retired one is heard until it has stopped."""
    job_models = JobModelStore(tmp_path)
    with pytest.raises(InvariantViolation):
        job_models.model  # noqa: B018 - the property raises
    job_models.enter(1, made_of(P0, P1))
    job_models.enter(2, made_of(P0))
    job_models.remember([ProcessorId("7")])
    assert [job_models.knows(ProcessorId(p)) for p in ("0", "1", "7", "8")] == [
        True,
        True,
        True,
        False,
    ]
