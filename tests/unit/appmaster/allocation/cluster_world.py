"""A world that the allocator does not see: YARN, launchers, children, lost and late messages.

The world is an immutable value, so that it can be searched exhaustively (small) and at random
(large). Safety is judged there: no processor, and no task, ever has two live children. After the
faults, calm: everything must heal.

Changes of the model, and drivers that die, are in ``changing_world``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.group_invariants import is_without_place
from homeport.appmaster.allocation.invariants import check_step
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    initial_state,
)
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    LauncherCheckedIn,
    LauncherSilent,
    ResourceEnded,
    TimerFired,
    describe,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    EndJob,
    JobResult,
    LauncherOrder,
    PermitContainer,
    ReleaseResource,
    RequestResource,
    WriteProcessorEpoch,
    order_for,
)
from homeport.appmaster.allocation.protocol.observation import (
    SkeinContainer,
    SkeinContainerState,
    Snapshot,
    events_between,
)
from homeport.job_coordinator.metadata.epochs import ProcessorEpoch
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import SETTINGS, model
from tests.unit.appmaster.allocation.written_records import Failovers, Localities, written

Assignment = tuple[tuple[str, str], ...]
"""(task, its processor), sorted."""


_CAUSES = (StopCause.FAILED, StopCause.SIGNALLED, StopCause.FINISHED, StopCause.CUT_OFF)
"""Of a child that ends by itself."""


@dataclass(frozen=True)
class Launcher:
    """A launcher process. ``ran``: all it has run or refused; ``report``: not delivered yet.

    ``tasks``: those of its child, by the model that its permit named.
    ``is_denied``: Skein has said, wrongly, that it ended: nobody can have it cancelled any more.
    """

    resource_id: ResourceId
    host: Host
    request_id: RequestId
    child: Incarnation | None = None
    tasks: frozenset[str] = frozenset()
    is_started: bool = False
    ran: tuple[tuple[Incarnation, StopCause], ...] = ()
    report: ContainerStopped | None = None
    has_checked_in: bool = False
    is_denied: bool = False


@dataclass(frozen=True)
class World:
    """Everything there is.

    ``dead``: launchers that are gone, or silent for long, and the shell has not said so.
    ``silent``: hosts that stand still while the RM calls them live; ``asleep``: their launchers.
    ``models``: by version, the first one first; ``plan``: those that are still to come, in order.
    ``records``: the last epoch of each processor, as the stream has it. ``adopting``: incarnations
    that a driver before this one permitted, and that nobody has spoken for. ``standbys``: (standby,
    its active), sorted; ``localities``, ``failovers``: what the stream says of either.
    """

    state: AllocatorState
    all_hosts: tuple[Host, ...]
    live: frozenset[Host]
    pending: tuple[tuple[RequestId, Host | None], ...] = ()
    launchers: tuple[Launcher, ...] = ()
    dead: tuple[ResourceId, ...] = ()
    seen: Snapshot | None = None
    late: LauncherCheckedIn | None = None
    silent: frozenset[Host] = frozenset()
    asleep: tuple[Launcher, ...] = ()
    result: JobResult | None = None
    models: tuple[Assignment, ...] = ()
    plan: tuple[Assignment, ...] = ()
    records: tuple[tuple[ProcessorId, ProcessorEpoch], ...] = ()
    adopting: frozenset[Incarnation] = frozenset()
    standbys: tuple[tuple[ProcessorId, ProcessorId], ...] = ()
    localities: Localities = ()
    failovers: Failovers = ()

    def tasks_of(self, processor_id: ProcessorId) -> frozenset[str]:
        """What the processor has in the present model."""
        return frozenset(task for task, p in self.models[-1] if p == processor_id)

    def group(self, processor_id: ProcessorId) -> ProcessorId:
        """The active one of the processor's group."""
        return dict(self.standbys).get(processor_id, processor_id)

    def key(self) -> World:
        """The world without the counter that only grows."""
        return replace(self, state=replace(self.state, stale_events=0))

    def snapshot(self) -> Snapshot:
        """What a poll of Skein and of the RM would see."""
        asked = [
            SkeinContainer(f"r{r}", r, SkeinContainerState.REQUESTED, h) for r, h in self.pending
        ]
        runs = [
            SkeinContainer(x.resource_id, x.request_id, SkeinContainerState.RUNNING, x.host)
            for x in (*self.launchers, *self.asleep)
        ]
        return Snapshot(tuple(asked + runs), tuple(sorted(self.live)))

    def with_launcher(self, launcher: Launcher) -> World:
        """The launcher as it now is; no processor, and no task, may have two live children."""
        others = [x for x in self.launchers if x.resource_id != launcher.resource_id]
        everyone = sorted([*others, launcher], key=lambda x: x.resource_id)
        children = [x.child.processor_id for x in everyone if x.child]
        assert len(children) == len(set(children)), f"two live children of one processor: {self}"
        groups = [(self.group(x.child.processor_id), x.host) for x in everyone if x.child]
        assert len(groups) == len(set(groups)), f"two of a group on one host: {self}"
        owned = [task for x in everyone if x.child for task in sorted(x.tasks)]
        assert len(owned) == len(set(owned)), f"two live children of one task: {self}"
        return replace(self, launchers=tuple(everyone))

    def without_launcher(self, launcher: Launcher) -> World:
        """The launcher is gone, its child with it."""
        dead = (launcher.resource_id,) if launcher.has_checked_in else ()
        return replace(
            self,
            launchers=tuple(x for x in self.launchers if x.resource_id != launcher.resource_id),
            dead=tuple(sorted({*self.dead, *dead})),
        )


