"""What must hold in every world, whatever went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from homeport.appmaster.allocation.job_state.state import AllocatorState
from tests.exhaustive.things import Child, World

TasksOf = Callable[[Child], tuple[str, ...]]
"""What a child owns by the model that its permit named."""


class UnsafeError(Exception):
    """The world is not as it must be; the message says what is broken."""


def require(holds: object, verdict: str) -> None:
    """A judgement.

    Raises:
        UnsafeError: it does not hold.
    """
    if not holds:
        raise UnsafeError(verdict)


def judge_world(
    world: World,
    group_of: Mapping[str, str],
    tasks_of: TasksOf,
    state: AllocatorState,
    checked: int,
) -> None:
    """Invariant-1, one incarnation per task for people and for Kafka, and nothing leaked.

    ``checked``: how many steps a child has done that has read the stream's head.

    Raises:
        UnsafeError: one of them is broken.
    """
    running = [x for x in world.launchers if x.child is not None]
    if len(running) > 1:
        _judge_children(world, group_of, tasks_of)
        _judge_kafka(world, tasks_of, checked)
    for request, _ in world.pending:
        require(
            any(c.request_id == request for c in state.containers)
            or any(e.request_id == request for e in state.early),
            f"no container waits for request {request}, which YARN still has",
        )


def _judge_children(world: World, group_of: Mapping[str, str], tasks_of: TasksOf) -> None:
    good = [x for x in world.launchers if x.child is not None and x.is_lease_good]
    owners = [x.child.owner[0] for x in good if x.child]
    require(len(owners) == len(set(owners)), "two live children of one processor")
    places = [(group_of[x.child.owner[0]], x.host) for x in good if x.child]
    require(len(places) == len(set(places)), "Invariant-1: two replicas on one host")
    tasks = [task for x in good if x.child for task in tasks_of(x.child)]
    require(len(tasks) == len(set(tasks)), "two live children of one task")


def _judge_kafka(world: World, tasks_of: TasksOf, checked: int) -> None:
    """Standbys write nothing, but a replica that is read twice is no better.

    Of two owners of a task the one of the later model is newer, else the one of the later epoch.
    """
    reads: dict[str, list[Child]] = {}
    for launcher in world.launchers:
        child = launcher.child
        if child is not None and child.done >= checked:
            for task in tasks_of(child):
                reads.setdefault(task, []).append(child)
    for task, found in reads.items():
        writers = [child for child in found if child.is_open]
        require(len(writers) <= 1, f"Kafka takes writes of two incarnations of {task}")
        newest = max(found, key=lambda child: (child.version, child.owner[1]))
        for child in writers:
            name = f"{child.owner[0]}@{child.owner[1]}"
            verdict = f"Kafka takes writes of {name} after a newer one has read its state"
            require(child is newest, verdict)
