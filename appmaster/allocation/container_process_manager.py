"""``step(state, event) -> Decision``: the one entrance; the life of containers and of the job.

PURE: no I/O, clock, randomness, logging. Same state and event, same bytes out. Records are flushed
before any instruction is run (``instructions`` has the whole contract).

Rules for editing: a handler changes the draft and nothing else; whom to ask and which launcher to
take is ``container_allocator``'s, after every event, in ``_settle``. A new event needs a class in
``events``, a handler in ``_HANDLERS``, a row in ``TRANSITIONS`` if it befalls a container, and a
test per phase.

Decisions.

* *What is charged to the retry keys*: causes FAILED and KILLED, a lost resource unless its host is
  lost, a launcher that never came, unless its host is lost. Not charged: ORDERED and SIGNALLED
  (somebody wanted the stop: a stray SIGTERM never retires a processor), LEASE_LOST (safety C6).
  All but FINISHED start the processor again, on the same launcher where it lives. FINISHED is for
  good.
* *Retry window*: each charged failure sets a timer; when it ends the count is zero. So the count
  restarts after the window has passed since the last failure and the rest after it, as
  samza-behaviours 4.7 has it, and no time is stored. When a container rests: see ``retries``.
  ``retry.count=0`` fails the job (17.4 does not copy).
* *Stop evidence* is a launcher's word, or the shell's that a launcher is silent beyond its limit.
  Skein's word about the container of a launcher that has a child is counted as stale (safety P1).
* *The end*: what runs is stopped, with evidence, before EndJob, whatever the result.
* *A child that nobody should run* is stopped. One that is the current incarnation of a processor
  without a resource is adopted: a driver that starts anew finds its containers so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation.draft import Draft
from homeport.appmaster.allocation.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    FencedByDriver,
    FencesReported,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
    LauncherSilent,
    ResourceAllocated,
    ResourceEnded,
    ShutdownRequested,
    TimerFired,
    TimerKind,
    describe,
    named,
)
from homeport.appmaster.allocation.instructions import (
    CancelRequest,
    EndJob,
    Instruction,
    JobResult,
    PermitContainer,
    Record,
    ReleaseResource,
    StopContainer,
)
from homeport.appmaster.allocation.retries import delay_ms, longer_series
from homeport.appmaster.allocation.state import (
    LIVE,
    TERMINAL,
    WAITING,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    Ending,
    Happening,
    JobPhase,
    Predecessor,
    ResourceState,
    check_in_timer,
    expiry_timer,
    retry_delay_timer,
    retry_window_timer,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.http.messages import StopCause
from homeport.job_coordinator.model.ids import Host, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation

CHARGED_CAUSES = frozenset({StopCause.FAILED, StopCause.KILLED})
"""Causes of a stop that count as failures of the processor."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one event led to: flush ``records``, run ``instructions``, go on from ``state``."""

    state: AllocatorState
    records: tuple[Record, ...]
    instructions: tuple[Instruction, ...]


def step(state: AllocatorState, event: Event) -> Decision:
    """The state after ``event``, and what follows from it. ``state`` itself is unchanged.

    Total: an event that comes late, twice or for somebody unknown is counted in ``stale_events``
    and changes nothing.

    Raises:
        InvariantViolation: a bug of ours, or of the shell's.
    """
    draft = Draft(state, describe(event))
    _HANDLERS[type(event)](draft, event)
    _settle(draft)
    return Decision(draft.freeze(), tuple(draft.records), tuple(draft.instructions))


def _settle(draft: Draft) -> None:
    """Placing, releasing and the job's end follow from the state, whatever the event was."""
    if draft.phase is JobPhase.ACTIVE:
        if len(draft.each(TERMINAL)) == len(draft.containers):
            _end_of_all(draft)
        else:
            allocator.place(draft)
    if draft.phase is not JobPhase.ACTIVE or not allocator.is_anybody_seeking(draft):
        allocator.release_idle(draft)
    is_over = len(draft.each(TERMINAL)) == len(draft.containers)
    if draft.phase is JobPhase.ENDING and is_over and draft.ending is not None:
        draft.phase = JobPhase.ENDED
        draft.instruct(EndJob(draft.ending.result, draft.ending.diagnostics))


def _end_of_all(draft: Draft) -> None:
    failed = [c.last_failure for c in draft.each(frozenset({ContainerPhase.FAILED}))]
    if failed:
        _begin_ending(draft, JobResult.FAILED, "; ".join(failed))
    else:
        _begin_ending(draft, JobResult.SUCCEEDED, "every processor finished")