def fed(world: World, *events: Event) -> World:
    """The world after the shell has handed in these events and carried out what follows."""
    for event in events:
        world, _ = _fed(world, event)
    return world


def _fed(world: World, event: Event) -> tuple[World, LauncherOrder | None]:
    before = world.state
    decision = step(before, event)
    check_step(before, decision.state, describe(event))
    permits = [i for i in decision.instructions if isinstance(i, PermitContainer)]
    raised = [r for r in decision.records if isinstance(r, WriteProcessorEpoch)]
    recorded = {(r.processor_id, r.epoch, r.fence) for r in raised}
    for p in permits:
        is_repeated = before.container(p.incarnation.processor_id) == decision.state.container(
            p.incarnation.processor_id
        )
        known = (p.incarnation.processor_id, p.incarnation.epoch, p.fence)
        assert is_repeated or known in recorded, "a permit has its record"
    records = dict(world.records) | {
        r.processor_id: ProcessorEpoch(r.epoch, r.model_version, r.fence) for r in raised
    }
    world = replace(world, state=decision.state, records=tuple(sorted(records.items())))
    localities, failovers = written(world.localities, world.failovers, decision.records)
    world = replace(world, localities=localities, failovers=failovers)
    for instruction in decision.instructions:
        if isinstance(instruction, RequestResource):
            asleep = [x for x in world.asleep if x.has_checked_in and not x.is_denied]
            assert not any(
                x.host == instruction.host and x.resource_id not in world.dead for x in asleep
            ), "a silent launcher is cancelled before its host is asked again"
            asked = (instruction.request_id, instruction.host)
            world = replace(world, pending=(*world.pending, asked))
        elif isinstance(instruction, CancelRequest):
            world = _cancelled(world, instruction.request_id)
        elif isinstance(instruction, EndJob):
            assert world.result is None, "a job ends once"
            assert not any(x.child for x in world.launchers), "nothing runs when the job ends"
            world = replace(world, result=instruction.result)
    if isinstance(event, LauncherCheckedIn):
        return world, order_for(decision.instructions, event.resource_id)
    return world, None


def _cancelled(world: World, request_id: RequestId) -> World:
    world = replace(world, pending=tuple(p for p in world.pending if p[0] != request_id))
    for launcher in world.launchers:
        if launcher.request_id == request_id:
            world = world.without_launcher(launcher)
    return replace(world, asleep=tuple(x for x in world.asleep if x.request_id != request_id))


def obeyed(world: World, launcher: Launcher, order: LauncherOrder | None) -> World:
    """The launcher has done what it was told, as the contract of ``instructions`` says."""
    if order is None:
        return world
    if isinstance(order, ReleaseResource):
        return world.without_launcher(launcher)
    wanted, ran = order.incarnation, dict(launcher.ran)
    if isinstance(order, PermitContainer) and wanted not in ran:
        assert launcher.child is None, "a permit is not for a launcher with a child"
        assert all(wanted not in dict(x.ran) for x in world.launchers), "one child per incarnation"
        tasks = world.tasks_of(wanted.processor_id)
        begun = replace(launcher, child=wanted, tasks=tasks, is_started=False)
        return world.with_launcher(begun)
    if launcher.child == wanted:
        return _child_stopped(world, launcher, StopCause.ORDERED)
    cause = ran.get(wanted, StopCause.ORDERED)
    refused = launcher.ran if wanted in ran else (*launcher.ran, (wanted, cause))
    report = ContainerStopped(wanted, cause, 0)
    return world.with_launcher(replace(launcher, ran=refused, report=report))


def _child_stopped(world: World, launcher: Launcher, cause: StopCause) -> World:
    assert launcher.child is not None
    return world.with_launcher(
        replace(
            launcher,
            child=None,
            is_started=False,
            ran=(*launcher.ran, (launcher.child, cause)),
            report=ContainerStopped(launcher.child, cause, 1),
        )
    )


