"""Matches containers that wait with hosts to ask for and with launchers that check in.

PURE. Theory. Skein's placement is strict, so relaxing is ours: home, then the best other host,
each with an expiry of its own, then any host; when that expires too, the round begins again. Every
wait is ended by a timer, so a round cannot spin. A request's expiry is a fact about the host
(it has no room), so containers queued for the same host do not each wait for it in turn.

A grant is a launcher's check-in, matched by the host it reports: to a container at home there,
else to the one whose request it was, else to one that is not asking for its home. While a
container still waits, a launcher that fits none is kept idle, and taken when a request expires: a
surplus is not thrown away, and no container leaves its home for it.

Not head-of-line: each queued container is placed or not by itself.

Source: HA-YARN, "How does it work?".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from immutables import Map

from homeport.appmaster.allocation import host_search, separation
from homeport.appmaster.allocation import placement_queue as turns
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.host_search import may_ask_any, may_go_home, seek, why_not_home
from homeport.appmaster.allocation.job_end import order_stop
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
    Predecessor,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import (
    FencedByDriver,
    FencesReported,
    HostsObserved,
    Timer,
    TimerKind,
    named,
)
from homeport.appmaster.allocation.protocol.instructions import PermitContainer, WriteProcessorEpoch
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.retries import delay_ms, longer_series
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

_MATCH_ORDER = (ContainerPhase.QUEUED, ContainerPhase.REQUESTED, ContainerPhase.ALLOCATED)


def place(draft: Draft) -> None:
    """Give each queued container an idle launcher, a request for a host, or its turn in a queue.

    One whose group leaves it no host at all waits without a request. Order: active ones first; then
    those that can go home, so that no other container takes their home before them; then by id.
    """
    if draft.hosts is None:
        return
    standbys.settle(draft)
    if not draft.containers.indexed(Containers.PHASE, ContainerPhase.QUEUED):
        return
    done: set[ProcessorId] = set()
    while containers := turns.due(draft, done):
        for container in filter(lambda c: c.requested_host, containers):
            draft.change(replace(container, requested_host=None))
        for is_standby in (False, True):
            # An active may have left its standby with nothing: what is due is read again.
            due = (draft.containers[c.processor_id] for c in containers)
            queued = [c for c in due if (c.replica_of is not None) == is_standby]
            for container in sorted(queued, key=lambda c: not may_go_home(draft, c)):
                before = draft.before.containers.get(container.processor_id)
                _place_one(draft, container, None if before is None else before.requested_host)
        done.update(c.processor_id for c in containers)


def _place_one(draft: Draft, container: ContainerState, waited_for: Host | None) -> None:
    container, candidates = seek(draft, container)
    if container.phase is not ContainerPhase.QUEUED:
        return
    choice = candidates.best()
    idle = [r for r in draft.idle_resources() if separation.may_have(draft, container, r.host)]
    launcher = host_search.best_launcher(idle, choice, container.home, draft.loads)
    if launcher is not None:
        held = replace(container, resource_id=launcher.resource_id)
        draft.move(held, Trigger.PLACED, ContainerPhase.ASSIGNED)
        why = why_not_home(draft, container, launcher.host)
        draft.because(ReasonKind.IDLE_LAUNCHER_TAKEN, container, launcher.host, why)
        log_what_it_waits_for(draft, container, launcher)
    elif choice is not None and draft.is_asked(choice):
        draft.change(replace(container, requested_host=choice))
        if choice != waited_for:
            why = why_not_home(draft, container, choice)
            draft.because(ReasonKind.WAITS_FOR_TURN, container, choice, why)
    elif draft.room.is_large_enough and (choice is not None or may_ask_any(draft, container)):
        _request(draft, container, choice)


def _request(draft: Draft, container: ContainerState, host: Host | None) -> None:
    request_id = draft.request(host, draft.settings.request_timeout_ms)
    asking = replace(container, request_id=request_id, requested_host=host)
    draft.move(asking, Trigger.PLACED, ContainerPhase.REQUESTED)
    if host is None:
        kind = ReasonKind.ANY_HOST_ASKED
    else:
        kind = ReasonKind.HOME_ASKED if host == container.home else ReasonKind.OTHER_HOST_ASKED
    draft.because(kind, container, host, why_not_home(draft, container, host))


def expire(draft: Draft, container: ContainerState) -> None:
    """Cancel the container's request and count its host as tried; after ``any``, no host.

    Those queued for the same host count it as tried too.
    """
    left, host = draft.end_request(container), container.requested_host
    limit = f"{draft.settings.request_timeout_ms} ms"
    draft.because(ReasonKind.REQUEST_EXPIRED, container, host, limit)
    left = replace(left, tried=()) if host is None else left.having_tried(host)
    draft.move(left, Trigger.EXPIRED, ContainerPhase.QUEUED)
    if host is not None:
        for other in draft.containers.rows(Containers.QUEUED, host):
            draft.change(other.having_tried(host))


def observe_hosts(draft: Draft, event: HostsObserved) -> None:
    """Note these live hosts; cancel requests for others, as if they had expired."""
    draft.is_everybody_due = True
    draft.hosts = tuple(sorted(set(event.hosts)))
    racks = {r.host: r.rack for r in event.reports if r.rack is not None}
    if event.reports and racks != dict(draft.racks):
        draft.racks = Map(racks)
    requested = {c.requested_host for c in draft.each(ASKING) if c.requested_host}
    for host in sorted(requested - set(draft.hosts)):
        leave(draft, host, "the ResourceManager does not call it live")


def leave(draft: Draft, host: Host, why: str) -> None:
    """Request this host no more: cancel its requests, as if they had expired."""
    for container in draft.containers.rows(Containers.ASKING, host):
        _withdraw(draft, container, why)


def withdraw_ungranted(draft: Draft, why: str) -> None:
    """Cancel what was not granted, as if expired: no request stands."""
    for container in draft.each(frozenset({ContainerPhase.REQUESTED})):
        _withdraw(draft, container, why)


def _withdraw(draft: Draft, container: ContainerState, why: str) -> None:
    draft.move(draft.end_request(container), Trigger.EXPIRED, ContainerPhase.QUEUED)
    draft.because(ReasonKind.REQUEST_WITHDRAWN, container, container.requested_host, why)


def grant(draft: Draft, launcher: ResourceState) -> None:
    """Grant a launcher without a holder to the container that needs it most, or leave it idle.

    The winner is permitted, or holds it until it may be. The container whose request it was and
    that does not get it asks again.
    """
    draft.resources[launcher.resource_id] = launcher
    asker = draft.asker(launcher.request_id)
    winner = _winner(draft, launcher.host, asker)
    if asker is not None and asker is not winner:
        left = draft.end_request(asker, is_served=True)
        if separation.may_have(draft, asker, launcher.host):
            draft.move(left, Trigger.GIVEN_AWAY, ContainerPhase.QUEUED)
        else:
            _refused(draft, left, launcher.host)
    _log_grant(draft, launcher, asker, winner)
    if winner is not None:
        left = draft.end_request(winner, is_served=winner is asker)
        if may_be_permitted(draft, winner):
            permit(draft, left, launcher)
        else:
            held = replace(left, resource_id=launcher.resource_id, launch_failures=0)
            draft.move(held, Trigger.CHECKED_IN, ContainerPhase.ASSIGNED)
            log_what_it_waits_for(draft, winner, launcher)


def _log_grant(
    draft: Draft,
    launcher: ResourceState,
    asker: ContainerState | None,
    winner: ContainerState | None,
) -> None:
    host = launcher.host
    if winner is None:
        if is_sought(draft, launcher):
            draft.because(ReasonKind.SURPLUS_KEPT, host=host, detail=str(launcher.resource_id))
        return
    if asker is not None and asker is not winner:
        why = "its home is there" if winner.home == host else ""
        draft.because(ReasonKind.GIVEN_AWAY, asker, host, why, other=winner)
    if winner is asker:
        kind = ReasonKind.OWN_LAUNCHER_CAME
    elif winner.home == host:
        kind = ReasonKind.LAUNCHER_AT_HOME_CAME
    else:
        kind = ReasonKind.STRANGE_LAUNCHER_CAME
    draft.because(kind, winner, host)


def log_what_it_waits_for(draft: Draft, container: ContainerState, launcher: ResourceState) -> None:
    """Log why the container, which now holds ``launcher``, may not be permitted yet, if so."""
    for owner in former_owners(draft, container):
        host, why = launcher.host, f"{named(owner)} may still run"
        draft.because(ReasonKind.WAITS_FOR_OWNER, container, host, why, other=owner.processor_id)


def _refused(draft: Draft, container: ContainerState, host: Host) -> None:
    """Back off from any host: the granted one is another's of its group.

    Without the rest a cluster with too few hosts would grant and release without end.
    """
    waiting = draft.change(replace(container, launch_failures=longer_series(container)))
    rest_ms = delay_ms(draft.settings, waiting, Trigger.LAUNCH_FAILED)
    if rest_ms:
        draft.move(waiting, Trigger.GIVEN_AWAY, ContainerPhase.BACKING_OFF)
        draft.set_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id), rest_ms)
    else:
        draft.move(waiting, Trigger.GIVEN_AWAY, ContainerPhase.QUEUED)
    draft.because(ReasonKind.KEPT_APART, container, host)


def _winner(draft: Draft, host: Host, asker: ContainerState | None) -> ContainerState | None:
    """Return actives first; none whose group is in the way; away from home once hosts are known."""
    if asker is not None and not separation.may_have(draft, asker, host):
        asker = None
    at_home = _first(draft, Containers.SEEKS_HOME, host, host)
    if at_home is not None:
        return asker if asker is not None and asker.home == host else at_home
    if asker is not None or draft.hosts is None:
        return asker
    away = (_first(draft, Containers.SEEKS_AWAY, phase, host) for phase in _MATCH_ORDER)
    found = [c for c in away if c is not None]
    return min(found, key=lambda c: c.replica_of is not None, default=None)


def _first(draft: Draft, index: int, value: object, host: Host) -> ContainerState | None:
    """Return the first active filed there, or else standby, that may be on this host."""
    standby = None
    for container in draft.containers.each_row(index, value):
        is_later = standby is not None and container.replica_of is not None
        if is_later or not separation.may_have(draft, container, host):
            continue
        if container.replica_of is None:
            return container
        standby = container
    return standby


def may_be_permitted(draft: Draft, container: ContainerState) -> bool:
    """Return whether all former owners of its tasks have stopped, and its group is away.

    Source: safety P1, I1; STANDBY, Invariant-2.
    """
    if next(former_owners(draft, container), None) is not None:
        return False
    return separation.is_clear(draft, container)


def former_owners(draft: Draft, container: ContainerState) -> Iterator[Incarnation]:
    """Yield former owners of its tasks that must be taken to run, oldest first."""
    for incarnation in (predecessor.incarnation for predecessor in container.unfenced):
        owner = draft.containers.get(incarnation.processor_id)
        if owner is not None and owner.phase in LIVE and owner.incarnation == incarnation:
            yield incarnation


def permit(draft: Draft, container: ContainerState, launcher: ResourceState) -> None:
    """Record the container's next incarnation, with all it must fence, and permit it.

    Safety I1, L3. Only where ``may_be_permitted``, and only in the step of a check-in of
    ``launcher``: a permit that was not asked for is never on its way.
    """
    incarnation = Incarnation(container.processor_id, container.next_epoch)
    version = draft.older.get(container.processor_id, draft.model_version)
    fence = tuple(p.incarnation for p in container.unfenced)
    draft.move(
        replace(
            container,
            epoch=incarnation.epoch,
            has_gained=False,
            model_version=version,
            fence=fence,
            unfenced=(*container.unfenced, Predecessor(incarnation)),
            resource_id=launcher.resource_id,
            tried=(),
            launch_failures=0,
            lag=None,
            has_spark=False,
        ),
        Trigger.CHECKED_IN,
        ContainerPhase.STARTING,
    )
    draft.record(WriteProcessorEpoch(container.processor_id, incarnation.epoch, version, fence))
    draft.instruct(PermitContainer(launcher.resource_id, incarnation, version, fence))
    what = f"epoch {incarnation.epoch}, JobModel version {version}"
    draft.because(ReasonKind.PERMITTED, container, launcher.host, what)


def _drop_unfenced(
    draft: Draft, incarnations: Iterable[Incarnation], is_fenced: Callable[[Predecessor], bool]
) -> None:
    """Drop these from all next permits (safety I1); a processor taken to run lists its own."""
    is_news = False
    for container in _listing(draft, incarnations):
        own = container.incarnation if container.phase in LIVE else None
        kept = tuple(p for p in container.unfenced if p.incarnation == own or not is_fenced(p))
        if kept != container.unfenced:
            is_news = True
            draft.change(replace(container, unfenced=kept))
    if not is_news:
        draft.count_stale()


def fences_reported(draft: Draft, event: FencesReported) -> None:
    """Drop these: no permit need list them any more (safety I1)."""
    _drop_unfenced(draft, event.fenced, lambda p: p.incarnation in event.fenced)


def fenced_by_driver(draft: Draft, event: FencedByDriver) -> None:
    """Drop one that its launcher waited for; a revoked one may yet begin (safety I1)."""
    fenced = event.incarnation
    _drop_unfenced(draft, [fenced], lambda p: p.is_stopped and p.incarnation == fenced)


def _listing(draft: Draft, incarnations: Iterable[Incarnation]) -> list[ContainerState]:
    """Return the containers that may list any of these, by id."""
    owners = {incarnation.processor_id for incarnation in incarnations}
    found = {owner for owner in owners if owner in draft.containers}
    for owner in owners:
        found.update(draft.containers.indexed(Containers.LISTS, owner))
    return [draft.containers[processor_id] for processor_id in sorted(found)]


def note_stop(draft: Draft, incarnation: Incarnation) -> None:
    """Note in every list that has this one that a launcher waited for it."""
    stopped = Predecessor(incarnation, is_stopped=True)
    listing = _listing(draft, [incarnation])
    for container in [c for c in listing if incarnation in {p.incarnation for p in c.unfenced}]:
        listed = (stopped if p.incarnation == incarnation else p for p in container.unfenced)
        draft.change(replace(container, unfenced=tuple(listed)))


def adopt(draft: Draft, container: ContainerState, launcher: ResourceState) -> None:
    """Adopt the container where it was found, under its epoch; cancel its request.

    It stops where a model has overtaken it, or where another of its group runs beside.
    """
    draft.resources[launcher.resource_id] = launcher
    is_served = container.request_id == launcher.request_id
    container = draft.change(draft.end_request(container, is_served=is_served))
    draft.cancel_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id))
    container = standbys.found_running(draft, container, launcher.host)
    is_to_stop = container.is_overtaken or any(
        separation.held_host(draft, other) == launcher.host
        for other in separation.others(draft, container)
    )
    adopted = draft.move(
        replace(
            container,
            resource_id=launcher.resource_id,
            home=launcher.host if draft.settings.host_affinity_enabled else None,
            tried=(),
            launch_failures=0,
        ),
        Trigger.CHECKED_IN,
        ContainerPhase.STOPPING if is_to_stop else ContainerPhase.RUNNING,
    )
    draft.because(ReasonKind.ADOPTED, container, launcher.host, f"epoch {adopted.epoch}")
    if is_to_stop:
        order_stop(draft, adopted)
        draft.because(ReasonKind.OVERTAKEN, container, launcher.host)


def release_idle(draft: Draft) -> None:
    """Release every launcher that has no holder, and that no container seeks."""
    for launcher in draft.idle_resources():
        if is_sought(draft, launcher):
            continue
        draft.release(launcher)
        draft.because(
            ReasonKind.SURPLUS_RELEASED, host=launcher.host, detail=str(launcher.resource_id)
        )


def is_sought(draft: Draft, launcher: ResourceState) -> bool:
    """Return whether a launcher without a holder may still be of use."""
    if draft.phase is not JobPhase.ACTIVE:
        return False
    return bool(draft.early) or any(
        separation.may_have(draft, container, launcher.host)
        for phase in _MATCH_ORDER
        for container in draft.containers.any_row(Containers.PHASE, phase)
    )
