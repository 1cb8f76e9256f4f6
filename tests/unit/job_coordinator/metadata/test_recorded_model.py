"""The JobModel that records add up to is the one that was published."""

from __future__ import annotations

from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.message import MessageType, tombstone
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.metadata.recorded_model import ModelRecords, recorded_model
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream

CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "k",
        "job.container.count": "2",
        "job.host-affinity.enabled": "true",
        "job.hotstandby.enabled": "true",
        "task.inputs": "k.a,k.b",
        "task.broadcast.inputs": "k.rules#0",
    }
)
STANDBYS = "job.hotstandby.replicationcount"
COUNTS = {SystemStream("k", "a"): 3, SystemStream("k", "b"): 5, SystemStream("k", "rules"): 1}


def _published(model: JobModel, *, of_standbys: bool) -> InMemoryCoordinatorStream:
    stream = InMemoryCoordinatorStream()
    tasks = [t for c in model.containers.values() for t in c.tasks.values()]
    processors = {n: c.processor_id for c in model.containers.values() for n in c.tasks}
    stream.write(TaskAssignmentManager(stream).messages(processors))
    stream.write(TaskModeManager(stream).messages(model))
    stream.write(TaskPartitionManager(stream).messages(model))
    ChangelogPartitionManager(stream).write(
        {t.task_name: t.changelog_partition for t in tasks if of_standbys or t.active_task is None}
    )
    stream.catch_up()
    return stream


def test_all_of_it_is_recorded() -> None:
    """Tasks, modes, all inputs, changelog partitions, the active of each standby."""
    model = calculate_job_model(CONFIG, COUNTS, NOTHING)
    assert any(c.active_processor for c in model.containers.values())
    for of_standbys in (True, False):
        assert recorded_model(_published(model, of_standbys=of_standbys), CONFIG) == model


def test_an_empty_stream_has_no_containers() -> None:
    """Before the first publication."""
    assert recorded_model(InMemoryCoordinatorStream(), CONFIG) == JobModel(CONFIG, {})


def test_a_standby_shares_no_changelog_partition_but_that_of_its_active_task() -> None:
    """Not that of another standby of it."""
    two_each = Config({**CONFIG, "job.container.count": "3", STANDBYS: "2"})
    model = calculate_job_model(two_each, COUNTS, NOTHING)
    stream = _published(model, of_standbys=False)
    tasks = [t for c in model.containers.values() for t in c.tasks.values()]
    standby = max(t.task_name for t in tasks if t.active_task is not None)
    recorded = ChangelogPartitionManager(stream).read()
    ChangelogPartitionManager(stream).write({**recorded, standby: 70, TaskName("gone"): 1})
    stream.catch_up()
    tasks_of = [c.tasks for c in recorded_model(stream, two_each).containers.values()]
    found = {name: task.changelog_partition for tasks in tasks_of for name, task in tasks.items()}
    assert found.pop(standby) == 70
    expected = {t.task_name: t.changelog_partition for t in tasks if t.task_name != standby}
    assert found == expected


def test_tasks_of_which_no_changelog_partition_is_recorded_have_the_first() -> None:
    """Partition 0, as Samza's reader has it."""
    model = calculate_job_model(CONFIG, COUNTS, NOTHING)
    stream = _published(model, of_standbys=False)
    for kind in (MessageType.SET_CHANGELOG, MessageType.SET_STATE_FACT):
        stream.write([tombstone(kind, key) for key in stream.latest(kind)])
    stream.catch_up()
    tasks_of = [c.tasks.values() for c in recorded_model(stream, CONFIG).containers.values()]
    assert {task.changelog_partition for tasks in tasks_of for task in tasks} == {0}


def test_a_model_that_was_not_written_counts_for_nothing() -> None:
    """After a change with less of an input, which Kafka did not take, nothing is news."""
    model = calculate_job_model(CONFIG, COUNTS, NOTHING)
    fewer = calculate_job_model(CONFIG, {**COUNTS, SystemStream("k", "b"): 4}, NOTHING)
    stream = InMemoryCoordinatorStream()
    records = ModelRecords(stream)
    stream.write(records.messages(model))
    stream.catch_up()
    records.written(model)
    assert records.messages(fewer)
    assert records.messages(model) == []
    assert ModelRecords(stream).messages(model) == []


def test_a_record_that_another_wrote_with_the_model_is_put_right() -> None:
    """The model is the same; the stream is read once both are in it."""
    model = calculate_job_model(CONFIG, COUNTS, NOTHING)
    stream = InMemoryCoordinatorStream()
    records = ModelRecords(stream)
    made = records.messages(model)
    odd = [
        next(m for m in made if m.type == MessageType.SET_TASK_MODE),
        next(m for m in made if m.type == MessageType.SET_TASK_CONTAINER),
    ]
    stream.write([*made, tombstone(odd[0].type, odd[0].key), odd[1]._replace(values={})])
    stream.catch_up()
    records.written(model)
    again = records.messages(model)
    assert [m._replace(source="") for m in again] == sorted(odd, key=made.index)