def poll_of(launcher: Launcher) -> LauncherCheckedIn:
    """What it would say now."""
    return LauncherCheckedIn(
        launcher.resource_id, launcher.host, launcher.child, launcher.request_id
    )


def polled(world: World, launcher: Launcher, *, is_answer_lost: bool = False) -> World:
    """A report if there is one, then the check-in and what comes of its answer."""
    if launcher.report is not None:
        world = _settled(fed(world, launcher.report), launcher.report.incarnation)
        launcher = replace(launcher, report=None)
    if launcher.child is None and world.adopting:
        return world.with_launcher(launcher)
    launcher = replace(launcher, has_checked_in=True)
    world, order = _fed(world.with_launcher(launcher), poll_of(launcher))
    if launcher.child is not None:
        world = _settled(world, launcher.child)
    if is_answer_lost or launcher not in world.launchers:
        return world
    return obeyed(world, launcher, order)


def _settled(world: World, incarnation: Incarnation) -> World:
    return replace(world, adopting=world.adopting - {incarnation})


def _accounted_for(world: World) -> Moves:
    """Nobody runs an incarnation that is waited for: the keeper says that its lease is over."""
    alive = {x.child for x in world.launchers}
    for incarnation in sorted(world.adopting - alive):
        yield f"{incarnation} has lost its lease", _settled(world, incarnation)


Moves = Iterator[tuple[str, World]]


def progress(world: World) -> Moves:
    """What happens by itself, without any fault."""
    if world.result is not None:
        return
    yield from _accounted_for(world)
    if world.snapshot() != world.seen and not world.adopting:
        now = world.snapshot()
        yield "observe", fed(replace(world, seen=now), *events_between(world.seen, now))
    for resource_id in world.dead:
        left = tuple(r for r in world.dead if r != resource_id)
        yield f"{resource_id} silent", fed(replace(world, dead=left), LauncherSilent(resource_id))
    for request in world.pending:
        request_id, host = request
        for granted in sorted((world.live if host is None else world.live & {host}) - world.silent):
            launcher = Launcher(ResourceId(f"r{request_id}"), granted, request_id)
            rest = tuple(p for p in world.pending if p != request)
            yield f"grant {request_id}", replace(world, pending=rest).with_launcher(launcher)
    for launcher in world.launchers:
        if launcher.child and not launcher.is_started:
            ready = world.with_launcher(replace(launcher, is_started=True))
            settled = dict(ready.localities) | {launcher.child.processor_id: launcher.host}
            ready = replace(ready, localities=tuple(sorted(settled.items())))
            yield f"{launcher.child} starts", fed(ready, ContainerStarted(launcher.child))
        yield f"{launcher.resource_id} polls", polled(world, launcher)
    if world.late is not None:
        yield "late check-in", _late(replace(world, late=None), world.late)


def _late(world: World, check_in: LauncherCheckedIn) -> World:
    """The shell watches a launcher from each of its check-ins: it tells of its end once more.

    One without a child is answered to come later, as in ``polled``, and is not handed in while what
    an earlier driver permitted is not accounted for: it could be given what still runs elsewhere.
    """
    if check_in.running is None and world.adopting:
        return world
    alive = [x for x in world.launchers if x.resource_id == check_in.resource_id]
    for launcher in alive:
        world = world.with_launcher(replace(launcher, has_checked_in=True))
    if not alive:
        world = replace(world, dead=tuple(sorted({*world.dead, check_in.resource_id})))
    return fed(world, check_in)


def _isolated(world: World, launcher: Launcher) -> World:
    """A launcher without answers has killed its child, and is thought gone; it may come back."""
    if launcher.child is not None:
        world = _child_stopped(world, launcher, StopCause.LEASE_LOST)
    return fed(world, LauncherSilent(launcher.resource_id))


def fallen_silent(world: World, host: Host) -> World:
    """The host stands still. Its children have ended, or will not get further: leases run out."""
    for launcher in [x for x in world.launchers if x.host == host]:
        if launcher.child is not None:
            world = _child_stopped(world, launcher, StopCause.LEASE_LOST)
    asleep = [x for x in world.launchers if x.host == host]
    return replace(
        world,
        silent=world.silent | {host},
        launchers=tuple(x for x in world.launchers if x.host != host),
        asleep=(*world.asleep, *asleep),
        dead=tuple(sorted({*world.dead, *(x.resource_id for x in asleep if x.has_checked_in)})),
    )


def woken(world: World, host: Host) -> World:
    """The host goes on, with those of its launchers that Skein was not told to end."""
    awake = [x for x in world.asleep if x.host == host]
    back = {x.resource_id for x in awake}
    world = replace(
        world,
        silent=world.silent - {host},
        asleep=tuple(x for x in world.asleep if x.host != host),
        dead=tuple(r for r in world.dead if r not in back),
    )
    for launcher in awake:
        world = world.with_launcher(launcher)
    return world


