"""The page of the allocator's phases, as diagrams and as a table, from ``TRANSITIONS``.

Each diagram shows some of the moves; together they show all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS, Trigger

PAGE = "docs/allocator-phases.md"
_HEAD = """\
<!-- Written by scripts/pages --write from appmaster/allocation/job_state/transitions.py. -->

# Phases of a container in the allocator

What may happen to a container in each phase, and which phases may follow.
[The allocator](allocator.md) shows what each phase means. An event that is missing in a row is
stale there: the allocator counts it, and changes nothing.
"""

_H, _P = Trigger, ContainerPhase


@dataclass(frozen=True)
class Diagram:
    """The moves that ``triggers`` lead to (None: those of no other diagram)."""

    title: str
    triggers: frozenset[Trigger] | None
    targets: frozenset[ContainerPhase] = frozenset(ContainerPhase)

    def shows(self, trigger: Trigger, target: ContainerPhase) -> bool:
        """Whether a move to ``target`` by ``trigger`` is in this diagram."""
        if self.triggers is None:
            return not any(d.shows(trigger, target) for d in DIAGRAMS if d is not self)
        return trigger in self.triggers and target in self.targets


DIAGRAMS = (
    Diagram(
        "From a place in the queue to a container that runs",
        frozenset({_H.PLACED, _H.ALLOCATED, _H.CHECKED_IN}),
        frozenset({_P.REQUESTED, _P.ALLOCATED, _P.ASSIGNED, _P.STARTING}),
    ),
    Diagram(
        "Found running by a driver that starts again",
        frozenset({_H.CHECKED_IN}),
        frozenset({_P.RUNNING, _P.STOPPING}),
    ),
    Diagram(
        "A request that failed",
        frozenset({_H.EXPIRED, _H.LAUNCH_FAILED, _H.GIVEN_AWAY, _H.BACKED_OFF}),
    ),
    Diagram("Starts, stops and losses", frozenset({_H.STARTED, _H.STOPPED, _H.RESOURCE_LOST})),
    Diagram("By decision: failovers, models, orders, the end of the job", None),
)
"""Every move of the table is in one of them."""


def page() -> str:
    """All diagrams, then the table."""
    parts = [f"## {diagram.title}\n\n{_drawn(diagram)}" for diagram in DIAGRAMS]
    return "\n".join([_HEAD, *parts, f"## The whole table\n\n{_table()}"])


def moves(diagram: Diagram) -> Iterator[tuple[ContainerPhase, ContainerPhase, str]]:
    """(from, to, the triggers that lead there), a move onto itself left out."""
    for phase in ContainerPhase:
        for target in ContainerPhase:
            why = [
                trigger.value
                for trigger in Trigger
                if diagram.shows(trigger, target) and target in TRANSITIONS[phase].get(trigger, ())
            ]
            if why and target is not phase:
                yield phase, target, ", ".join(why)


def _drawn(diagram: Diagram) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {a.name} --> {b.name}: {why}" for a, b, why in moves(diagram)]
    return "\n".join([*lines, "```", ""])


def _table() -> str:
    lines = ["| phase | event | may lead to |", "| --- | --- | --- |"]
    for phase in ContainerPhase:
        for trigger in Trigger:
            targets = TRANSITIONS[phase].get(trigger, frozenset())
            if targets:
                names = ", ".join(target.name for target in ContainerPhase if target in targets)
                lines.append(f"| {phase.name} | {trigger.value} | {names} |")
    return "\n".join([*lines, ""])
