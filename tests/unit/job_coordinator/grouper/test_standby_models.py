"""Standby containers in the JobModel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.standby_models import temporary_standby, with_standbys
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)


def _actives(groups: dict[str, list[str]]) -> dict[ProcessorId, ContainerModel]:
    found = {}
    number = 0
    for id_, names in groups.items():
        tasks = {}
        for name in names:
            ssp = SystemStreamPartition("kafka", "a.b-c", number)
            tasks[TaskName(name)] = TaskModel(TaskName(name), (ssp,), number)
            number += 1
        found[ProcessorId(id_)] = ContainerModel(ProcessorId(id_), tasks)
    return found


def test_a_temporary_standby_keeps_the_state_of_its_active() -> None:
    """Its tasks have the inputs and the changelog partitions of the active ones."""
    (active,) = _actives({"0": ["Partition 2", "Partition 0"]}).values()
    standby = temporary_standby(active)
    assert standby.processor_id == "0-warm"
    assert (standby.role, standby.active_processor) == (TaskMode.STANDBY, "0")
    assert list(standby.tasks) == ["Standby-Partition 0-warm", "Standby-Partition 2-warm"]
    kept = {task.state_of: task.changelog_partition for task in standby.tasks.values()}
    assert kept == {name: task.changelog_partition for name, task in active.tasks.items()}


def test_each_active_container_has_its_replicas() -> None:
    """S3: 0-0 and 0-1, Standby-<task>-0 and -1, same inputs and changelog partition."""
    actives = _actives({"0": ["Partition 0", "Partition 2"], "1": ["Partition 1"]})
    containers = with_standbys(actives, 2)
    assert sorted(containers) == ["0", "0-0", "0-1", "1", "1-0", "1-1"]
    standby = containers[ProcessorId("0-1")]
    assert standby.role is TaskMode.STANDBY
    assert standby.active_processor == "0"
    assert list(standby.tasks) == ["Standby-Partition 0-1", "Standby-Partition 2-1"]
    task = standby.tasks[TaskName("Standby-Partition 2-1")]
    active = actives[ProcessorId("0")].tasks[TaskName("Partition 2")]
    assert (task.task_mode, task.active_task) == (TaskMode.STANDBY, "Partition 2")
    assert task.mirror == active.mirror
    assert containers[ProcessorId("0")] == actives[ProcessorId("0")]
    assert containers[ProcessorId("0")].role is TaskMode.ACTIVE
    assert first_fault(JobModel(Config(), containers)) is None


@pytest.mark.parametrize(
    ("groups", "clash"),
    [
        ({"0": ["a"], "0-0": ["b"]}, "an active container has the id '0-0'"),
        ({"0": ["a"], "1": ["Standby-a-0"]}, "an active task has the id 'Standby-a-0'"),
    ],
)
def test_an_id_that_a_standby_is_to_have_is_refused(
    groups: dict[str, list[str]], clash: str
) -> None:
    """Two containers or tasks of one id would be one."""
    with pytest.raises(ConfigError, match=clash):
        with_standbys(_actives(groups), 1)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(_TEXT, min_size=1, max_size=5, unique=True), st.integers(1, 3), st.data())
def test_the_active_of_a_standby_survives_json_for_any_names(
    names: list[str], replicas: int, data: st.DataObject
) -> None:
    """Defect 17.1: hyphens, Standby- in front, any script: JSON keeps the active without a field.

    Samza takes a hyphen for the mark of a standby, and cuts names at the first two.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(data.draw(st.sampled_from(["0", "a-b", "7e-ü"])), []).append(name)
    try:
        containers = with_standbys(_actives(groups), replicas)
    except ConfigError:  # a name that its neighbour's standby would have
        return
    model = JobModel(Config(), dict(sorted(containers.items())))
    read = decode_job_model(encode_job_model(model, mask_secrets=False))
    assert read == model
    assert first_fault(read) is None
