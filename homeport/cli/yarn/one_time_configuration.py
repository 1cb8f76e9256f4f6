"""One-time configuration: what run-job refuses to change on a job that has state.

Source: COORD, benefit 3: "Without persistent configuration, there is no easy way to check whether
a job's current configuration is valid or not." The coordinator stream is that configuration.
"""

from __future__ import annotations

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.grouper.factories import has_own_grouper
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.one_time_configuration import (
    has_state,
    require_same_keys,
    require_same_tasks,
)
from homeport.job_coordinator.metadata.changelog_partitions import ChangelogPartitionManager
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.planning.next_model import counts_now, previous_assignment


def require_unchanged(stream: CoordinatorStream, config: Config) -> None:
    """``config`` fits the state that the job has, if it has any.

    A grouper of the job's own is not at hand here; what its tasks read is not looked at.

    Args:
        stream: the job's, read to its head; nothing is written.
        config: what the job is to run with.

    Raises:
        ConfigError: a one-time key, or what tasks there are, what they read and which changelog
            partition they have, would change; or a reset of the state was begun and not finished.
    """
    StateResetManager(stream).require_finished()
    running, before = ConfigManager(stream).deployed(), previous_assignment(stream)
    if not has_state(running, before):
        return
    for error in ChangelogPartitionManager(stream).contradictions():
        raise error
    require_same_keys(running, config, before)
    if not has_own_grouper(config):
        model = calculate_job_model(config, counts_now(config), before)
        require_same_tasks(running, before, model)
