"""What the job's state was made with."""

from __future__ import annotations

import pytest
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata import state_facts
from homeport.job_coordinator.metadata.state_facts import (
    ChangelogPartitionManager,
    StateFactManager,
    StoreForms,
)
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.task_assignment import TaskModeManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskMode


def record(key: str, /, **values: str) -> CoordinatorStreamMessage:
    """A record of the type."""
    return CoordinatorStreamMessage(MessageType.SET_STATE_FACT, key, values)


def test_the_forms_of_a_changelog_are_those_of_the_first_container(
    stream: InMemoryCoordinatorStream,
) -> None:
    """They stay, whatever a later one has; a reset of the state takes them away."""
    facts = StateFactManager(stream)
    first = {"kafka.a": StoreForms("string", "json")}
    put(stream, *facts.form_messages(first))
    later = {"kafka.a": StoreForms("string", "long"), "kafka.b": StoreForms("long", "bytes")}
    assert [m.key for m in facts.form_messages(later)] == ["changelog kafka.b"]
    assert facts.forms() == first
    assert facts.partitions() == {}
    put(stream, *state_removed(stream))
    assert facts.forms() == {}


def test_a_damaged_record_is_as_none(stream: InMemoryCoordinatorStream) -> None:
    """What it should have is what set-changelog has, or the next container writes."""
    put(
        stream,
        record("partitions 0", **{"0": "t0", "x": "t1"}),
        record("partitions 256", **{"256": "t256"}),
        record("changelog kafka.a", key="string"),
        record("changelog kafka.b", key="string", msg="json"),
        record("another kind", a="b"),
    )
    facts = StateFactManager(stream)
    assert facts.partitions() == {"t256": 256}
    with pytest.raises(WireError, match="are no partition and its task"):
        state_facts._tasks_of(record("partitions 0", **{"0": "\ud800"}))
    assert facts.forms() == {"kafka.b": StoreForms("string", "json")}


T0, T1, T2 = TaskName("Partition 0"), TaskName("Partition 1"), TaskName("Partition 2")


def test_changelog_partitions_stay(stream: InMemoryCoordinatorStream) -> None:
    """Only what is new is written; partitions of vanished tasks stay."""
    manager = ChangelogPartitionManager(stream)
    manager.write({T0: 0, T1: 1})
    stream.catch_up()
    manager.write({T1: 1, T2: 2})
    stream.catch_up()
    assert manager.read() == {T0: 0, T1: 1, T2: 2}
    assert len(stream.log) == 5  # three tasks; twice the record that they share


def test_a_damaged_changelog_partition_stops(stream: InMemoryCoordinatorStream) -> None:
    """Without it a task could be given another task's state."""
    put(stream, CoordinatorStreamMessage(MessageType.SET_CHANGELOG, T0, {"Partition": "x"}))
    with pytest.raises(WireError, match="Partition 0"):
        ChangelogPartitionManager(stream).read()


STANDBY = TaskName("Standby-Partition 0-0")


@pytest.fixture
def manager(stream: InMemoryCoordinatorStream) -> ChangelogPartitionManager:
    """The records of a job with two tasks, and a standby of the first."""
    manager = ChangelogPartitionManager(stream)
    put(
        stream,
        *manager.messages({T0: 0, T1: 1, STANDBY: 0}, [STANDBY]),
        wire.set_task_mode_assignment(STANDBY, TaskMode.STANDBY),
    )
    assert TaskModeManager(stream).read() == {STANDBY: TaskMode.STANDBY}
    return manager


@pytest.mark.parametrize(
    ("task", "partition", "refusal"),
    [
        (T0, 1, "task 'Partition 0' has changelog partition 0, and its state is there"),
        (T0, 9, "task 'Partition 0' has changelog partition 0"),
        (T0, None, "task 'Partition 0' has changelog partition 0"),
        (T2, 1, "task 'Partition 1' has this changelog partition"),
        (T0, 0, None),
        (T2, 2, None),
        (T2, None, None),
    ],
)
def test_a_tool_changes_no_tasks_partition(
    manager: ChangelogPartitionManager, task: TaskName, partition: int | None, refusal: str | None
) -> None:
    """What is so may be written again, and a task that is not known may get a free number."""
    if refusal is None:
        manager.refuse(task, partition)
        return
    with pytest.raises(ConfigError, match=refusal) as caught:
        manager.refuse(task, partition)
    assert caught.value.key == "set-changelog"


def test_the_number_to_write_is_a_free_one(manager: ChangelogPartitionManager) -> None:
    """One that was never used, where there is no gap."""
    with pytest.raises(ConfigError, match="write a free one: 2"):
        manager.refuse(T2, 1)
    manager.write({TaskName("far"): 4})
    manager._stream.catch_up()
    with pytest.raises(ConfigError, match="write a free one: 2, 3"):
        manager.refuse(T2, 1)


def test_of_a_job_from_before_the_record_at_fault_may_be_put_right(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Two tasks with one number: one of them gets a free one; a sound record stays."""
    put(stream, *[wire.set_changelog(t, n) for t, n in ((T0, 1), (T1, 1), (T2, 2))])
    manager = ChangelogPartitionManager(stream)
    manager.refuse(T0, 0)
    for task, partition in ((T0, 2), (T2, 0), (T2, None)):
        with pytest.raises(ConfigError):
            manager.refuse(task, partition)


def test_the_jobs_own_record_is_right(
    stream: InMemoryCoordinatorStream, manager: ChangelogPartitionManager
) -> None:
    """Another value, none, and damage: what is read stays; the next publication puts it right."""
    bad = CoordinatorStreamMessage(MessageType.SET_CHANGELOG, T1, {"Partition": "x"})
    put(stream, wire.set_changelog(T0, 1), bad)
    assert manager.read() == {T0: 0, T1: 1, STANDBY: 0}
    assert [error.key for error in manager.contradictions()] == [
        "set-changelog Partition 0",
        "set-changelog Partition 1",
    ]
    manager.refuse(T0, 0)
    assert manager.messages({T0: 0, T1: 1}) == (
        wire.set_changelog(T0, 0),
        wire.set_changelog(T1, 1),
    )
    put(stream, wire.tombstone(MessageType.SET_CHANGELOG, T0))
    assert manager.read()[T0] == 0
    assert [error.value for error in manager.contradictions()] == [None, "x"]


def test_many_tasks_share_a_record(stream: InMemoryCoordinatorStream) -> None:
    """A new task rewrites one of them."""
    facts = StateFactManager(stream)
    tasks = {TaskName(f"t{n}"): n for n in range(600)}
    put(stream, *facts.partition_messages(tasks))
    assert facts.partitions() == tasks
    assert len(stream.log) == 3
    (only,) = facts.partition_messages({TaskName("new"): 600})
    assert only.key == "partitions 512"
    assert list(facts.partition_messages(tasks)) == []
