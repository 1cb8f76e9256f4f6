"""Matches waiting containers with hosts to request and with launchers that check in.

PURE. Theory. Skein's placement is strict, so the allocator relaxes it: it requests home, then the
best other host, then any host, each for a limited time; after that the round begins again. A timer
ends every wait, so a round cannot spin. A request that expires shows that its host has no room, so
the containers queued for that host do not try it in turn.

A launcher's check-in is a grant. It goes to a container whose home is the launcher's host, else to
the one that requested it, else to one that does not request its home. A launcher that fits none is
kept idle while a container waits, and is taken when a request expires: no surplus is thrown away,
and no container leaves its home for it.

Each queued container is placed or not by itself: none blocks those behind it.

Source: HA-YARN, "How does it work?".
"""

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

    A container whose group leaves it no host waits without a request. Order: actives first, then
    those that can go home, so that no other container takes their home, then by id.
    """
    if draft.hosts is None or not draft.containers.indexed(Containers.PHASE, ContainerPhase.QUEUED):
        return
    done: set[ProcessorId] = set()
    while containers := turns.due(draft, done):
        for container in filter(lambda c: c.requested_host, containers):
            draft.change(replace(container, requested_host=None))
        for is_standby in (False, True):
            # Placing an active may have changed its standby: read the containers again.
            due = (draft.containers[c.processor_id] for c in containers)
            queued = [c for c in due if (c.replica_of is not None) == is_standby]
            for container in sorted(queued, key=lambda c: not may_go_home(draft, c)):
                _place_one(draft, container, draft.before.containers.get(container.processor_id))
        done.update(c.processor_id for c in containers)


def _place_one(draft: Draft, container: ContainerState, before: ContainerState | None) -> None:
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
        if before is None or choice != before.requested_host:
            why = why_not_home(draft, container, choice)
            draft.because(ReasonKind.WAITS_FOR_TURN, container, choice, why)
    elif draft.room.is_large_enough and (choice is not None or may_ask_any(draft, container)):
        _request(draft, container, choice)
    elif choice is None and container.awaits_home(draft.exclusions):
        _log_wait_for_home(draft, container, before)


def _log_wait_for_home(
    draft: Draft, container: ContainerState, before: ContainerState | None
) -> None:
    is_known = before is not None and before.has_left and before.phase is ContainerPhase.QUEUED
    if not is_known:
        draft.because(ReasonKind.WAITS_FOR_HOME, container, container.home)


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
    """Cancel the container's request, and count its host as tried, also for those queued for it.

    After a request for any host no host counts as tried: the round begins again.
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
    """Set the live hosts; cancel requests for others, as if they had expired."""
    draft.is_everybody_due = True
    draft.hosts = tuple(sorted(set(event.hosts)))
    racks = {r.host: r.rack for r in event.reports if r.rack is not None}
    if event.reports and racks != dict(draft.racks):
        draft.racks = Map(racks)
    requested = {c.requested_host for c in draft.each(ASKING) if c.requested_host}
    for host in sorted(requested - set(draft.hosts)):
        leave(draft, host, "the ResourceManager does not call it live")


def leave(draft: Draft, host: Host, why: str) -> None:
    """Cancel the requests for this host, as if they had expired."""
    for container in draft.containers.rows(Containers.ASKING, host):
        _withdraw(draft, container, why)


def withdraw_ungranted(draft: Draft, why: str) -> None:
    """Cancel the requests that were not granted, as if they had expired."""
    for container in draft.each(frozenset({ContainerPhase.REQUESTED})):
        _withdraw(draft, container, why)


def _withdraw(draft: Draft, container: ContainerState, why: str) -> None:
    draft.move(draft.end_request(container), Trigger.EXPIRED, ContainerPhase.QUEUED)
    draft.because(ReasonKind.REQUEST_WITHDRAWN, container, container.requested_host, why)


