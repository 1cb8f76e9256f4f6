"""What a deployment leaves of a job in its coordinator stream, for tests of its readers."""

from __future__ import annotations

import own_records

from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.job_model import JobModel


def record_job(store: CoordinatorStreamStore, model: JobModel, version: int = 1) -> None:
    """The stream has the model's configuration, its tasks and their owners; read to its head."""
    ConfigManager(store).replace(model.config, "job-runner")
    tasks = {name: c.processor_id for c in model.containers.values() for name in c.tasks}
    store.write(TaskAssignmentManager(store).messages(tasks))
    ChangelogPartitionManager(store).write(
        {n: t.changelog_partition for c in model.containers.values() for n, t in c.tasks.items()}
    )
    store.write(
        [*TaskModeManager(store).messages(model), *TaskPartitionManager(store).messages(model)]
    )
    store.write([own_records.set_job_model_version(version, "digest")])
    store.catch_up()
