"""A record that a tool or a program of Samza's wrote: no driver dies of it, and no state is mixed.

Each type of record has a slip here, such as another value for a task that has one. Afterwards an
attempt without a JobModel on its disk begins, and a running job is changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import own_records
import pytest
from live_jobs import COUNT, IN, STORE
from live_jobs import FILE as RUNNING
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.job_model import input_acceptance, publication
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration
from homeport.appmaster.job_model.model_change import ModelPlanner, first_model
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.cli.yarn import state_check
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
    Namespace,
)
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.topics import StreamMetadataCache
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    ProcessorEpoch,
    epoch_floor_message,
    processor_epoch_message,
)
from homeport.job_coordinator.metadata.state_facts import (
    ChangelogPartitionManager,
    StateFactManager,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskMode,
)
from homeport.job_coordinator.planning import next_model
from homeport.job_coordinator.planning.input_watch import InputsSeen

FILE = RUNNING.merged({COUNT: "2", **STORE})
STATE = {TaskName(f"Partition {n}"): n for n in range(4)}
T0, T1 = TaskName("Partition 0"), TaskName("Partition 1")
P0, P1 = ProcessorId("0"), ProcessorId("1")
_ENV = {"execution-env-container-id": "c"}
_SSP = SystemStreamPartition("kafka", "in", 0)


def _of(kind: MessageType, key: str, /, **values: str) -> CoordinatorStreamMessage:
    return CoordinatorStreamMessage(kind, key, values)


SLIPS: dict[str, list[list[CoordinatorStreamMessage]]] = {
    MessageType.SET_CONFIG: [
        [wire.set_config("job.name", "other")],
        [wire.set_config("task.comit.ms", "5")],
        [wire.set_config(COUNT, "many")],
        [wire.set_config(COUNT, "9")],
        [wire.set_config("task.inputs", "kafka.other")],
    ],
    MessageType.SET_CHANGELOG: [
        [wire.set_changelog(T0, 1), wire.set_changelog(T1, 0)],
        [wire.set_changelog(T0, 1)],
        [wire.set_changelog(T0, 9)],
        [wire.tombstone(MessageType.SET_CHANGELOG, T0)],
        [_of(MessageType.SET_CHANGELOG, T0, Partition="x")],
        [wire.set_changelog("Partition 9", 0)],
    ],
    MessageType.SET_CONTAINER_HOST: [[wire.set_container_host_assignment("7", "nowhere")]],
    MessageType.SET_TASK_CONTAINER: [
        [wire.set_task_container_assignment(T0, "1")],
        [wire.set_task_container_assignment(T0, "7")],
        [wire.tombstone(MessageType.SET_TASK_CONTAINER, T0)],
    ],
    MessageType.SET_TASK_MODE: [[wire.set_task_mode_assignment(T0, TaskMode.STANDBY)]],
    MessageType.SET_TASK_PARTITION: [[wire.set_task_partition_assignment(_SSP, [T1])]],
    MessageType.SET_EXECUTION_ENV_CONTAINER_ID: [
        [_of(MessageType.SET_EXECUTION_ENV_CONTAINER_ID, "0", **_ENV)]
    ],
    MessageType.SET_JOB_COORDINATOR_METADATA: [
        [_of(MessageType.SET_JOB_COORDINATOR_METADATA, "YARN", **{"meta-key": "{}"})]
    ],
    MessageType.SET_MIGRATION_INFO: [[_of(MessageType.SET_MIGRATION_INFO, "migration", a="b")]],
    MessageType.SET_TASK_HOST: [[wire.set_task_host_assignment(T0, "nowhere")]],
    MessageType.SET_SUBMISSION: [[own_records.set_submission(9, "application_9_0009")]],
    MessageType.SET_AM_EPOCH: [[_of(MessageType.SET_AM_EPOCH, "am", submission="x")]],
    MessageType.SET_EPOCH_FLOOR: [[epoch_floor_message(9)]],
    MessageType.SET_PROCESSOR_EPOCH: [[own_records.set_processor_epoch("0", 9, 1, [])]],
    MessageType.SET_FENCED: [[own_records.set_fenced("0", 9, [{"processor_id": "0", "epoch": 9}])]],
    MessageType.SET_STOPPED: [[own_records.set_stopped("0", 9, "killed")]],
    MessageType.SET_JOB_MODEL_VERSION: [[own_records.set_job_model_version(9, "x")]],
    MessageType.SET_FAILOVER: [[_of(MessageType.SET_FAILOVER, "0", epoch="1", step="x")]],
    MessageType.SET_RETRY_STATE: [[own_records.set_retry_state("0", 9, 1)]],
    MessageType.SET_JOB_END: [[_of(MessageType.SET_JOB_END, "job-end", submission="1")]],
    MessageType.SET_STATE_RESET: [[_of(MessageType.SET_STATE_RESET, "state-reset", phase="?")]],
    MessageType.SET_STATE_FACT: [
        [_of(MessageType.SET_STATE_FACT, "partitions 0", x="y")],
        [_of(MessageType.SET_STATE_FACT, "changelog kafka.s", key="string")],
        [wire.tombstone(MessageType.SET_STATE_FACT, "partitions 0")],
    ],
    MessageType.SET_CHANGELOG_TOPIC: [[_of(MessageType.SET_CHANGELOG_TOPIC, "kafka.s")]],
    MessageType.SET_CHECKPOINT_TOPIC: [[_of(MessageType.SET_CHECKPOINT_TOPIC, "kafka.c")]],
    MessageType.SET_INPUT_TOPIC: [[_of(MessageType.SET_INPUT_TOPIC, "kafka.in")]],
    MessageType.SET_OUTPUT_TOPIC: [[_of(MessageType.SET_OUTPUT_TOPIC, "kafka.out")]],
    MessageType.SET_INPUT_PARTITIONS: [[_of(MessageType.SET_INPUT_PARTITIONS, "kafka.in")]],
    MessageType.SET_PACKAGE: [[_of(MessageType.SET_PACKAGE, "ab", pieces="9")]],
    MessageType.SET_USED_HOST: [[_of(MessageType.SET_USED_HOST, "nowhere")]],
    MessageType.SET_AUDITED: [[_of(MessageType.SET_AUDITED, "set-config", offset="x")]],
    MessageType.SET_UPGRADE: [[_of(MessageType.SET_UPGRADE, "state", id="u")]],
    **{kind.value: [[wire.of_namespace(kind, "u", b"{}")]] for kind in Namespace},
}
"""{type: what may be written of it at once}."""
CASES = [
    pytest.param(slip, id=f"{kind}-{number}")
    for kind, slips in SLIPS.items()
    for number, slip in enumerate(slips)
]
_REFUSED = {MessageType.SET_TASK_MODE, MessageType.SET_TASK_PARTITION}
"""Records of these types decide what a task reads: an attempt ends in one line about one."""


class Running:
    """A job with state, published, and an attempt that has its JobModel."""

    def __init__(self, folder: Path, slip: list[CoordinatorStreamMessage]) -> None:
        self.stream = InMemoryCoordinatorStream()
        ConfigManager(self.stream).replace(FILE, "test")
        self.job_models = JobModelStore(folder)
        model = calculate_job_model(FILE, {IN: 4}, NOTHING)
        self.publish(model)
        self.job_models.enter(1, model)
        self.stream.write(slip)
        self.stream.catch_up()

    def publish(self, model: JobModel) -> None:
        """As a driver does."""
        publication.publish(model, self.stream, lambda host: host)
        self.stream.catch_up()


@pytest.fixture
def running(
    tmp_path: Path, slip: list[CoordinatorStreamMessage], monkeypatch: pytest.MonkeyPatch
) -> Running:
    """The job after the slip; its input has four partitions."""
    counts: Mapping[SystemStream, int] = {IN: 4}
    monkeypatch.setattr(StreamMetadataCache, "partition_counts", lambda *_: counts)
    monkeypatch.setattr(input_acceptance, "inputs_now", lambda _: InputsSeen(counts, {}))
    monkeypatch.setattr(next_model, "create_topics", lambda *_, **__: None)
    return Running(tmp_path, slip)


def numbers(model: JobModel) -> dict[TaskName, int]:
    """Whose state each task has."""
    found = (task for c in model.containers.values() for task in c.tasks.values())
    return {task.task_name: task.changelog_partition for task in found}


def test_every_type_of_record_has_a_slip() -> None:
    """A new type needs one."""
    assert {*SLIPS} == {*MessageType, *Namespace}


@pytest.mark.parametrize("slip", CASES)
def test_a_new_attempt_has_the_state_of_before(
    running: Running, slip: list[CoordinatorStreamMessage]
) -> None:
    """It begins with the same state for each task, and the stream has that again."""
    try:
        model = first_model(Submitted(FILE, FILE), running.stream)
    except ConfigError:
        assert {message.type for message in slip} <= _REFUSED
        return
    assert numbers(model) == STATE
    running.publish(model)
    manager = ChangelogPartitionManager(running.stream)
    assert STATE.items() <= manager.read().items()
    assert list(manager.contradictions()) == []


@pytest.mark.parametrize("slip", CASES)
def test_a_running_job_that_is_changed_keeps_its_state(
    running: Running, slip: list[CoordinatorStreamMessage]
) -> None:
    """Another count of containers, and the configuration that the stream has now."""
    planner = ModelPlanner(running.stream, running.job_models, lambda _: {IN: 4}, lambda *_: None)
    try:
        model = planner.reconfigured(FILE.merged({COUNT: "3"}))
    except ConfigError:
        assert {message.type for message in slip} <= _REFUSED
    else:
        assert numbers(model) == STATE
    live = LiveConfiguration(Submitted(FILE, FILE))
    wanted = live.wanted(ConfigManager(running.stream).deployed())
    if wanted is None:
        assert live.fault
    elif wanted["task.inputs"] != FILE["task.inputs"]:
        with pytest.raises(ConfigError, match=r"task\.inputs"):
            planner.reconfigured(wanted)
    else:
        assert wanted == FILE or wanted[COUNT] == "9"


@pytest.mark.parametrize("slip", [SLIPS[MessageType.SET_CHANGELOG][n] for n in range(5)])
def test_run_job_names_the_record_to_write(running: Running) -> None:
    """A task's changelog partition is one of the facts that a job with state keeps."""
    with pytest.raises(ConfigError) as caught:
        state_check.require_unchanged(running.stream, FILE)
    assert str(caught.value).startswith("set-changelog Partition 0")
    assert "is in changelog partition 0" in str(caught.value)
    assert "--type=set-changelog --key='Partition 0' --value=0" in caught.value.remedy
    assert "reset-state" not in caught.value.remedy


