"""GroupByContainerIds over whole sequences: what moves when processors come, go and restart."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.job_coordinator.grouper.task_name_grouper import GroupByContainerIds, TaskLocality
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import TaskModel

Owners = dict[TaskName, ProcessorId]
GROUPER = GroupByContainerIds(Config({}))


def host_of(processor_id: ProcessorId) -> Host:
    """Three locations, with processors side by side."""
    return Host(f"h{int(processor_id) % 3}")


def grouped(count: int, owners: Owners, there: list[ProcessorId]) -> Owners:
    """The owner of each task, where ``owners`` had them before."""
    tasks = [TaskModel(TaskName(f"t{i:03}"), (), i) for i in range(count)]
    known = {task: TaskLocality(p, host_of(p)) for task, p in owners.items()}
    answer = GROUPER.group(tasks, known, {p: host_of(p) for p in there})
    return {task: p for p, names in answer.items() for task in names}


def moved(before: Owners, after: Owners) -> set[TaskName]:
    """The tasks that have another owner."""
    return {task for task, owner in after.items() if before[task] != owner}


def load(owners: Owners, processor_id: ProcessorId) -> int:
    """How many tasks a processor has."""
    return list(owners.values()).count(processor_id)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(2, 8), st.data())
def test_a_rolling_restart_of_all_moves_little(
    task_count: int, size: int, data: st.DataObject
) -> None:
    """HA-STANDALONE: "minimal partition movements during rolling upgrade".

    Each processor leaves and comes back in turn. When it leaves, only its own tasks move; when it
    comes back, at most as many as it gets. So a restart moves at most 2 ceil(T / P) tasks, and the
    rolling restart of all at most 2 P ceil(T / P) <= 2 (T + P). One that is back within the
    debounce time never leaves, and nothing moves.
    """
    there = [ProcessorId(str(i)) for i in range(size)]
    owners = grouped(task_count, {}, there)
    assert grouped(task_count, owners, there) == owners
    largest = -(-task_count // size)
    total = 0
    for leaving in data.draw(st.permutations(there)):
        without = grouped(task_count, owners, [p for p in there if p != leaving])
        own = {task for task, owner in owners.items() if owner == leaving}
        assert moved(owners, without) == own
        back = grouped(task_count, without, there)
        assert len(moved(without, back)) <= largest
        total += len(own) + len(moved(without, back))
        owners = back
    assert total <= 2 * size * largest <= 2 * (task_count + size)


@settings(max_examples=60)
@given(st.integers(1, 60), st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=2, max_size=8))
def test_any_sequence_of_processors_moves_no_more_than_it_must(
    task_count: int, sequence: list[set[int]]
) -> None:
    """Even within one; of the processors that stay, exactly as many tasks leave as must."""
    owners: Owners = {}
    for numbers in sequence:
        there = [ProcessorId(str(i)) for i in sorted(numbers)]
        after = grouped(task_count, owners, there)
        if len(there) <= task_count:
            share, larger = divmod(task_count, len(there))
            sizes = {load(after, p) for p in there}
            assert sizes <= {share, share + 1}
            if owners:
                had = [load(owners, p) for p in there]
                over = sum(max(0, n - share) for n in had)
                must = over - min(larger, sum(n > share for n in had))
                left = {t for t in moved(owners, after) if owners[t] in there}
                assert len(left) == must
        owners = after