def timers(world: World) -> Moves:
    """Timers that run out: by themselves when nothing else happens, else too early."""
    if world.result is None:
        for timer in sorted(world.state.timers, key=str):
            yield f"{timer}", fed(world, TimerFired(timer))


def _faults_of_hosts(world: World) -> Moves:
    for host in world.all_hosts:
        if host in world.live:
            lost = replace(world, live=world.live - {host})
            for launcher in world.launchers:
                lost = lost.without_launcher(launcher) if launcher.host == host else lost
            asleep = tuple(x for x in world.asleep if x.host != host)
            yield f"{host} lost", replace(lost, asleep=asleep, silent=lost.silent - {host})
            if host in world.silent:
                yield f"{host} wakes", woken(world, host)
            else:
                yield f"{host} falls silent", fallen_silent(world, host)
        else:
            yield f"{host} back", replace(world, live=world.live | {host})


def faults(world: World) -> Moves:
    """What may go wrong."""
    if world.result is not None:
        return
    for launcher in world.launchers:
        yield f"{launcher.resource_id} dies", world.without_launcher(launcher)
        yield "answer lost", polled(world, launcher, is_answer_lost=True)
        yield "check-in delayed", replace(world, late=poll_of(launcher))
        denied = world.with_launcher(replace(launcher, is_denied=True))
        yield "Skein errs", fed(denied, ResourceEnded(request_id=launcher.request_id))
        if launcher.has_checked_in:
            yield f"{launcher.resource_id} isolated", _isolated(world, launcher)
        if launcher.report is not None:
            yield "report twice", fed(world, launcher.report)
        if launcher.child is not None:
            for cause in _CAUSES:
                yield f"{launcher.child} {cause.value}", _child_stopped(world, launcher, cause)
    yield from _faults_of_hosts(world)
    yield from timers(world)
    yield "observe anew", replace(world, seen=None)


def calmed(world: World, known: set[World] | None = None) -> World:
    """The world after calm: hosts are back, and things happen by themselves until all is well.

    The bound: each container needs a handful of moves per round of asking, and a round has at most
    as many requests as there are hosts and ``any``.
    """
    for host in world.silent:
        world = woken(world, host)
    world = replace(world, live=frozenset(world.all_hosts))
    path: list[World] = []
    for _ in range(100 + 40 * len(world.state.containers)):
        if is_well(world) or (known is not None and world.key() in known):
            break
        path.append(world.key())
        moved = (w for _, w in progress(world) if w.key() != world.key())
        world = next(moved, None) or next((w for _, w in timers(world)), world)
    else:
        raise AssertionError(f"calm did not heal {world}")
    if known is not None:
        known.update(path)
    return world


def is_well(world: World) -> bool:
    """All that shall run runs, really, and nothing is left over; or the job has ended."""
    if world.result is not None:
        return True
    if any(True for _ in _unsettled(world)):
        return False
    if {c.processor_id for c in world.state.containers} != {p for _, p in world.models[-1]}:
        return False
    children = {
        x.child
        for x in world.launchers
        if x.child and x.is_started and x.tasks == world.tasks_of(x.child.processor_id)
    }
    return all(
        (c.replica_of is not None and is_without_place(world.state, c))
        or c.phase is ContainerPhase.FINISHED
        or (c.phase is ContainerPhase.RUNNING and c.incarnation in children)
        for c in world.state.containers
    )


def _unsettled(world: World) -> Iterator[str]:
    if world.dead or world.pending or world.late or world.snapshot() != world.seen:
        yield "news that nobody told"
    if world.adopting:
        yield "news that nobody told"
    for launcher in world.launchers:
        if launcher.report is not None or launcher.child is None:
            yield f"{launcher.resource_id} has no use"


def deployed(
    homes: Mapping[str, str | None],
    hosts: tuple[str, ...],
    plan: tuple[Assignment, ...] = (),
    standbys: Mapping[str, str] | None = None,
    **settings: bool | int,
) -> World:
    """A world in which this job was just submitted; each processor has the task of its name.

    ``standbys`` {standby among the processors: its active}.
    """
    everywhere = tuple(Host(h) for h in hosts)
    state = initial_state(replace(SETTINGS, **settings))  # type: ignore[arg-type] # by field name
    first = tuple((processor, processor) for processor in sorted(homes))
    replicas = tuple((ProcessorId(s), ProcessorId(a)) for s, a in sorted((standbys or {}).items()))
    world = World(
        state,
        everywhere,
        frozenset(everywhere),
        models=(first,),
        plan=plan,
        standbys=replicas,
        localities=tuple((ProcessorId(p), Host(h)) for p, h in sorted(homes.items()) if h),
    )
    return fed(world, replace(model(homes), standbys=dict(replicas)))
