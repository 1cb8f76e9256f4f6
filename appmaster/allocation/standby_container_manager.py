"""An active that cannot go home takes the place of a standby, once that has stopped.

PURE. Theory. A failover begins when an active is placed and cannot have its home: the request for
it expired, the host is lost, silent or excluded, the cluster took its container back, or its own
standby runs there. It ends when the active has started, on whatever host;
``ContainerState.failover`` is set until then. There are two ways to a standby's place:

* The standby runs. It is ordered to stop, and the active waits in FAILING_OVER. With the evidence
  of the stop the active gets the standby's launcher, if that lives, without a request that a full
  host could refuse. Else it requests the host, which is its home by then.
* The standby does not run. Its request is cancelled, or its launcher taken back, and the active is
  placed with the standby's last host as its home.

A choice fails if the host is lost, the request expires, the launch fails, or the stop is not
confirmed in time. The next choice follows, and after the last one any other host: the active could
not be failed to a standby. A failover begins again only if no host is left at all.

Order of the choices: the standby on the active's home, since the state is there; running standbys,
the least lag first and unknown lags last; those that start or stop; then the last hosts of those
that do not run, by id. Each standby is chosen once in a failover. Unlike in Samza 1.8, the history
of a failover is kept until the active has started.

The step of the choice deletes the standby's locality, sets the active's to that host, and writes
the failover. If the AM ends then, the next driver finds the active's home there, and the standby,
if that still runs, in its way (STANDBY, part 3, A.1 to A.7).

The stop of a standby for its active is ordered, so it is not charged.
"""

from collections.abc import Callable
from dataclasses import replace