def _begin_ending(draft: Draft, result: JobResult, diagnostics: str) -> None:
    """The result stands; nothing waits any more and what runs is told to stop."""
    draft.phase = JobPhase.ENDING
    draft.ending = Ending(result, diagnostics)
    for container in draft.each():
        draft.cancel_timer(retry_window_timer(container.processor_id))
        draft.cancel_timer(retry_delay_timer(container.processor_id))
    for container in draft.each(WAITING):
        draft.end_request(container)
        draft.move(
            container,
            Happening.JOB_ENDING,
            ContainerPhase.STOPPED,
            request_id=None,
            resource_id=None,
            wanted=None,
        )
    for container in draft.each(LIVE):
        stopping = draft.move(container, Happening.JOB_ENDING, ContainerPhase.STOPPING)
        _order_stop(draft, stopping)


def _order_stop(draft: Draft, container: ContainerState) -> None:
    if container.resource_id is None:
        raise InvariantViolation(f"{named(container.incarnation)} runs without a resource")
    draft.instruct(StopContainer(container.resource_id, container.incarnation))


# --- the job and its surroundings


def _on_job_model_published(draft: Draft, event: JobModelPublished) -> None:
    if draft.phase is not JobPhase.NEW:
        if draft.phase is JobPhase.ACTIVE and event.version != draft.model_version:
            raise InvariantViolation(
                f"JobModel version {event.version} published over version {draft.model_version}: "
                "the model of a running job does not change"
            )
        draft.count_stale()
        return
    draft.phase = JobPhase.ACTIVE
    draft.model_version = event.version
    for processor_id, last_host in event.processors.items():
        epoch = event.epochs.get(processor_id, 0)
        unfenced = set(event.unfenced.get(processor_id, ()))
        if epoch:
            # Nobody came after the last one, so nobody has fenced it.
            unfenced.add(Incarnation(processor_id, epoch))
        draft.containers[processor_id] = ContainerState(
            processor_id,
            epoch=epoch,
            home=last_host if draft.settings.host_affinity_enabled else None,
            unfenced=tuple(Predecessor(incarnation) for incarnation in sorted(unfenced)),
        )


def _on_hosts_observed(draft: Draft, event: HostsObserved) -> None:
    allocator.observe_hosts(draft, event.hosts)


def _on_shutdown_requested(draft: Draft, _event: ShutdownRequested) -> None:
    if draft.phase in {JobPhase.NEW, JobPhase.ACTIVE}:
        _begin_ending(draft, JobResult.KILLED, "shut down on request")
    else:
        draft.count_stale()


# --- requests


def _on_resource_allocated(draft: Draft, event: ResourceAllocated) -> None:
    container = draft.asker(event.request_id)
    if container is None:
        draft.count_stale()
    elif draft.may_befall(container, Happening.ALLOCATED):
        draft.cancel_timer(expiry_timer(event.request_id))
        draft.move(container, Happening.ALLOCATED, ContainerPhase.ALLOCATED)
        draft.set_timer(check_in_timer(event.request_id), draft.settings.check_in_timeout_ms)


def _on_timer_fired(draft: Draft, event: TimerFired) -> None:
    timer = event.timer
    if timer not in draft.timers:
        draft.count_stale()
        return
    draft.timers.remove(timer)
    if timer.processor_id is not None:
        container = draft.containers[timer.processor_id]
        if timer.kind is TimerKind.RETRY_DELAY:
            draft.move(container, Happening.RESTED, ContainerPhase.QUEUED)
        else:
            draft.change(container, failures=0)
        return
    asker = draft.asker(timer.request_id)
    if asker is None:
        raise InvariantViolation(f"{timer} was armed for a request that is not outstanding")
    if timer.kind is TimerKind.REQUEST_EXPIRY:
        allocator.expire(draft, asker)
    else:
        _launch_failed(draft, asker)


def _launch_failed(draft: Draft, container: ContainerState, *, has_ended: bool = False) -> None:
    """No launcher came of the request: a failure; cancelled unless it has ended; the next host."""
    draft.end_request(container, is_served=has_ended)
    place = container.wanted or "any host"
    _fail(
        draft,
        draft.change(
            container,
            tried=allocator.with_tried(container, container.wanted),
            launch_failures=longer_series(container),
        ),
        Happening.LAUNCH_FAILED,
        ContainerPhase.QUEUED,
        story=f"no launcher checked in for request {container.request_id} ({place})",
        is_charged=not _is_lost(draft, container.wanted),
    )


def _is_lost(draft: Draft, host: Host | None) -> bool:
    return host is not None and draft.hosts is not None and host not in draft.hosts


