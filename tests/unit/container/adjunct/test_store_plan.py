"""Which stores a container has, which task fills each and which tasks read it."""

from __future__ import annotations

import itertools
from pathlib import PurePosixPath

from homeport.container.adjunct.store_plan import StorePlan, plan_stores
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskMode, TaskModel
from tests.unit.container.adjunct.adjuncts import PLANES, adjunct

_AIRLINES = adjunct("airlines", is_broadcast=True)
_ONE = ProcessorId("1")
_SHARED = tuple(SystemStreamPartition("kafka", "airlines", number) for number in (0, 1))


def _planes(number: int) -> SystemStreamPartition:
    return SystemStreamPartition("kafka", "planes", number)


def _task(number: int, *, standby: bool = False) -> TaskModel:
    name = TaskName(f"Partition {number}")
    flights = SystemStreamPartition("kafka", "flights", number)
    partitions = tuple(sorted((*_SHARED, flights, _planes(number))))
    if not standby:
        return TaskModel(name, partitions, number)
    replica = TaskName(f"Standby-{9 - number}")
    return TaskModel(replica, partitions, number, TaskMode.STANDBY, name)


def _plan(*numbers: int) -> StorePlan:
    return plan_stores([PLANES, _AIRLINES], [_task(number) for number in numbers], _ONE)


def test_a_partitioned_stream_has_a_store_for_each_task() -> None:
    """One for each "stream and task": its partitions, its folder, no other reader."""
    own = [item for item in _plan(0, 3).stores if item.store is PLANES]
    assert [(item.partitions, item.writer, item.readers) for item in own] == [
        ((_planes(number),), f"Partition {number}", (f"Partition {number}",)) for number in (0, 3)
    ]
    assert [item.directory for item in own] == [
        PurePosixPath(f"planes/Partition_{number}") for number in (0, 3)
    ]
    assert not any(item.is_of_container for item in own)


def test_a_broadcast_stream_has_one_store_that_all_tasks_share() -> None:
    """One task fills it, the rest only read."""
    (shared,) = (item for item in _plan(0, 3).stores if item.is_of_container)
    assert shared.store is _AIRLINES
    assert shared.partitions == _SHARED
    assert shared.writer == "Partition 0"
    assert shared.readers == ("Partition 0", "Partition 3")
    assert shared.directory == PurePosixPath("airlines/container-1")


def test_one_task_writes_the_stores_of_the_container() -> None:
    """The factory of the manager is given that."""
    plan = _plan(0, 3)
    assert plan.writes_container_stores(TaskName("Partition 0"))
    assert not plan.writes_container_stores(TaskName("Partition 3"))
    assert plan.shared == dict.fromkeys(_SHARED, "Partition 0")


def test_the_plan_is_the_same_in_whatever_order_the_tasks_come() -> None:
    """Every process that makes it has the same writer."""
    tasks = [_task(number) for number in (0, 3, 10)]
    plans = {
        plan_stores(adjuncts, order, _ONE)
        for order in itertools.permutations(tasks)
        for adjuncts in ((PLANES, _AIRLINES), (_AIRLINES, PLANES))
    }
    assert len(plans) == 1


def test_where_the_writer_leaves_the_next_start_has_another_one() -> None:
    """In the same folder: the store is the container's and not the writer's."""
    (before,), (after,) = (
        [item for item in _plan(*numbers).stores if item.is_of_container]
        for numbers in ((0, 3), (3,))
    )
    assert (before.writer, after.writer) == ("Partition 0", "Partition 3")
    assert before.directory == after.directory


def test_a_standby_has_the_folders_of_its_active_one() -> None:
    """Either takes over what the other left, whatever the standby's tasks are called."""
    active = _plan(0, 3)
    standby = plan_stores([PLANES, _AIRLINES], [_task(n, standby=True) for n in (0, 3)], _ONE)
    assert [i.directory for i in standby.stores] == [i.directory for i in active.stores]
    assert [i.partitions for i in standby.stores] == [i.partitions for i in active.stores]
    assert standby.shared == dict.fromkeys(_SHARED, "Standby-9")


def test_a_store_without_partitions_or_tasks_is_empty() -> None:
    """The stream has fewer partitions than the job has tasks; a container has no task."""
    task = TaskModel(TaskName("Partition 7"), (_SHARED[0],), 7)
    (planes,) = plan_stores([PLANES], [task], _ONE).stores
    assert planes.partitions == ()
    assert plan_stores([PLANES, _AIRLINES], [], _ONE).stores == ()