from homeport.appmaster.allocation import cooperative_change, separation
from homeport.appmaster.allocation import placement_queue as turns
from homeport.appmaster.allocation.job_end import order_stop
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import PlacementStep
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    Failover,
    Preparation,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import (
    FailoverStep,
    LagsReported,
    SparesReported,
    Timer,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    FailTasksOver,
    WriteFailover,
    WriteLocality,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId


def lags_reported(draft: Draft, event: LagsReported) -> None:
    """Keep the lag of each standby, and what the start of each active has left to read."""
    is_news = False
    for processor_id in sorted(event.lags):
        container, lag = draft.containers.get(processor_id), event.lags[processor_id]
        if container is None or container.lag == lag:
            continue
        if container.replica_of is not None or container.phase is ContainerPhase.STARTING:
            is_news = True
            draft.change(replace(container, lag=lag))
    if not is_news:
        draft.count_stale()


def spares_reported(draft: Draft, event: SparesReported) -> None:
    """Note whether the spare beside each standby has its Spark, and which processes are ready."""
    is_news = False
    for processor_id, is_ready in sorted(event.ready.items()):
        standby = draft.containers.get(processor_id)
        if standby is not None and standby.preparation is Preparation.ORDERED:
            if is_ready:
                is_news = True
                cooperative_change.prepared(draft, standby)
        elif standby is not None and standby.replica_of is not None:
            is_news = is_news or standby.has_spark != is_ready
            draft.change(replace(standby, has_spark=is_ready))
    if not is_news:
        draft.count_stale()


def has_state_somewhere(active: ContainerState) -> bool:
    """Return whether a standby may have state of this active, which has run before."""
    return active.epoch > 0 or active.home is not None or active.failover is not None


def fail_tasks_over(draft: Draft, active: ContainerState) -> ContainerState:
    """Have the tasks of a container that has run go to the containers with their standbys."""
    if active.has_left or not has_state_somewhere(active):
        return active
    draft.because(ReasonKind.TASKS_FAIL_OVER, active, active.home)
    draft.instruct(FailTasksOver(active.processor_id))
    return draft.change(replace(active, has_left=True))


def fail_over(draft: Draft, active: ContainerState, *, is_last_resort: bool) -> ContainerState:
    """Send the queued active, which cannot go home, to another place.

    Afterwards it waits in FAILING_OVER, or it is still queued: with the standby's last host as its
    home, or, without a standby, for any host. ``is_last_resort``: no other host is left.
    """
    under_way = active.failover
    awaited = None if under_way is None else _to_be_awaited(draft, active, under_way)
    if awaited is not None:
        return _await(draft, active, awaited)
    if under_way is not None and under_way.standby is not None:
        _give_reason(draft, ReasonKind.CHOICE_LOST, active)
    used = () if under_way is None else under_way.used
    choice = choose(draft, active, used)
    if choice is None and is_last_resort:
        used = ()
        choice = choose(draft, active, used)
    if choice is None:
        return _failed_to_nobody(draft, active, used)
    return _take_place(draft, active, used, *choice)


def _may_take(draft: Draft, active: ContainerState, standby: ContainerState, host: Host) -> bool:
    if host not in (draft.hosts or ()) or draft.is_closed(host) or host in draft.room.small:
        return False
    is_tried = standby.phase not in LIVE and host in active.tried
    return not is_tried and all(
        other.processor_id == standby.processor_id
        for other in separation.in_the_way(draft, active, host)
    )


def _to_be_awaited(
    draft: Draft, active: ContainerState, under_way: Failover
) -> ContainerState | None:
    """Return the chosen standby if it still runs on its host; None: it need not stop first.

    An earlier driver chose it, or a launcher that was thought gone came back with it.
    """
    standby = draft.containers.get(under_way.standby)
    is_it = (
        standby is not None
        and standby.replica_of == active.processor_id
        and standby.phase in LIVE
        and active.home is not None
        and draft.host_of(standby) == active.home == under_way.host
        and _may_take(draft, active, standby, active.home)
    )
    return standby if is_it else None


def _take_place(
    draft: Draft,
    active: ContainerState,
    used: tuple[ProcessorId, ...],
    standby: ContainerState,
    host: Host,
) -> ContainerState:
    is_to_stop = standby.phase in LIVE
    step = FailoverStep.STANDBY if is_to_stop else FailoverStep.STANDBY_HOST
    chosen = tuple(sorted({*used, standby.processor_id}))
    under_way = Failover(step, standby.processor_id, host, chosen)
    draft.record(DeleteLocality(standby.processor_id))
    draft.record(WriteLocality(active.processor_id, host, active.epoch))
    tried = tuple(h for h in active.tried if h != host)
    active = replace(active, home=host, tried=tried, requested_host=None, failover=under_way)
    _write(draft, active, under_way)
    standby = replace(standby, home=None)
    kind = ReasonKind.FAILOVER_TO_STANDBY if is_to_stop else ReasonKind.FAILOVER_TO_STANDBY_HOST
    draft.because(kind, active, host, other=standby)
    if is_to_stop:
        if standby.phase is ContainerPhase.STOPPING:
            standby = draft.change(standby)
        return _await(draft, active, standby)
    active, standby = draft.change(active), draft.change(standby)
    if separation.held_host(draft, standby) == host:
        step_aside(draft, standby)
    return active


def _record(draft: Draft, active: ContainerState, under_way: Failover) -> ContainerState:
    _write(draft, active, under_way)
    return draft.change(replace(active, failover=under_way))


def _write(draft: Draft, active: ContainerState, under_way: Failover) -> None:
    where = (under_way.standby, under_way.host, under_way.step, under_way.used)
    draft.record(WriteFailover(active.processor_id, active.epoch, *where))


def _failed_to_nobody(
    draft: Draft, active: ContainerState, used: tuple[ProcessorId, ...]
) -> ContainerState:
    under_way = Failover(FailoverStep.OTHER_HOST, used=used)
    if active.failover == under_way:
        return active
    draft.because(ReasonKind.FAILOVER_TO_NOBODY, active)
    return _record(draft, active, under_way)


def _await(draft: Draft, active: ContainerState, standby: ContainerState) -> ContainerState:
    """Order the standby to stop; let the active wait for the evidence (Invariant-2).

    The moves also store what else is new of both: the loss of a host moves dozens in one step.
    """
    if standby.phase is not ContainerPhase.STOPPING:
        standby = draft.move(standby, Trigger.REPLACED_BY_ACTIVE, ContainerPhase.STOPPING)
        draft.because(ReasonKind.STEPS_ASIDE, standby, draft.host_of(standby), other=active)
    order_stop(draft, standby)
    waiting = draft.move(
        replace(active, requested_host=None), Trigger.FAILS_OVER, ContainerPhase.FAILING_OVER
    )
    draft.set_timer(
        Timer(TimerKind.STANDBY_STOP, active.processor_id), draft.settings.stop_timeout_ms
    )
    return waiting


def awaiting(draft: Draft, standby: ContainerState) -> ContainerState | None:
    """Return the active that waits for this standby's stop; None: none does."""
    active = draft.containers.get(standby.replica_of)
    if active is None or active.phase is not ContainerPhase.FAILING_OVER:
        return None
    under_way = active.failover
    is_it = under_way is not None and under_way.standby == standby.processor_id
    return active if is_it else None


def way_is_clear(draft: Draft, active: ContainerState, launcher: ResourceState | None) -> None:
    """Let the active begin: the standby has stopped and left ``launcher``, or none."""
    draft.cancel_timer(Timer(TimerKind.STANDBY_STOP, active.processor_id))
    _give_reason(draft, ReasonKind.WAY_IS_CLEAR, active)
    if launcher is None:
        draft.move(active, Trigger.WAY_IS_CLEAR, ContainerPhase.QUEUED)
        return
    held = replace(active, resource_id=launcher.resource_id, launch_failures=0)
    draft.move(held, Trigger.WAY_IS_CLEAR, ContainerPhase.ASSIGNED)


def _give_reason(draft: Draft, kind: ReasonKind, active: ContainerState) -> None:
    chosen = active.failover.standby if active.failover is not None else None
    draft.because(kind, active, active.home, other=chosen)


def settle(draft: Draft) -> None:
    """Give up each standby whose place is lost; its active goes on to the next choice."""
    for active in turns.failovers_to_review(draft):
        if active.failover is None or _to_be_awaited(draft, active, active.failover) is None:
            draft.cancel_timer(Timer(TimerKind.STANDBY_STOP, active.processor_id))
            give_up_waiting(draft, active)


def give_up_waiting(draft: Draft, active: ContainerState) -> None:
    """Give up the standby that the active waits for; this failover does not choose it again."""
    used = () if active.failover is None else active.failover.used
    chosen_no_more = Failover(FailoverStep.OTHER_HOST, used=used)
    queued = draft.move(active, Trigger.WAY_IS_BLOCKED, ContainerPhase.QUEUED)
    _give_reason(draft, ReasonKind.CHOICE_LOST, active)
    _record(draft, queued, chosen_no_more)


def arrived(draft: Draft, container: ContainerState) -> ContainerState:
    """End the failover of a container that has started."""
    if container.failover is not None:
        host = draft.host_of(container)
        draft.because(ReasonKind.FAILOVER_OVER, container, host)
    return draft.end_failover(container)


def found_running(draft: Draft, container: ContainerState, host: Host) -> ContainerState:
    """Note that the container was found running on this host, which ends its failover.

    Its recorded locality is corrected, and its group gives up what it has requested there.
    """
    if container.failover is not None and container.home != host:
        draft.record(WriteLocality(container.processor_id, host, container.epoch))
    container = draft.end_failover(container)
    for other in separation.others(draft, container):
        if other.phase not in LIVE and separation.held_host(draft, other) == host:
            step_aside(draft, other)
    return draft.containers[container.processor_id]


def make_room(draft: Draft, active: ContainerState, is_open: Callable[[Host], bool]) -> None:
    """Take an open host from a standby, if one has requested it and does not run there."""
    for standby in separation.others(draft, active):
        host = separation.held_host(draft, standby)
        if host is not None and is_open(host) and standby.phase not in LIVE:
            step_aside(draft, standby)
            return


def step_aside(draft: Draft, standby: ContainerState) -> None:
    """Cancel the standby's request, or take back its launcher."""
    if standby.is_temporary:
        del draft.containers[standby.processor_id]  # it is nowhere without its launcher
    elif standby.phase in ASKING:
        draft.move(draft.end_request(standby), Trigger.GIVEN_AWAY, ContainerPhase.QUEUED)
    else:
        draft.move(replace(standby, resource_id=None), Trigger.GIVEN_AWAY, ContainerPhase.QUEUED)


def choose(
    draft: Draft, active: ContainerState, used: tuple[ProcessorId, ...]
) -> tuple[ContainerState, Host] | None:
    """Return the best standby, of those not ``used`` yet, with the host whose place it leaves.

    None where the active cannot be failed to a standby.
    """
    left = [s for s in separation.others(draft, active) if s.processor_id not in used]
    hosts = ((s, draft.host_of(s)) for s in left if s.phase in LIVE)
    live = [(s, host) for s, host in hosts if host is not None]
    live.sort(key=lambda pair: _preference(active.home, *pair))
    down = [(s, s.home) for s in left if s.phase not in LIVE and s.home is not None]
    places = (pair for pair in (*live, *down) if _may_take(draft, active, *pair))
    return next(places, None)


def is_replaced(state: AllocatorState, processor_id: ProcessorId) -> bool:
    """Return whether it is a standby whose active starts next where it runs or ran."""
    if any(
        p.standby == processor_id and p.step is PlacementStep.GIVING_WAY for p in state.placements
    ):
        return True
    standby = state.container(processor_id)
    active = state.container(standby.group) if standby is not None else None
    failover = active.failover if active is not None else None
    if failover is None or failover.standby != processor_id:
        return False
    return failover.step is FailoverStep.STANDBY


def _preference(
    home: Host | None, standby: ContainerState, host: Host
) -> tuple[bool, bool, bool, int, ProcessorId]:
    return (
        host != home,
        standby.phase is not ContainerPhase.RUNNING,
        standby.lag is None,
        standby.lag or 0,
        standby.processor_id,
    )
