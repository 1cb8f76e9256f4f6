"""A plan: one version of the members, with their tasks, incarnations, and lists to fence.

PURE. An incarnation is a processor with its generation: the version in which its registration or
its tasks last changed. Versions and generations grow, and never recur (safety C4).
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from homeport.config.config import Config
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode

NO_SESSION = 9_999_999_999
"""The registration of a member without a processor: ZooKeeper counts to 2,147,483,647."""


_NO_MODEL = JobModel(Config({}), {})


@dataclass(frozen=True, order=True, slots=True)
class Registration:
    """One processor in one session: the number of its ephemeral node, its id and location.

    ``url``: where the processor answers HTTP; empty: nowhere. It decides nothing.
    """

    sequence: int
    processor_id: ProcessorId
    location: Host
    url: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, order=True, slots=True)
class Standby:
    """One replica: the task whose state it keeps, and its own name as in Samza."""

    task: TaskName
    name: TaskName


@dataclass(frozen=True, slots=True)
class Member:
    """One processor in a plan. ``tasks``, ``fence`` and ``standbys`` are sorted.

    ``fence``: every incarnation that may write to one of the tasks, and that no successor has
    reported as fenced. ``standbys``: its replicas; they write nothing, so generations and fences
    do not depend on them.
    """

    processor_id: ProcessorId
    sequence: int
    generation: int
    tasks: tuple[TaskName, ...] = ()
    fence: tuple[Incarnation, ...] = ()
    standbys: tuple[Standby, ...] = ()

    @property
    def incarnation(self) -> Incarnation:
        """The processor with its generation."""
        return Incarnation(self.processor_id, self.generation)


@dataclass(frozen=True, slots=True)
class Plan:
    """One version of the assignment; members by processor id in sorted order.

    ``lost``: number of tasks whose last owner is no member now. ``unbacked``: number of these that
    start where no standby of theirs was (STANDBY, part 4: ideally 0). Both are 0 if the version
    before had no standbys. ``former``, sorted: the incarnations that may still write to tasks that
    are gone, and may come back.

    ``model``: the JobModel of the version; the container with a member's id has the member's tasks
    and standbys. Comparisons of versions leave it out.
    """

    version: int
    members: tuple[Member, ...]
    lost: int = 0
    unbacked: int = 0
    former: tuple[Incarnation, ...] = ()
    model: JobModel = field(default=_NO_MODEL, compare=False, repr=False)

    def of(self, sequence: int | None) -> Member | None:
        """Return the member with this registration; None if there is none."""
        return next((m for m in self.members if m.sequence == sequence), None)


def present(registrations: Sequence[Registration]) -> tuple[Registration, ...]:
    """Return the first registration of each processor, in the order of the numbers."""
    first: dict[ProcessorId, Registration] = {}
    for registration in sorted(registrations):
        first.setdefault(registration.processor_id, registration)
    return tuple(first.values())


def fits(plan: Plan | None, registrations: Sequence[Registration]) -> bool:
    """Return whether the plan's members are the present processors, each in its session."""
    if plan is None:
        return not registrations
    there = {(r.processor_id, r.sequence) for r in present(registrations)}
    return there == {(m.processor_id, m.sequence) for m in plan.members}


def are_back(plan: Plan | None, registrations: Sequence[Registration]) -> bool:
    """Return whether all members are present again, and some of them in another session."""
    if plan is None or fits(plan, registrations):
        return False
    there = {r.processor_id for r in registrations}
    return there == {m.processor_id for m in plan.members}


def plan_of(
    before: Plan | None,
    registrations: Sequence[Registration],
    model: JobModel,
    fenced: Mapping[ProcessorId, int],
) -> Plan:
    """Return the version after ``before`` with this JobModel; the rest is as in ``next_plan``.

    InvariantViolation: as in ``next_plan``.
    """
    former = {} if before is None else before.model.active_tasks()
    now = model.active_tasks().items()
    plan = next_plan(
        before,
        registrations,
        {p: active_tasks(container) for p, container in model.containers.items()},
        fenced,
        frozenset(name for name, task in now if former.get(name, task) != task),
        {p: standbys_of(container) for p, container in model.containers.items()},
    )
    return replace(plan, model=model)


def active_tasks(container: ContainerModel | None) -> tuple[TaskName, ...]:
    """Return the tasks of the container that process input, sorted."""
    tasks = {} if container is None else container.tasks
    return tuple(sorted(n for n, task in tasks.items() if task.task_mode is TaskMode.ACTIVE))


def standbys_of(container: ContainerModel | None) -> tuple[Standby, ...]:
    """Return the replicas that the container keeps, sorted."""
    tasks = {} if container is None else container.tasks
    found = (task for task in tasks.values() if task.task_mode is TaskMode.STANDBY)
    return tuple(sorted(Standby(task.state_of, task.task_name) for task in found))


