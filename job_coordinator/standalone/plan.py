"""A plan: one version of the members, their tasks, their incarnations, and what each fences.

PURE. An incarnation is a processor with its generation: the version in which its registration or
its tasks last changed. Versions grow and never recur, and so do generations (safety C4).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(frozen=True, order=True, slots=True)
class Registration:
    """One processor in one session: the number of its ephemeral node, its id and location."""

    sequence: int
    processor_id: ProcessorId
    location: Host


@dataclass(frozen=True, slots=True)
class Member:
    """What a plan says of one processor. ``tasks`` and ``fence`` are sorted.

    ``fence``: every incarnation that may have had one of the tasks, and that no successor has
    reported as fenced.
    """

    processor_id: ProcessorId
    sequence: int
    generation: int
    tasks: tuple[TaskName, ...] = ()
    fence: tuple[Incarnation, ...] = ()

    @property
    def incarnation(self) -> Incarnation:
        """The processor as its generation."""
        return Incarnation(self.processor_id, self.generation)


@dataclass(frozen=True, slots=True)
class Plan:
    """One version of the assignment; members by processor id in sorted order."""

    version: int
    members: tuple[Member, ...]

    def of(self, sequence: int | None) -> Member | None:
        """The member with this registration; None where there is none."""
        return next((m for m in self.members if m.sequence == sequence), None)


def present(registrations: Sequence[Registration]) -> tuple[Registration, ...]:
    """Of each processor its first registration, in the order of the numbers."""
    first: dict[ProcessorId, Registration] = {}
    for registration in sorted(registrations):
        first.setdefault(registration.processor_id, registration)
    return tuple(first.values())


def fits(plan: Plan | None, registrations: Sequence[Registration]) -> bool:
    """Whether the plan's members are the processors that are present, each in its session."""
    if plan is None:
        return not registrations
    there = {(r.processor_id, r.sequence) for r in present(registrations)}
    return there == {(m.processor_id, m.sequence) for m in plan.members}


def next_plan(
    before: Plan | None,
    registrations: Sequence[Registration],
    assignment: Mapping[ProcessorId, Collection[TaskName]],
    fenced: Mapping[ProcessorId, int],
    changed: AbstractSet[TaskName] = frozenset(),
) -> Plan:
    """The version after ``before``: the present processors with the assigned tasks.

    A processor keeps its generation where registration and tasks are as before and no task of it
    is among ``changed``: those whose inputs are others now. Every incarnation that ``before``
    permitted to own a task, and every one that this still had to fence, is in the list of the
    task's next owner, if that is another incarnation.

    Args:
        before: the newest version; None before the first one.
        registrations: those of the present processors at least.
        assignment: {processor: its tasks}; processors without a task may be left out.
        fenced: {processor: the generation in which it last reported to have fenced its list}.
        changed: tasks whose model differs from that of ``before``.

    Raises:
        InvariantViolation: a task has two owners, or an owner is not present.
    """
    version = 1 if before is None else before.version + 1
    former = {} if before is None else {m.processor_id: m for m in before.members}
    suspects = _suspects(before, fenced)
    there = {r.processor_id: r.sequence for r in present(registrations)}
    _check(assignment, there)
    members = []
    for processor_id in sorted(there):
        tasks = tuple(sorted(assignment.get(processor_id, ())))
        old, sequence = former.get(processor_id), there[processor_id]
        if (
            old is not None
            and (old.sequence, old.tasks) == (sequence, tasks)
            and changed.isdisjoint(tasks)
        ):
            fence = () if fenced.get(processor_id) == old.generation else old.fence
            members.append(Member(processor_id, sequence, old.generation, tasks, fence))
        else:
            found = {owner for task in tasks for owner in suspects.get(task, ())}
            members.append(Member(processor_id, sequence, version, tasks, tuple(sorted(found))))
    return Plan(version, tuple(members))


def _suspects(
    before: Plan | None, fenced: Mapping[ProcessorId, int]
) -> dict[TaskName, tuple[Incarnation, ...]]:
    """{task: the incarnations that may still write to it}."""
    if before is None:
        return {}
    found: dict[TaskName, tuple[Incarnation, ...]] = {}
    for member in before.members:
        has_fenced = fenced.get(member.processor_id) == member.generation
        owners = (member.incarnation, *(() if has_fenced else member.fence))
        found.update(dict.fromkeys(member.tasks, owners))
    return found


def _check(
    assignment: Mapping[ProcessorId, Collection[TaskName]], there: Mapping[ProcessorId, int]
) -> None:
    owners: dict[TaskName, ProcessorId] = {}
    for processor_id, tasks in assignment.items():
        if tasks and processor_id not in there:
            raise InvariantViolation(f"processor {processor_id!r} has tasks and is not present")
        for task in tasks:
            if owners.setdefault(task, processor_id) != processor_id:
                raise InvariantViolation(
                    f"task {task!r} is assigned to {owners[task]!r} and to {processor_id!r}"
                )