def grant(draft: Draft, launcher: ResourceState) -> None:
    """Grant a launcher without a holder to the container that needs it most, or leave it idle.

    The winner is permitted, or holds the launcher until it may be. If another container requested
    the launcher, that one requests again.
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
    """Log each former owner that the container, which holds ``launcher``, still waits for."""
    for owner in former_owners(draft, container):
        host, why = launcher.host, f"{named(owner)} may still run"
        draft.because(ReasonKind.WAITS_FOR_OWNER, container, host, why, other=owner.processor_id)


def _refused(draft: Draft, container: ContainerState, host: Host) -> None:
    """Back off: another container of its group keeps it from the granted host.

    Without the delay a cluster with too few hosts would grant and release without end.
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
    """Return the container that gets a launcher on this host; None: none seeks one there.

    One at home there, else the asker, else, once hosts are known, one that does not request its
    home; an active before a standby, and none that its group keeps from the host.
    """
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
    """Return whether all former owners of its tasks have stopped, and its group is elsewhere.

    Source: safety P1, I1; STANDBY, Invariant-2.
    """
    if next(former_owners(draft, container), None) is not None:
        return False
    return separation.is_clear(draft, container)


def former_owners(draft: Draft, container: ContainerState) -> Iterator[Incarnation]:
    """Yield former owners of its tasks that may still run, oldest first."""
    for incarnation in (predecessor.incarnation for predecessor in container.unfenced):
        owner = draft.containers.get(incarnation.processor_id)
        if owner is not None and owner.phase in LIVE and owner.incarnation == incarnation:
            yield incarnation


def permit(draft: Draft, container: ContainerState, launcher: ResourceState) -> None:
    """Record the container's next incarnation, with all that it must fence, and permit it.

    Safety I1, L3. Only where ``may_be_permitted``, and only in the step of a check-in of
    ``launcher``: no permit is ever on its way that a launcher did not ask for.
    """
    incarnation = Incarnation(container.processor_id, container.next_epoch)
    version = draft.older.get(container.processor_id, draft.model_version)
    fence = tuple(p.incarnation for p in container.unfenced)
    draft.move(
        replace(
            container,
            epoch=incarnation.epoch,
            has_gained=False,
            has_left=False,
            keeps_process=False,
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
    """Drop fenced incarnations from all next permits (safety I1); a live one stays in its own."""
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
    """Drop the reported incarnations: permits need not list them any more (safety I1)."""
    _drop_unfenced(draft, event.fenced, lambda p: p.incarnation in event.fenced)


def fenced_by_driver(draft: Draft, event: FencedByDriver) -> None:
    """Drop the incarnation if its stop was reported; a revoked one may yet begin (safety I1)."""
    fenced = event.incarnation
    _drop_unfenced(draft, [fenced], lambda p: p.is_stopped and p.incarnation == fenced)


def _listing(draft: Draft, incarnations: Iterable[Incarnation]) -> list[ContainerState]:
    owners = {incarnation.processor_id for incarnation in incarnations}
    found = {owner for owner in owners if owner in draft.containers}
    for owner in owners:
        found.update(draft.containers.indexed(Containers.LISTS, owner))
    return [draft.containers[processor_id] for processor_id in sorted(found)]


def note_stop(draft: Draft, incarnation: Incarnation) -> None:
    """Note in every list with this incarnation that its launcher has reported the stop."""
    stopped = Predecessor(incarnation, is_stopped=True)
    listing = _listing(draft, [incarnation])
    for container in [c for c in listing if incarnation in {p.incarnation for p in c.unfenced}]:
        listed = (stopped if p.incarnation == incarnation else p for p in container.unfenced)
        draft.change(replace(container, unfenced=tuple(listed)))


def adopt(draft: Draft, container: ContainerState, launcher: ResourceState) -> None:
    """Adopt the container on the launcher where it runs, with its epoch; cancel its request.

    Stop it if it is retired, or if another of its group runs on the same host.
    """
    draft.resources[launcher.resource_id] = launcher
    is_served = container.request_id == launcher.request_id
    container = draft.change(draft.end_request(container, is_served=is_served))
    draft.cancel_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id))
    container = standbys.found_running(draft, container, launcher.host)
    is_to_stop = container.is_retired or any(
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
    """Release every launcher without a holder that is of no use."""
    for launcher in draft.idle_resources():
        if is_sought(draft, launcher):
            continue
        draft.release(launcher)
        draft.because(
            ReasonKind.SURPLUS_RELEASED, host=launcher.host, detail=str(launcher.resource_id)
        )


def is_sought(draft: Draft, launcher: ResourceState) -> bool:
    """Return whether a container may still need this launcher, which has no holder."""
    if draft.phase is not JobPhase.ACTIVE:
        return False
    return bool(draft.early) or any(
        separation.may_have(draft, container, launcher.host)
        for phase in _MATCH_ORDER
        for container in draft.containers.any_row(Containers.PHASE, phase)
    )
