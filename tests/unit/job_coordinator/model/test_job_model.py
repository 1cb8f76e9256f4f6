"""The JobModel's values."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)


def test_a_partition_prints_as_in_checkpoints() -> None:
    """The text is Samza's, with the key bucket only where it is used."""
    assert str(SystemStreamPartition("kafka", "in", 0)) == "SystemStreamPartition [kafka, in, 0]"
    assert (
        str(SystemStreamPartition("kafka", "in", 0, 1)) == "SystemStreamPartition [kafka, in, 0, 1]"
    )


def test_changelogs_reach_to_the_highest_partition() -> None:
    """One more than the highest changelog partition of any container."""
    tasks = [TaskModel(TaskName(f"t{n}"), (), n) for n in (0, 6, 2)]
    containers = {
        ProcessorId(t.task_name): ContainerModel(ProcessorId(t.task_name), {t.task_name: t})
        for t in tasks
    }
    assert JobModel(Config(), containers).max_change_log_stream_partitions == 7


def test_a_standbys_state_is_its_active_tasks() -> None:
    """Directories have the active task's name, whichever role keeps them."""
    active = TaskModel(TaskName("Partition 0"), (), 0)
    standby = TaskModel(
        TaskName("Standby-Partition 0-0"), (), 0, TaskMode.STANDBY, TaskName("Partition 0")
    )
    assert active.state_of == standby.state_of == "Partition 0"


def test_a_job_model_never_changes() -> None:
    """HA-STANDALONE: "make JobModel immutable"; of where tasks were it says nothing."""
    task = TaskModel(TaskName("t"), (), 0)
    container = ContainerModel(ProcessorId("0"), {task.task_name: task})
    model = JobModel(Config(), {container.processor_id: container})
    for value, field in ((model, "containers"), (container, "tasks"), (task, "task_mode")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field, None)
    assert [field.name for field in fields(JobModel)] == ["config", "containers"]


def test_a_model_without_what_another_has_too() -> None:
    """The same objects in the same container go; a task elsewhere stays, and one that is equal."""
    kept, moved, renewed = (TaskModel(TaskName(name), (), n) for n, name in enumerate("abc"))
    twin = TaskModel(renewed.task_name, (), renewed.changelog_partition)

    def model(containers: dict[str, list[TaskModel]]) -> JobModel:
        found = {
            ProcessorId(p): ContainerModel(ProcessorId(p), {t.task_name: t for t in tasks})
            for p, tasks in containers.items()
        }
        return JobModel(Config(), found)

    before = model({"0": [kept, moved], "1": [renewed]})
    after = model({"0": [kept], "1": [moved, twin], "2": []})
    assert after.tasks() == before.tasks()
    assert after.unlike(before) == model({"0": [], "1": [moved, twin], "2": []})
    assert before.unlike(after) == model({"0": [moved], "1": [renewed]})
    assert after.unlike(after) == model({"0": [], "1": [], "2": []})