@pytest.mark.parametrize("slip", [SLIPS[MessageType.SET_CHANGELOG][0]])
def test_what_a_driver_puts_right_is_in_its_log(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator finds there why the record did nothing."""
    with caplog.at_level(logging.WARNING):
        running.publish(running.job_models.model)
    lines = [r.getMessage() for r in caplog.records if "is put right" in r.getMessage()]
    assert [line.partition(" = ")[0].rpartition(": ")[2] for line in lines] == [
        "set-changelog Partition 0",
        "set-changelog Partition 1",
    ]


@pytest.mark.parametrize("slip", [[wire.set_task_container_assignment(T0, "1")]])
def test_the_owner_that_runs_is_fenced_whatever_the_stream_has(running: Running) -> None:
    """A record gives a task to another container than the one that processes its input."""
    epochs = EpochManager(running.stream)
    running.stream.write(
        [
            processor_epoch_message(p, ProcessorEpoch(1, 1))
            for p in running.job_models.model.containers
        ]
    )
    running.stream.catch_up()
    planner = ModelPlanner(running.stream, running.job_models, lambda _: {IN: 4}, lambda *_: None)
    model = planner.reconfigured(FILE.merged({"my.key": "5"}))
    in_force = running.job_models.model
    assert T0 in model.containers[P1].tasks
    assert T0 in in_force.containers[P0].tasks
    publication.publish(model, running.stream, lambda host: host, in_force=in_force)
    running.stream.catch_up()
    found = epochs.read_processor_epochs()
    assert found[P0].is_raised
    assert Incarnation(P0, 1) in found[P1].fence


@pytest.mark.parametrize("slip", [[wire.set_changelog(T0, 1)]])
def test_of_a_job_from_before_two_tasks_with_one_partition_are_refused_in_one_line(
    running: Running,
) -> None:
    """Only set-changelog has whose state is where: the remedy is a record to write."""
    gone = [
        wire.tombstone(MessageType.SET_STATE_FACT, key)
        for key in running.stream.latest(MessageType.SET_STATE_FACT)
    ]
    running.stream.write(gone)
    running.stream.catch_up()
    assert StateFactManager(running.stream).partitions() == {}
    planner = ModelPlanner(running.stream, running.job_models, lambda _: {IN: 4}, lambda *_: None)
    with pytest.raises(ConfigError) as caught:
        planner.reconfigured(FILE.merged({COUNT: "3"}))
    assert caught.value.key == "set-changelog Partition 1"
    assert "task 'Partition 0' has this changelog partition too" in caught.value.rule
    assert "--key='Partition 1' --value=0; no task has: 0" in caught.value.remedy