# --- launchers


def _on_launcher_checked_in(draft: Draft, event: LauncherCheckedIn) -> None:
    if draft.phase is JobPhase.NEW:
        return
    known = draft.resources.get(event.resource_id)
    launcher = known or ResourceState(event.resource_id, event.host, event.request_id)
    holder = draft.holder(event.resource_id)
    if event.running is not None:
        _check_in_with_child(draft, launcher, event.running, holder)
    elif holder is not None:
        _check_in_of_holder(draft, launcher, holder)
    elif known is None and draft.phase is JobPhase.ACTIVE:
        allocator.grant(draft, launcher)
    elif known is None:
        draft.resources[launcher.resource_id] = launcher
    elif known.is_released:
        draft.instruct(ReleaseResource(known.resource_id))


def _check_in_of_holder(draft: Draft, launcher: ResourceState, holder: ContainerState) -> None:
    """A launcher without a child, set aside for ``holder`` or told of it before: told (again)."""
    if holder.phase is ContainerPhase.ASSIGNED:
        allocator.permit(draft, holder, launcher)
    elif holder.phase is ContainerPhase.STOPPING:
        _order_stop(draft, holder)
    else:
        resource_id, version = launcher.resource_id, holder.model_version
        draft.instruct(PermitContainer(resource_id, holder.incarnation, version, holder.fence))


def _check_in_with_child(
    draft: Draft, launcher: ResourceState, running: Incarnation, holder: ContainerState | None
) -> None:
    if holder is not None and holder.phase in LIVE and holder.incarnation == running:
        if holder.phase is ContainerPhase.STOPPING:
            _order_stop(draft, holder)
        return
    owner = draft.containers.get(running.processor_id)
    is_unknown = launcher.resource_id not in draft.resources
    if is_unknown and owner and owner.phase in WAITING and owner.epoch == running.epoch:
        allocator.adopt(draft, owner, launcher)
    else:
        draft.count_stale()
        draft.instruct(StopContainer(launcher.resource_id, running))


def _on_resource_ended(draft: Draft, event: ResourceEnded) -> None:
    story = "its YARN container ended"
    if event.resource_id in draft.resources:
        _resource_lost(draft, event.resource_id, story)
    elif asker := draft.asker(event.request_id):
        _launch_failed(draft, asker, has_ended=True)
    elif (launcher := draft.launcher_of(event.request_id)) and not draft.has_child(launcher):
        _resource_lost(draft, launcher.resource_id, story)
    else:
        draft.count_stale()


def _on_launcher_silent(draft: Draft, event: LauncherSilent) -> None:
    launcher = draft.resources.get(event.resource_id)
    if launcher and launcher.request_id is not None:
        draft.instruct(CancelRequest(launcher.request_id))
    _resource_lost(draft, event.resource_id, "its launcher fell silent")


def _resource_lost(draft: Draft, resource_id: ResourceId, story: str) -> None:
    """The launcher is gone and what it ran has stopped: a failure, unless the host is lost."""
    holder = draft.holder(resource_id)
    launcher = draft.resources.pop(resource_id, None)
    if launcher is None:
        draft.count_stale()
    elif holder is None:
        return
    elif holder.phase is ContainerPhase.ASSIGNED:
        draft.move(holder, Happening.RESOURCE_LOST, ContainerPhase.QUEUED, resource_id=None)
    elif holder.phase is ContainerPhase.STOPPING:
        draft.move(holder, Happening.RESOURCE_LOST, ContainerPhase.STOPPED, resource_id=None)
    else:
        _fail(
            draft,
            draft.change(holder, resource_id=None),
            Happening.RESOURCE_LOST,
            ContainerPhase.QUEUED,
            story=f"{named(holder.incarnation)} on {launcher.host}: {story}",
            is_charged=not _is_lost(draft, launcher.host),
        )


# --- stream containers


def _current(draft: Draft, incarnation: Incarnation, happening: Happening) -> ContainerState | None:
    """The container of this last permit, if this can befall it; else None, counted as stale."""
    container = draft.containers.get(incarnation.processor_id)
    if container is None or container.epoch != incarnation.epoch or container.epoch < 1:
        draft.count_stale()
        return None
    return container if draft.may_befall(container, happening) else None


def _on_container_started(draft: Draft, event: ContainerStarted) -> None:
    container = _current(draft, event.incarnation, Happening.STARTED)
    if container is None:
        return
    is_starting = container.phase is ContainerPhase.STARTING
    draft.move(
        container,
        Happening.STARTED,
        ContainerPhase.RUNNING if is_starting else container.phase,
        home=draft.host_of(container) if draft.settings.host_affinity_enabled else None,
        fence=container.fence,
        unfenced=tuple(p for p in container.unfenced if p.incarnation not in container.fence),
    )