def next_plan(
    before: Plan | None,
    registrations: Sequence[Registration],
    assignment: Mapping[ProcessorId, Collection[TaskName]],
    fenced: Mapping[ProcessorId, int],
    changed: AbstractSet[TaskName] = frozenset(),
    standbys: Mapping[ProcessorId, Collection[Standby]] = MappingProxyType({}),
) -> Plan:
    """Return the version after ``before``: the present processors with the assigned tasks.

    A processor keeps its generation if its registration and tasks are as before and none of its
    tasks is among ``changed``. A task's next owner, if it is another incarnation, lists two kinds
    to fence (safety I1): the owner under ``before`` if it has reported, and every incarnation that
    this owner still had to fence. A task that is not in ``before`` may have been gone: its owner
    lists all that may still write to tasks that are gone.

    An owner that has not reported is in no list: the condition of ``unreported`` must hold for it.

    Args:
        before: the newest version; None before the first one.
        registrations: those of the present processors.
        assignment: {processor: its tasks}; it may leave out processors without a task.
        fenced: {processor: the generation in which it last reported that it fenced its list}.
        changed: tasks with another model than under ``before``, such as other inputs.
        standbys: {processor: its replicas}.

    InvariantViolation: a task has two owners, an owner or the processor of a standby is not
    present, or a standby is where its task, or another standby of that, is.
    """
    version = 1 if before is None else before.version + 1
    former = {} if before is None else {m.processor_id: m for m in before.members}
    suspects, former_writers = _suspects(before, fenced), _former(before, fenced)
    there = {r.processor_id: r.sequence for r in present(registrations)}
    _check(assignment, there)
    check_standbys(present(registrations), assignment, standbys)
    members = []
    for processor_id in sorted(there):
        tasks = tuple(sorted(assignment.get(processor_id, ())))
        own = tuple(sorted(standbys.get(processor_id, ())))
        old, sequence = former.get(processor_id), there[processor_id]
        if (
            old is not None
            and (old.sequence, old.tasks) == (sequence, tasks)
            and changed.isdisjoint(tasks)
        ):
            fence = () if _has_reported(old, fenced) else old.fence
            members.append(Member(processor_id, sequence, old.generation, tasks, fence, own))
        else:
            found = {owner for task in tasks for owner in suspects.get(task, former_writers)}
            fence = tuple(sorted(found))
            members.append(Member(processor_id, sequence, version, tasks, fence, own))
    lost, unbacked = _not_on_backup(before, members)
    gone = suspects.keys() - {task for member in members for task in member.tasks}
    left = former_writers.union(*(suspects[task] for task in gone))
    return Plan(version, tuple(members), lost, unbacked, tuple(sorted(left)))


def unreported(
    before: Plan | None, plan: Plan, fenced: Mapping[ProcessorId, int]
) -> tuple[Incarnation, ...]:
    """Return the owners that ``plan`` replaces and lists nowhere, since they have not reported.

    A report comes before the first write of its generation, and only while the newest version has
    that generation. So these owners never write if none has reported when ``plan`` is published.
    """
    stay = {member.incarnation for member in plan.members}
    members = () if before is None else before.members
    return tuple(
        m.incarnation
        for m in members
        if m.tasks and not _may_write(m, fenced) and m.incarnation not in stay
    )


def same_work(before: Plan | None, plan: Plan) -> bool:
    """Return whether each member has the generation, tasks and standbys that it had."""
    former = () if before is None else before.members
    had = {(m.incarnation, m.standbys) for m in former}
    return all((m.incarnation, m.standbys) in had for m in plan.members)


def _not_on_backup(before: Plan | None, members: Sequence[Member]) -> tuple[int, int]:
    if before is None or not any(member.standbys for member in before.members):
        return 0, 0
    there = {member.processor_id for member in members}
    lost = {t for m in before.members if m.processor_id not in there for t in m.tasks}
    backed = {(m.processor_id, s.task) for m in before.members for s in m.standbys}
    owners = {task: m.processor_id for m in members for task in m.tasks}
    unbacked = sum((owners.get(task), task) not in backed for task in lost)
    return len(lost), unbacked


def check_standbys(
    registrations: Sequence[Registration],
    assignment: Mapping[ProcessorId, Collection[TaskName]],
    standbys: Mapping[ProcessorId, Collection[Standby]],
) -> None:
    """Check that no location has a task twice (STANDBY, Invariant-1).

    InvariantViolation: a location has one twice, or the processor of a standby is not present.
    """
    places = {r.processor_id: r.location for r in registrations}
    taken = {(places.get(p), task) for p, tasks in assignment.items() for task in tasks}
    for processor_id in sorted(standbys):
        for standby in standbys[processor_id]:
            place = places.get(processor_id)
            if place is None:
                fault = f"processor {processor_id!r} has standbys and is not present"
                raise InvariantViolation(fault)
            if (place, standby.task) in taken:
                raise InvariantViolation(
                    f"standby {standby.name!r} is at {place!r}, where its task or another standby "
                    "of that is"
                )
            taken.add((place, standby.task))


def _suspects(
    before: Plan | None, fenced: Mapping[ProcessorId, int]
) -> dict[TaskName, tuple[Incarnation, ...]]:
    if before is None:
        return {}
    found: dict[TaskName, tuple[Incarnation, ...]] = {}
    for member in before.members:
        own = (member.incarnation,) if _may_write(member, fenced) else ()
        owners = (*own, *(() if _has_reported(member, fenced) else member.fence))
        found.update(dict.fromkeys(member.tasks, owners))
    return found


def _former(before: Plan | None, fenced: Mapping[ProcessorId, int]) -> frozenset[Incarnation]:
    if before is None:
        return frozenset()
    reported = (m.fence for m in before.members if _has_reported(m, fenced))
    return frozenset(before.former).difference(*reported)


def _has_reported(member: Member, fenced: Mapping[ProcessorId, int]) -> bool:
    return fenced.get(member.processor_id) == member.generation


def _may_write(member: Member, fenced: Mapping[ProcessorId, int]) -> bool:
    return member.sequence == NO_SESSION or _has_reported(member, fenced)


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
