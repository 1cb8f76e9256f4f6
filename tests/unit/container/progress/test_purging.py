"""Which records of a repartition are deleted, and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homeport.container.progress.purging import Purging
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStream, SystemStreamPartition

_OWN = SystemStream("kafka", "own")
_TASK = TaskName("Partition 0")


def _at(partition: int, stream: str = "own") -> SystemStreamPartition:
    return SystemStreamPartition("kafka", stream, partition)


def test_committed_records_are_due_once_an_interval_has_passed() -> None:
    """The first one too: a container that starts has other work."""
    purging = Purging([_OWN], 30, now_s=100)
    purging.committed({_TASK: {_at(0): 4, _at(0, "in"): 9}})
    assert purging.due(129) == {}
    assert purging.due(130) == {_at(0): 5}
    purging.answered(_at(0), is_deleted=True)
    assert purging.due(200) == {}, "nothing has come since"
    purging.committed({_TASK: {_at(0): 5}})
    assert purging.due(200) == {_at(0): 6}


def test_what_was_not_deleted_is_due_again_after_an_interval() -> None:
    """With what has come meanwhile; no request leaves while an answer is awaited."""
    purging = Purging([_OWN], 10)
    purging.committed({_TASK: {_at(0): 1, _at(1): 2}})
    assert purging.due(10) == {_at(0): 2, _at(1): 3}
    purging.answered(_at(1), is_deleted=True)
    purging.committed({_TASK: {_at(0): 3}})
    assert purging.due(30) == {}
    purging.answered(_at(0), is_deleted=False)
    assert purging.due(30) == {_at(0): 4}


def test_a_deletion_that_failed_is_due_again_without_a_new_record() -> None:
    """Else the disk would stay full until the next record."""
    purging = Purging([_OWN], 10)
    purging.committed({_TASK: {_at(0): 0}})
    assert purging.due(10) == {_at(0): 1}
    purging.answered(_at(0), is_deleted=False)
    assert purging.due(19) == {}, "an interval lies between two requests"
    assert purging.due(20) == {_at(0): 1}
    purging.answered(_at(0), is_deleted=True)
    assert purging.due(40) == {}


_COMMIT = st.dictionaries(st.integers(0, 2), st.integers(0, 9), min_size=1)
_STEPS = st.lists(st.one_of(_COMMIT, st.integers(0, 40), st.booleans()), max_size=30)


@given(_STEPS)
def test_nothing_is_asked_for_that_is_not_committed(
    steps: list[dict[int, int] | int | bool],
) -> None:
    """Whatever the order of commits, answers and waits; nor more often than allowed."""
    purging, now_s, last_s = Purging([_OWN], 10), 0, 0
    committed: dict[SystemStreamPartition, int] = {}
    waiting: dict[SystemStreamPartition, int] = {}
    for step in steps:
        if isinstance(step, bool):
            for ssp in waiting:
                purging.answered(ssp, is_deleted=step)
            waiting = {}
        elif isinstance(step, int):
            now_s += step
            due = purging.due(now_s)
            if due:
                assert not waiting
                assert now_s - last_s >= 10
                last_s, waiting = now_s, due
            assert all(offset <= committed[ssp] + 1 for ssp, offset in due.items())
        else:
            for partition, more in step.items():
                committed[_at(partition)] = committed.get(_at(partition), -1) + more
            done = {_at(p): committed[_at(p)] for p in step if committed[_at(p)] >= 0}
            purging.committed({_TASK: done})
