"""What must hold in every world, whatever went wrong."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.appmaster.allocation.job_state.state import AllocatorState
from tests.exhaustive.things import World


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
    world: World, group_of: Mapping[str, str], state: AllocatorState, checked: int
) -> None:
    """Invariant-1, one incarnation per task for people and for Kafka, and nothing leaked.

    ``checked``: how many steps a child has done that has read the stream's head.

    Raises:
        UnsafeError: one of them is broken.
    """
    running = [x for x in world.launchers if x.child is not None]
    if len(running) > 1:
        _judge_children(world, group_of)
        _judge_kafka(world, checked)
    for request, _ in world.pending:
        require(
            any(c.request_id == request for c in state.containers)
            or any(e.request_id == request for e in state.early),
            f"nobody waits for request {request}, which YARN still has",
        )


def _judge_children(world: World, group_of: Mapping[str, str]) -> None:
    good = [x for x in world.launchers if x.child is not None and x.is_lease_good]
    owners = [x.child.owner[0] for x in good if x.child]
    require(len(owners) == len(set(owners)), "two live children of one processor")
    places = [(group_of[x.child.owner[0]], x.host) for x in good if x.child]
    require(len(places) == len(set(places)), "Invariant-1: two replicas on one host")


def _judge_kafka(world: World, checked: int) -> None:
    """Standbys write nothing, but a replica that is read twice is no better."""
    reads: dict[str, list[tuple[int, bool]]] = {}
    for launcher in world.launchers:
        child = launcher.child
        if child is not None and child.done >= checked:
            reads.setdefault(child.owner[0], []).append((child.owner[1], child.is_open))
    for processor, found in reads.items():
        writers = [epoch for epoch, is_open in found if is_open]
        require(len(writers) <= 1, f"Kafka takes writes of two incarnations of {processor}")
        newest = max(epoch for epoch, _ in found)
        require(
            all(epoch == newest for epoch in writers),
            f"Kafka takes writes of {processor}@{writers} after a newer one has read its state",
        )
