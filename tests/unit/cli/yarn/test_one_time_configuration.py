"""What run-job refuses to change, read from the coordinator stream."""

from __future__ import annotations

import pytest

from homeport.cli.yarn import state_check
from homeport.cli.yarn.state_check import require_unchanged
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.model.job_model import SystemStream, SystemStreamPartition

GROUPER = "job.systemstreampartition.grouper.factory"
CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.class": "m:T",
        "task.inputs": "kafka.in",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": "kafka.s",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "json",
    }
)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> InMemoryCoordinatorStream:
    """Of a job with state, whose only input has two partitions."""
    counts = {SystemStream("kafka", "in"): 2}
    monkeypatch.setattr(state_check, "counts_now", lambda _config: counts)
    made = InMemoryCoordinatorStream()
    ConfigManager(made).replace(CONFIG, "job-runner")
    for number in range(2):
        task = f"Partition {number}"
        ssp = SystemStreamPartition("kafka", "in", number)
        made.write(
            [
                wire.set_changelog(task, number),
                wire.set_task_container_assignment(task, "0"),
                wire.set_task_partition_assignment(ssp, [task]),
            ]
        )
    made.catch_up()
    return made


def test_the_same_job_again_is_no_change(stream: InMemoryCoordinatorStream) -> None:
    """Nothing is written, whatever is found."""
    written = len(stream.log)
    require_unchanged(stream, CONFIG.merged({"job.container.count": "2", "task.commit.ms": "1"}))
    assert len(stream.log) == written


def test_a_changed_key_is_one_line_with_old_new_and_remedy(
    stream: InMemoryCoordinatorStream,
) -> None:
    """COORD, benefit 3; without state it may change."""
    written, changed = len(stream.log), CONFIG.merged({GROUPER: "all-ssp-to-single-task"})
    with pytest.raises(ConfigError) as caught:
        require_unchanged(stream, changed)
    assert str(caught.value) == (
        f"{GROUPER} = 'all-ssp-to-single-task': it was 'its default' when the job's state was "
        "made, which a change would mix up; set it back, or begin from nothing by run-job "
        "--reset-state"
    )
    assert len(stream.log) == written
    ConfigManager(stream).replace(
        Config({k: v for k, v in CONFIG.items() if not k.startswith("stores.")}), "job-runner"
    )
    require_unchanged(stream, changed)


def test_an_input_that_has_other_partitions_is_reported(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key changed: the facts did. Expansion, where it is on, says so in its own words."""
    counts = {SystemStream("kafka", "in"): 1}
    monkeypatch.setattr(state_check, "counts_now", lambda _config: counts)
    with pytest.raises(ConfigError, match=r"input kafka\.in has 1 partitions and had 2"):
        require_unchanged(stream, CONFIG)
    fixed = CONFIG.merged({"job.systemstreampartition.input.expansion.enabled": "false"})
    ConfigManager(stream).replace(fixed, "job-runner")
    with pytest.raises(ConfigError, match=r"it was .task 'Partition 1' of kafka\.in#1. when"):
        require_unchanged(stream, fixed)


def test_an_unfinished_reset_must_be_finished_first(stream: InMemoryCoordinatorStream) -> None:
    """Whatever the configuration says."""
    StateResetManager(stream).write(StateReset(1, ResetPhase.BEGUN))
    stream.catch_up()
    with pytest.raises(ConfigError, match="finish it by run-job --reset-state"):
        require_unchanged(stream, CONFIG)
