"""What must hold for the state after every step, as sentences.

PURE. ``check`` looks at every row. With ``changes`` ``check_step`` looks only at the changed rows
and at those that they concern, so that the shell can call it after every step in production. A
broken sentence is a bug in the allocator, and ends the AM attempt.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from homeport.appmaster.allocation import cooperative_change, host_search, separation
from homeport.appmaster.allocation.capacity import TOO_SMALL, is_hopeless
from homeport.appmaster.allocation.commands import warm_moves
from homeport.appmaster.allocation.commands.unfinished import limited
from homeport.appmaster.allocation.container_allocator import is_sought
from homeport.appmaster.allocation.exclusion import suspects_itself
from homeport.appmaster.allocation.job_end import is_at_its_end
from homeport.appmaster.allocation.job_state.draft import Changes, Draft
from homeport.appmaster.allocation.job_state.hosts import ranked
from homeport.appmaster.allocation.job_state.occupancy import counted, occupancy_of
from homeport.appmaster.allocation.job_state.placements import PlacementStep, SparkWait
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    TERMINAL,
    WAITING,
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    EarlyPhase,
    EarlyRequest,
    EarlyRequests,
    JobPhase,
    Preparation,
    ResourceState,
)
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind, named
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId

_HOLDING = LIVE | {ContainerPhase.ASSIGNED}


@dataclass(frozen=True, slots=True)
class _Rows:
    containers: Sequence[ContainerState]
    resources: Sequence[ResourceState]
    early: Sequence[EarlyRequest]

    def hosts(self) -> set[Host]:
        wanted = {c.requested_host for c in self.containers if c.requested_host is not None}
        return wanted | {e.host for e in self.early}


def check(state: AllocatorState) -> None:
    """Check that ``state`` is sound.

    InvariantViolation: it is not; the message has every broken sentence, and the state.
    """
    rows = _all_rows(state)
    broken = [*_of_state(state, rows, rows.hosts()), *_of_change(state, state)]
    broken += [*_of_timers(state), *_of_tables(state)]
    _raise_if_any(broken, state, "")


def check_step(
    before: AllocatorState, after: AllocatorState, story: str, changes: Changes | None = None
) -> None:
    """Check that ``after`` is sound and may follow ``before``; ``story``: the event between them.

    ``changes``: the rows that differ from a sound ``before``; None: perhaps all.

    InvariantViolation: as ``check``, with the story.
    """
    if changes is None:
        rows = _all_rows(after)
        broken = [*_of_state(after, rows, rows.hosts()), *_of_change(before, after)]
        broken += _of_timers(after)
        broken += _of_succession(before, after, before.containers.keys())
    else:
        was, rows = _rows_before(before, changes), _rows_concerned(after, changes)
        broken = [*_of_state(after, rows, was.hosts() | rows.hosts())]
        broken += _of_change(before, after, changes.containers)
        broken += _of_timers_changed(before, was, after, _rows_before(after, changes))
        broken += _of_succession(before, after, sorted(changes.containers))
    _raise_if_any(broken, after, story)


def _all_rows(state: AllocatorState) -> _Rows:
    return _Rows(tuple(state.containers), tuple(state.resources), tuple(state.early))


def _rows_before(state: AllocatorState, changes: Changes) -> _Rows:
    containers = (state.containers.get(key) for key in sorted(changes.containers))
    resources = (state.resources.get(key) for key in sorted(changes.resources))
    early = (state.early.get(key) for key in sorted(changes.early))
    return _Rows(
        [row for row in containers if row is not None],
        [row for row in resources if row is not None],
        [row for row in early if row is not None],
    )


def _rows_concerned(state: AllocatorState, changes: Changes) -> _Rows:
    holders = set(changes.containers)
    for resource_id in changes.resources:
        holders.update(state.containers.indexed(Containers.RESOURCE, resource_id))
    return _rows_before(
        state, Changes(frozenset(holders), changes.resources, changes.early | holders)
    )


def _of_state(state: AllocatorState, rows: _Rows, hosts: set[Host]) -> Iterator[str]:
    draft = _read(state)
    yield from _of_containers(rows)
    yield from _of_overtaken(state, rows)
    yield from _of_sharing(state, rows, hosts)
    yield from _of_groups(draft, rows.containers)
    yield from _of_job(state)
    yield from _of_waiting(draft, rows, hosts)
    yield from _of_idle_launchers(draft)
    yield from _of_hosts(state)
    yield from _of_early(state, rows)
    yield from _of_cancelled(state, rows)
    yield from _of_placements(state, rows)


def _raise_if_any(broken: list[str], state: AllocatorState, story: str) -> None:
    if broken:
        lines = [*broken, *(["after: " + story] if story else []), f"job: {state.phase.value}"]
        lines += [f"timers: {', '.join(sorted(map(str, state.timers))) or 'none'}"]
        lines += [str(part) for part in (*state.containers, *state.resources)]
        raise InvariantViolation("\n  ".join(lines))


def _of_containers(rows: _Rows) -> Iterator[str]:
    for container in rows.containers:
        name = f"processor {container.processor_id}"
        if (container.phase in _HOLDING) != (container.resource_id is not None):
            yield f"{name} holds a resource exactly when assigned, starting, running or stopping"
        is_preparing = container.preparation is not Preparation.NONE
        if is_preparing and container.phase is not ContainerPhase.ASSIGNED:
            yield f"the launcher of {name} prepares a process only before its permit"
        if (container.phase in ASKING) != (container.request_id is not None):
            yield f"{name} has a request exactly when requested or allocated"
        if container.requested_host is not None and container.phase not in ASKING | {
            ContainerPhase.QUEUED
        }:
            yield f"{name} wants a host only while it seeks one"
        unfenced = [predecessor.incarnation for predecessor in container.unfenced]
        if container.phase in LIVE and container.incarnation not in unfenced:
            yield f"{name} will be fenced by its successor while it runs"
        if any(
            i.processor_id == container.processor_id and i.epoch > container.epoch for i in unfenced
        ):
            yield f"{name} has fenced no incarnation of its future"
        if container.phase in LIVE and container.incarnation in container.fence:
            yield f"{name} does not fence itself"


def _of_overtaken(state: AllocatorState, rows: _Rows) -> Iterator[str]:
    for container in rows.containers:
        name = f"processor {container.processor_id}"
        if container.is_retired and container.phase is not ContainerPhase.STOPPING:
            yield f"retired {name} is there only until it has stopped"
        if container.phase is ContainerPhase.STARTING and container.is_overtaken:
            yield f"{name}, which a model has overtaken, does not start"
        for incarnation in (predecessor.incarnation for predecessor in container.unfenced):
            owner = state.container(incarnation.processor_id)
            if owner is None or owner is container or owner.incarnation != incarnation:
                continue
            if owner.phase in LIVE and not owner.is_overtaken:
                yield f"{named(incarnation)} is well and will not be fenced"


def _of_change(
    before: AllocatorState, after: AllocatorState, changed: frozenset[ProcessorId] | None = None
) -> Iterator[str]:
    if after.phase is not JobPhase.ACTIVE:
        return
    draft = _read(after)
    changed = changed if before.phase is JobPhase.ACTIVE else None
    for container in cooperative_change.due(draft, before.containers, changed):
        if cooperative_change.awaited_by(draft, container) is None:
            yield f"processor {container.processor_id} lets go as nothing else is waited for"
        for successor in cooperative_change.successors(draft, container):
            is_prepared = successor.preparation is not Preparation.NONE
            if successor.phase is ContainerPhase.ASSIGNED and not is_prepared:
                yield f"the launcher of processor {successor.processor_id} prepares a process"


def _of_sharing(state: AllocatorState, rows: _Rows, hosts: set[Host]) -> Iterator[str]:
    for resource_id in sorted({c.resource_id for c in rows.containers if c.resource_id}):
        launcher = state.resources.get(resource_id)
        if launcher is None:
            yield f"a held resource is known: {resource_id}"
        elif launcher.is_released:
            yield f"a held resource is not released: {resource_id}"
        if len(state.containers.indexed(Containers.RESOURCE, resource_id)) > 1:
            yield f"no two containers are on one resource: {resource_id}"
    for request_id in sorted({c.request_id for c in rows.containers if c.request_id}):
        if len(state.containers.indexed(Containers.REQUEST, request_id)) > 1:
            yield f"a request is for one container: {request_id}"
        if request_id >= state.next_request_id:
            yield "the next request's number has not been used"
    for host in sorted(hosts):
        if _strict_requests(state, host) > 1:
            yield f"at most one strict request is outstanding per host: {host}"


def _strict_requests(state: AllocatorState, host: Host | None) -> int:
    asked = state.containers.indexed(Containers.ASKED, host)
    return len(asked) + len(state.early.indexed(EarlyRequests.ASKED, host))


def _of_job(state: AllocatorState) -> Iterator[str]:
    phases = set(state.containers.values_of(Containers.PHASE))
    is_complete = state.hosts is not None
    has_result = state.ending is not None
    is_awaited = state.phase is JobPhase.ACTIVE and not is_complete
    if has_result != (state.phase in {JobPhase.ENDING, JobPhase.ENDED}) and not is_awaited:
        yield "the result stands exactly when the job is ending or has ended"
    if state.phase is JobPhase.ACTIVE and is_at_its_end(state.containers, is_complete=is_complete):
        yield "a job whose active containers all came to their end, ends"
    if state.phase is JobPhase.ENDING and (phases & WAITING or phases <= TERMINAL):
        yield "a job that ends waits for stops, and for nothing else"
    if state.phase is JobPhase.ENDED and not phases <= TERMINAL:
        yield "nothing runs when the job has ended"


def _of_waiting(draft: Draft, rows: _Rows, hosts: set[Host]) -> Iterator[str]:
    state = draft.before
    if state.phase is not JobPhase.ACTIVE or state.hosts is None:
        return
    queued = [c for c in rows.containers if c.phase is ContainerPhase.QUEUED]
    if not state.room.is_large_enough:  # no request: those wait for a larger host
        queued = [c for c in queued if c.requested_host is not None]
    waiting = {c.processor_id for c in queued if not _strict_requests(state, c.requested_host)}
    for host in hosts:
        if not _strict_requests(state, host):
            waiting.update(state.containers.indexed(Containers.QUEUED, host))
    for processor_id in sorted(waiting):
        if _has_place(draft, draft.containers[processor_id]):
            yield f"processor {processor_id} is queued for a host being asked for"


def _of_tables(state: AllocatorState) -> Iterator[str]:
    tables = (state.containers, state.resources, state.early)
    if not all(table.has_sound_indexes() for table in tables):
        yield "every row is found by its indexes"
    kept = occupancy_of(state)
    if kept != counted(state):
        yield "idle launchers and loads are as a look at every row finds them"
    if kept.ranking is not None and kept.ranking != ranked(
        kept.ranking.hosts,
        full := kept.ranking.full,
        lambda host: (host in full, kept.loads.get(host, 0), _strict_requests(state, host) > 0),
    ):
        yield "hosts are ranked as their loads and requests say"


def _of_hosts(state: AllocatorState) -> Iterator[str]:
    hosts = state.hosts or ()
    if not state.silent and not state.exclusions:
        return
    if {*state.silent, *state.exclusions} - set(hosts):
        yield "silence is remembered of live hosts only"
    if hosts and len(state.exclusions) == len(hosts) == 1:
        yield "the only host is never excluded"
    is_our_fault = suspects_itself(state.silent, hosts)
    for host, is_probed in sorted(state.exclusions.items()):
        asked = len(state.containers.indexed(Containers.ASKING, host))
        asked += len(state.early.indexed(EarlyRequests.ASKING, host))
        if asked > is_probed:
            yield f"excluded {host} gets one probe at most"
        if host in state.silent and is_our_fault:
            yield f"{host} is not excluded while we suspect ourselves"


def _of_early(state: AllocatorState, rows: _Rows) -> Iterator[str]:
    for early in rows.early:
        launcher = _awaited_launcher(state, early.processor_id)
        if not early.is_reservation and (launcher is None or launcher.ended is None):
            yield f"home is requested early for {early.processor_id} only while evidence is awaited"


def _of_cancelled(state: AllocatorState, rows: _Rows) -> Iterator[str]:
    asked = [c.request_id for c in rows.containers if c.request_id is not None]
    asked += [e.request_id for e in rows.early if e.phase is not EarlyPhase.OVER]
    for request_id in sorted(r for r in asked if r in state.cancelled):
        yield f"no container waits for a request that was cancelled: {request_id}"
    for launcher in rows.resources:
        if launcher.request_id in state.cancelled:
            yield f"a launcher that is known came of no cancelled request: {launcher.resource_id}"


def _of_placements(state: AllocatorState, rows: _Rows) -> Iterator[str]:
    if state.phase is not JobPhase.ACTIVE and state.placements:
        yield "a job that ends has answered all that operators asked"
    begun = [p for p in state.placements if p.step is not PlacementStep.WAITING]
    known = (state.container(p.request.processor_id) for p in begun)
    groups = Counter(c.replica_of or c.processor_id for c in known if c is not None)
    if any(count > 1 for count in groups.values()):
        yield "one action is under way in a group at a time"
    reserving = {p.request.processor_id for p in begun if p.step is PlacementStep.RESERVING}
    if {e.processor_id for e in rows.early if e.is_reservation} - reserving:
        yield "a reservation is requested for an action"
    kept = {(p.resource_id, p.request.processor_id) for p in begun if not p.is_launched}
    if {(r.resource_id, r.reserved_for) for r in rows.resources if r.reserved_for} - kept:
        yield "a launcher is kept on behalf of an action"


def _awaited_launcher(state: AllocatorState, processor_id: ProcessorId) -> ResourceState | None:
    container = state.container(processor_id)
    if container is not None and container.phase is ContainerPhase.FAILING_OVER:
        under_way = container.failover
        container = state.containers.get(under_way.standby) if under_way else None
    return None if container is None else state.resources.get(container.resource_id)


def _of_idle_launchers(draft: Draft) -> Iterator[str]:
    for launcher in draft.idle_resources():
        if not is_sought(draft, launcher):
            yield f"{launcher.resource_id} is kept idle only while a container seeks a resource"


def _of_timers(state: AllocatorState) -> Iterator[str]:
    needed = _timers_needed(state, _all_rows(state)) | _host_timers_needed(state)
    if state.timers != needed:
        yield _needs(needed)


def _needs(timers: frozenset[Timer]) -> str:
    shown = ", ".join(sorted(map(str, timers))) or "none"
    return f"timers are armed exactly where a phase needs them: {shown}"


def _of_timers_changed(
    before: AllocatorState, was: _Rows, after: AllocatorState, rows: _Rows
) -> Iterator[str]:
    were, needed = _timers_needed(before, was), _timers_needed(after, rows)
    if (before.silent, before.exclusions) != (after.silent, after.exclusions):
        were |= _host_timers_needed(before, but=after)
        needed |= _host_timers_needed(after, but=before)
    is_armed_well = all(timer in after.timers for timer in needed)
    is_rest_off = not any(timer in after.timers for timer in were - needed)
    if not is_armed_well or not is_rest_off:
        yield _needs(needed)
    elif len(after.timers) - len(before.timers) != len(needed) - len(were):
        yield "timers are armed, or not, only as what needs them changes"


def _timers_needed(state: AllocatorState, rows: _Rows) -> frozenset[Timer]:
    needed = _timers_of_commands(state)
    for container in rows.containers:
        if container.request_id is not None:
            is_requested = container.phase is ContainerPhase.REQUESTED
            kind = TimerKind.REQUEST_EXPIRY if is_requested else TimerKind.CHECK_IN
            needed.add(Timer(kind, container.request_id))
        if container.phase is ContainerPhase.BACKING_OFF:
            needed.add(Timer(TimerKind.RETRY_DELAY, container.processor_id))
        if container.phase is ContainerPhase.FAILING_OVER:
            needed.add(Timer(TimerKind.STANDBY_STOP, container.processor_id))
        if container.preparation is Preparation.ORDERED:
            needed.add(Timer(TimerKind.PREPARATION, container.processor_id))
        is_on_its_way = container.phase not in TERMINAL and state.phase is JobPhase.ACTIVE
        if container.failures and is_on_its_way:
            needed.add(Timer(TimerKind.RETRY_WINDOW, container.processor_id))
    for early in rows.early:
        if early.phase is not EarlyPhase.OVER:
            is_asked = early.phase is EarlyPhase.ASKED
            kind = TimerKind.REQUEST_EXPIRY if is_asked else TimerKind.CHECK_IN
            needed.add(Timer(kind, early.request_id))
    queued = state.containers.indexed(Containers.PHASE, ContainerPhase.QUEUED)
    if is_hopeless(state.phase, state.room, queued):
        needed.add(TOO_SMALL)
    return frozenset(needed)


def _timers_of_commands(state: AllocatorState) -> set[Timer]:
    if not state.placements:
        return set()
    waiting = (p.request.processor_id for p in state.placements if p.spark is SparkWait.AWAITED)
    timers = {Timer(TimerKind.SPARE_SPARK, processor_id) for processor_id in waiting}
    due = limited(state.containers.get, state.placements)
    return timers | {Timer(TimerKind.COMMAND, p.request.uuid) for p in due}


def _host_timers_needed(
    state: AllocatorState, but: AllocatorState | None = None
) -> frozenset[Timer]:
    silent, closed = state.silent, _closed(state)
    if but is not None:
        silent, closed = silent - but.silent, closed - _closed(but)
    silences = {Timer(TimerKind.SILENCE, host) for host in silent}
    return frozenset(silences | {Timer(TimerKind.EXCLUSION, host) for host in closed})


def _closed(state: AllocatorState) -> frozenset[Host]:
    return frozenset(h for h, is_probed in state.exclusions.items() if not is_probed)


def _of_succession(
    before: AllocatorState, after: AllocatorState, processors: Sequence[ProcessorId]
) -> Iterator[str]:
    yield from _of_job_succession(before, after)
    yield from of_warm_moves(before, after)
    is_changed = before.model_version != after.model_version
    commanded = {p.request.processor_id for p in after.placements}
    for processor_id in processors:
        old, new = before.container(processor_id), after.container(processor_id)
        if old is None:
            continue
        if new is None:
            if not is_changed and not old.is_retired and not old.is_temporary:
                yield f"processor {old.processor_id} does not vanish"
            continue
        if new.epoch not in {old.epoch, old.next_epoch}:
            yield f"the epoch of processor {old.processor_id} stays or is the next one"
        elif new.epoch > old.epoch:
            yield from _of_permit(before, old, after.resources.get(new.resource_id))
        is_commanded = old.phase is ContainerPhase.FAILED and processor_id in commanded
        if old.phase in TERMINAL and new.phase is not old.phase and not is_changed | is_commanded:
            yield f"processor {old.processor_id} does not leave its end"


def _of_job_succession(before: AllocatorState, after: AllocatorState) -> Iterator[str]:
    jobs = list(JobPhase)
    if jobs.index(after.phase) < jobs.index(before.phase):
        yield f"a job never goes back from {before.phase.value} to {after.phase.value}"
    if after.next_request_id < before.next_request_id:
        yield "a request's number is never used again"
    if before.ending is not None and after.ending != before.ending:
        yield "the result, once decided, stands"
    if after.model_version < before.model_version:
        yield "a model is not taken back"


def _of_permit(
    before: AllocatorState, old: ContainerState, launcher: ResourceState | None
) -> Iterator[str]:
    name = f"processor {old.processor_id}"
    if old.phase in LIVE:
        yield f"{name} is permitted again only after it stopped"
    if old.is_retired:
        yield f"retired {name} is not permitted any more"
    for incarnation in sorted({p.incarnation for p in old.unfenced} - {old.incarnation}):
        owner = before.container(incarnation.processor_id)
        if owner is not None and owner.phase in LIVE and owner.incarnation == incarnation:
            yield f"{name} is permitted only after the former owner {named(incarnation)} stopped"
    draft = _read(before)
    for other in separation.others(draft, old):
        host = separation.held_host(draft, other)
        if launcher is not None and other.phase in LIVE and host == launcher.host:
            yield f"Invariant-2: {old.processor_id} starts after {other.processor_id} has stopped"


_ON_ITS_WAY = WAITING | {ContainerPhase.STARTING}


def _of_groups(draft: Draft, changed: Iterable[ContainerState]) -> Iterator[str]:
    for active_id in sorted({c.group for c in changed}):
        group = draft.group(active_id)
        if len(group) > 1:
            yield from _of_group(draft, active_id)
        for container in group:
            if container.failover is not None or container.phase is ContainerPhase.FAILING_OVER:
                yield from _of_failover(draft, container)


def _of_group(draft: Draft, active_id: ProcessorId) -> Iterator[str]:
    active = draft.containers.get(active_id)
    if active is not None and active.replica_of is not None:
        yield f"{active_id}, which has standbys, is no standby itself"
    for one, other in combinations(draft.group(active_id), 2):
        host = separation.held_host(draft, one)
        if host is None or host != separation.held_host(draft, other):
            continue
        names = f"{one.processor_id} and {other.processor_id}"
        phases = {one.phase, other.phase}
        if ContainerPhase.STOPPING not in phases or not phases <= LIVE:
            yield f"Invariant-1: {names} are not on one host, {host}, unless one is found there"


def _of_failover(draft: Draft, container: ContainerState) -> Iterator[str]:
    name = f"processor {container.processor_id}"
    under_way = container.failover
    if under_way is None:
        yield f"{name} fails over only by a failover"
        return
    if container.replica_of is not None or container.phase not in _ON_ITS_WAY:
        yield f"a failover of {name} is under way only while it is active and on its way"
    if container.phase is not ContainerPhase.FAILING_OVER:
        return
    standby = draft.containers.get(under_way.standby)
    if standby is None or standby.phase is not ContainerPhase.STOPPING:
        yield f"{name} waits for the stop of a standby that stops"
    elif not draft.host_of(standby) == under_way.host == container.home:
        yield f"{name} waits for the standby on the host that is its home now"


def of_warm_moves(before: AllocatorState, after: AllocatorState) -> Iterator[str]:
    """Yield the broken sentences about standbys that were ordered to give way in this step."""
    gave_way = {p.request.uuid for p in before.placements if p.step is PlacementStep.GIVING_WAY}
    for placement in after.placements:
        standby = after.containers.get(placement.standby)
        is_news = (
            placement.step is PlacementStep.GIVING_WAY and placement.request.uuid not in gave_way
        )
        if standby is None or not is_news or placement.spark is SparkWait.OVER:
            continue
        if not warm_moves.has_what_it_needs(after.settings, standby):
            yield f"{standby.processor_id} gives way with a Spark beside it, or late"


def _has_place(draft: Draft, container: ContainerState) -> bool:
    if container.awaits_home(draft.exclusions):
        return bool(host_search.Candidates(draft, container))
    if separation.is_alone(draft, container) and not draft.settings.drained_hosts:
        return True
    fresh = replace(container, tried=())
    return bool(host_search.Candidates(draft, fresh)) or host_search.may_ask_any(draft, fresh)


def _read(state: AllocatorState) -> Draft:
    """Return a draft for reading. It is frozen, or it and its tables would refer to each other."""
    draft = Draft(state, "")
    draft.freeze()
    return draft