def _on_container_stopped(draft: Draft, event: ContainerStopped) -> None:
    container = _current(draft, event.incarnation, Happening.STOPPED)
    if container is None:
        return
    host = draft.host_of(container)
    container = draft.change(
        container,
        unfenced=tuple(
            replace(p, is_stopped=True) if p.incarnation == event.incarnation else p
            for p in container.unfenced
        ),
    )
    if event.cause is StopCause.FINISHED:
        _finish(draft, container)
    elif container.phase in WAITING:
        draft.count_stale()
    elif container.phase is ContainerPhase.STOPPING:
        draft.move(container, Happening.STOPPED, ContainerPhase.STOPPED, resource_id=None)
    else:
        what = f"{event.cause.value}, exit code {event.exit_code}"
        _fail(
            draft,
            container,
            Happening.STOPPED,
            ContainerPhase.ASSIGNED,
            story=f"{named(event.incarnation)} on {host}: {what}",
            is_charged=event.cause in CHARGED_CAUSES,
        )


def _on_fences_reported(draft: Draft, event: FencesReported) -> None:
    """The processor's next permit need not list them (safety I1)."""
    allocator.drop_unfenced(draft, event.incarnation, lambda p: p.incarnation in event.fenced)


def _on_fenced_by_driver(draft: Draft, event: FencedByDriver) -> None:
    """Dropped if its launcher waited for it: one that is only revoked may yet begin (safety I1)."""
    incarnation = event.incarnation
    allocator.drop_unfenced(
        draft, incarnation, lambda p: p.is_stopped and p.incarnation == incarnation
    )


def _finish(draft: Draft, container: ContainerState) -> None:
    draft.end_request(container)
    draft.cancel_timer(retry_window_timer(container.processor_id))
    draft.cancel_timer(retry_delay_timer(container.processor_id))
    draft.move(
        container,
        Happening.STOPPED,
        ContainerPhase.FINISHED,
        request_id=None,
        resource_id=None,
        wanted=None,
        failures=0,
    )


def _fail(
    draft: Draft,
    container: ContainerState,
    happening: Happening,
    next_phase: ContainerPhase,
    *,
    story: str,
    is_charged: bool,
) -> None:
    """The container goes on in ``next_phase``, or rests; or it, and perhaps the job, is given up.

    Source: samza-behaviours 4.7, retry rules.
    """
    settings = draft.settings
    timer = retry_window_timer(container.processor_id)
    is_counted = is_charged and settings.retry_count >= 0
    failures = container.failures + is_counted
    if failures <= settings.retry_count or not is_counted:
        container = draft.change(
            container, failures=failures, last_failure=story, request_id=None, wanted=None
        )
        rest_ms = delay_ms(settings, container, happening) if is_charged else 0
        if is_counted:
            draft.set_timer(timer, settings.retry_window_ms + rest_ms)
        if rest_ms:
            draft.move(container, happening, ContainerPhase.RESTING, resource_id=None)
            draft.set_timer(retry_delay_timer(container.processor_id), rest_ms)
        else:
            draft.move(container, happening, next_phase)
        return
    diagnostics = (
        f"processor {container.processor_id} failed {failures} times, "
        f"cluster-manager.container.retry.count is {settings.retry_count}; {story}"
    )
    draft.cancel_timer(timer)
    draft.move(
        container,
        happening,
        ContainerPhase.FAILED,
        failures=failures,
        last_failure=diagnostics,
        request_id=None,
        resource_id=None,
        wanted=None,
    )
    if settings.fail_job_after_retries:
        _begin_ending(draft, JobResult.FAILED, diagnostics)


_HANDLERS: Mapping[type[Event], Callable[[Draft, Any], None]] = {
    JobModelPublished: _on_job_model_published,
    HostsObserved: _on_hosts_observed,
    LauncherCheckedIn: _on_launcher_checked_in,
    ResourceAllocated: _on_resource_allocated,
    ResourceEnded: _on_resource_ended,
    LauncherSilent: _on_launcher_silent,
    TimerFired: _on_timer_fired,
    ContainerStarted: _on_container_started,
    ContainerStopped: _on_container_stopped,
    FencesReported: _on_fences_reported,
    FencedByDriver: _on_fenced_by_driver,
    ShutdownRequested: _on_shutdown_requested,
}
