"""``step(state, event) -> Decision``: the one entrance; the life of containers and of the job.

PURE: no I/O, clock, randomness, logging. The same state and event give the same decision. The shell
flushes the records before it runs any instruction (``instructions`` has the whole contract).

Rules for editing. A handler changes the draft and nothing else. After every event ``_conclude`` has
``container_allocator`` choose hosts to request and launchers to take. A new event needs a class, a
handler in ``_HANDLERS``, a row in ``TRANSITIONS`` if it changes a container, and a test per phase.

Decisions.

* *What is charged to the retry keys*: the causes in ``retries.CHARGED_CAUSES``; a lost launcher, or
  one that never came, unless its host is lost; a container that YARN ends for its memory. Not
  charged: ORDERED and SIGNALLED (the stop was wanted: a stray SIGTERM never retires a processor);
  LEASE_LOST, reported or seen by the keeper (safety C6); UNAVAILABLE (Kafka or the AM was away,
  which must not fail the job); CUT_OFF (the same, for one host). After any cause but FINISHED the
  processor starts again, on the same launcher if that lives. After CUT_OFF and NO_PACKAGE the
  launcher is released, and other hosts are requested first.
* *Retry window*: each charged failure sets a timer, and the count becomes zero when it runs out.
  The window begins after the last failure and the delay that follows it, as in Samza 1.8; no time
  is stored. ``retries`` decides the delay. ``retry.count=0`` fails the job, unlike in Samza.
* *Evidence of a stop* is a launcher's report, or the shell's that a launcher is silent beyond its
  limit. A report by Skein about a launcher that has a child is no evidence (safety P1).
* *The end*: every container stops, with evidence, before EndJob, whatever the result is.
* *Only a check-in grants a launcher*: Skein's report only announces one. A container is permitted
  only in the answer to its launcher's check-in. The cluster manager ends a launcher whose request
  was cancelled: that launcher gets no container, and its child is not adopted.
* *A child that should not run* is stopped. The next driver finds containers that run: it adopts a
  child that is the current incarnation of a processor without a launcher.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeport.appmaster.allocation import (
    capacity,
    cooperative_change,
    early_requests,
    exclusion,
    model_change,
    separation,
)
from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation import placement_actions as placement
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.commands import unfinished, warm_moves
from homeport.appmaster.allocation.job_end import (
    begin_ending,
    begin_if_due,
    end_if_over,
    end_of_all,
    finish,
    has_nothing_left,
    is_at_its_end,
    order_stop,
)
from homeport.appmaster.allocation.job_state.draft import Changes, Draft
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    WAITING,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    Failure,
    FailureKind,
    JobPhase,
    Preparation,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol import events
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind
from homeport.appmaster.allocation.protocol.instructions import (
    Instruction,
    JobResult,
    PermitContainer,
    PrepareProcess,
    Record,
    ReleaseResource,
    StopContainer,
    WriteStop,
    in_order,
)
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.appmaster.allocation.retries import (
    fail,
    is_charged,
    longer_series,
    loss,
    record_counts,
    story_of_end,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause


@dataclass(frozen=True, slots=True)
class Decision:
    """What one event led to: flush ``records``, run ``instructions``, go on from ``state``.

    ``reasons``: why, in the order of the decisions; for people and metrics. ``changes``: the rows
    of the state that may differ. Comparisons use neither.
    """

    state: AllocatorState
    records: tuple[Record, ...]
    instructions: tuple[Instruction, ...]
    reasons: tuple[Reason, ...] = field(default=(), compare=False)
    changes: Changes = field(default=Changes(), compare=False)


def step(state: AllocatorState, event: events.Event) -> Decision:
    """Return the state after ``event``, and what follows from it. ``state`` itself is unchanged.

    An event that comes late, twice or for an unknown container is counted in ``stale_events`` and
    changes nothing.

    InvariantViolation: a bug in the allocator, or in the shell.
    """
    draft = Draft(state, events.describe(event))
    _HANDLERS[type(event)](draft, event)
    _conclude(draft)
    return Decision(
        draft.freeze(),
        in_order(draft.records),
        tuple(draft.instructions),
        tuple(draft.reasons),
        draft.changes(),
    )


def _conclude(draft: Draft) -> None:
    """Place containers, release launchers and end the job as the state, not the event, requires."""
    is_complete = draft.hosts is not None
    if draft.phase is JobPhase.ACTIVE and is_at_its_end(draft.containers, is_complete=is_complete):
        end_of_all(draft)
    begin_if_due(draft)
    if draft.phase is not JobPhase.ACTIVE:
        exclusion.forget_all(draft)
    cooperative_change.settle(draft)
    placement.settle(draft)
    if draft.phase is JobPhase.ACTIVE and is_complete:
        standbys.settle(draft)
    early_requests.settle(draft)  # an active that waits for its standby no more needs none
    if draft.phase is JobPhase.ACTIVE:
        allocator.place(draft)
    cooperative_change.settle(draft)
    capacity.settle(draft)
    allocator.release_idle(draft)
    end_if_over(draft)
    record_counts(draft)


# --- the job and its surroundings


def _on_older_models_wanted(draft: Draft, event: events.OlderModelsWanted) -> None:
    draft.older = event.older


def _on_settings_changed(draft: Draft, event: events.SettingsChanged) -> None:
    if draft.settings == event.settings:
        draft.count_stale()
    newly_drained = event.settings.drained_hosts - draft.settings.drained_hosts
    draft.settings = event.settings
    draft.is_everybody_due = True
    for host in sorted(newly_drained):
        allocator.leave(draft, host, "it is drained")


def _on_shutdown_requested(draft: Draft, event: events.ShutdownRequested) -> None:
    if draft.phase in {JobPhase.NEW, JobPhase.ACTIVE}:
        begin_ending(draft, JobResult(event.result), event.diagnostics)
    else:
        draft.count_stale()


# --- requests


def _on_resource_allocated(draft: Draft, event: events.ResourceAllocated) -> None:
    container = draft.asker(event.request_id)
    early = draft.early_asker(event.request_id)
    if early is not None:
        early_requests.granted(draft, early)
    elif container is None:
        draft.count_stale()
    elif draft.may_befall(container, Trigger.ALLOCATED):
        draft.move(container, Trigger.ALLOCATED, ContainerPhase.ALLOCATED)
        draft.await_check_in(event.request_id)
        draft.because(ReasonKind.LAUNCHER_AWAITED, container, container.requested_host)


def _on_timer_fired(draft: Draft, event: events.TimerFired) -> None:
    timer = event.timer
    if timer not in draft.timers:
        draft.count_stale()
        return
    draft.timers = draft.timers.without(timer)
    match timer.kind:
        case TimerKind.RETRY_WINDOW:
            draft.change(replace(draft.containers[timer.key], failures=0))
            draft.because(ReasonKind.FORGIVEN, timer.key, detail="none within the window")
        case TimerKind.RETRY_DELAY:
            draft.move(draft.containers[timer.key], Trigger.BACKED_OFF, ContainerPhase.QUEUED)
            draft.because(ReasonKind.BACKED_OFF, timer.key)
        case TimerKind.STANDBY_STOP:
            standbys.give_up_waiting(draft, draft.containers[timer.key])
        case TimerKind.SPARE_SPARK:
            warm_moves.wait_for_no_spark(draft, timer.key)
        case TimerKind.SILENCE | TimerKind.EXCLUSION:
            exclusion.time_is_over(draft, timer.kind, timer.key)
        case TimerKind.PREPARATION:
            cooperative_change.time_is_over(draft, timer.key)
        case TimerKind.COMMAND:
            unfinished.time_is_over(draft, timer.key)
        case TimerKind.TOO_SMALL:
            capacity.time_is_over(draft)
        case _:
            _request_took_too_long(draft, timer)


def _request_took_too_long(draft: Draft, timer: Timer) -> None:
    if early_requests.over(draft, timer.key, is_served=False):
        return
    asker = draft.asker(timer.key)
    if asker is None:
        raise InvariantViolation(f"{timer} was armed for a request that is not outstanding")
    if timer.kind is TimerKind.REQUEST_EXPIRY:
        allocator.expire(draft, asker)
        exclusion.probe_failed(draft, asker.requested_host)
    else:
        _launch_failed(draft, asker)


def _launch_failed(
    draft: Draft, container: ContainerState, ended: events.ResourceEnded | None = None
) -> None:
    draft.end_request(container, is_served=ended is not None)
    place = container.requested_host or "any host"
    why = f": {ended.story}" if ended is not None and ended.story else ""
    story = f"no launcher checked in for request {container.request_id} ({place}){why}"
    tried = container.having_tried(container.requested_host)
    fail(
        draft,
        draft.change(replace(tried, launch_failures=longer_series(container))),
        Trigger.LAUNCH_FAILED,
        ContainerPhase.QUEUED,
        failure=Failure(FailureKind.NO_LAUNCHER, story, host=container.requested_host),
        is_charged=not exclusion.is_lost(draft, container.requested_host)
        and not (ended is not None and ended.is_taken_back),
    )
    exclusion.probe_failed(draft, container.requested_host)


# --- launchers


def _on_launcher_checked_in(draft: Draft, event: events.LauncherCheckedIn) -> None:
    if draft.phase is JobPhase.NEW:
        return
    exclusion.host_spoke(draft, event.host)
    known = draft.resources.get(event.resource_id) or placement.claim(draft, event)
    if known is None:
        early_requests.over(draft, event.request_id, is_served=True)
    elif known.ended is not None:
        known = draft.resources[known.resource_id] = replace(
            known, ended=None
        )  # the report of its end was wrong
    launcher = known or ResourceState(event.resource_id, event.host, event.request_id)
    holder = draft.holder(event.resource_id)
    if event.running is not None:
        _with_child(draft, launcher, event.running, holder)
    elif holder is not None:
        _answer_holder(draft, launcher, holder)
    elif known is None:
        _grant_newcomer(draft, launcher)
    elif known.is_released:
        draft.instruct(ReleaseResource(known.resource_id))
    elif draft.phase is JobPhase.ACTIVE and known.reserved_for is None:
        allocator.grant(draft, known)  # idle: its holder is retired


def _grant_newcomer(draft: Draft, launcher: ResourceState) -> None:
    if draft.forget_cancelled(launcher.request_id):
        draft.release(launcher)
        draft.because(
            ReasonKind.CANCELLED_RELEASED, host=launcher.host, detail=str(launcher.resource_id)
        )
    elif draft.phase is JobPhase.ACTIVE:
        allocator.grant(draft, launcher)
    else:
        draft.resources[launcher.resource_id] = launcher


def _answer_holder(draft: Draft, launcher: ResourceState, holder: ContainerState) -> None:
    if holder.phase is ContainerPhase.ASSIGNED:
        if allocator.may_be_permitted(draft, holder):
            allocator.permit(draft, holder, launcher)
        elif holder.preparation is Preparation.ORDERED:
            draft.instruct(PrepareProcess(launcher.resource_id, holder.processor_id))
    elif holder.phase is ContainerPhase.STOPPING:
        order_stop(draft, holder)
    else:
        resource_id, version = launcher.resource_id, holder.model_version
        draft.instruct(PermitContainer(resource_id, holder.incarnation, version, holder.fence))


def _with_child(
    draft: Draft, launcher: ResourceState, running: Incarnation, holder: ContainerState | None
) -> None:
    if holder is not None and holder.phase in LIVE and holder.incarnation == running:
        if holder.phase is ContainerPhase.STOPPING:
            order_stop(draft, holder)
        return
    owner = draft.containers.get(running.processor_id)
    is_known = launcher.resource_id in draft.resources
    is_news = not is_known and launcher.request_id not in draft.cancelled
    if is_news and running in draft.retired and draft.phase is JobPhase.ACTIVE:
        model_change.adopt_retired(draft, running, launcher)
    elif is_news and owner and owner.phase in WAITING and owner.epoch == running.epoch:
        allocator.adopt(draft, owner, launcher)
    else:
        draft.count_stale()
        draft.instruct(StopContainer(launcher.resource_id, running))
        why = "it is not the incarnation that was permitted last, or not there"
        draft.because(ReasonKind.STRANGER_STOPPED, running.processor_id, launcher.host, why)


def _on_resource_ended(draft: Draft, event: events.ResourceEnded) -> None:
    if event.resource_id is not None and event.resource_id in draft.resources:
        _launcher_gone(draft, draft.resources[event.resource_id], event)
    elif asker := draft.asker(event.request_id):
        _launch_failed(draft, asker, event)
    elif launcher := draft.launcher_of(event.request_id):
        if not draft.has_child(launcher):
            _launcher_gone(draft, launcher, event)
        elif launcher.ended is None:
            early_requests.end_was_reported(draft, launcher, event)
        else:
            draft.count_stale()
    elif not (
        draft.forget_cancelled(event.request_id)
        or early_requests.over(draft, event.request_id, is_served=True, story=event.story)
    ):
        draft.count_stale()


def _on_launcher_silent(draft: Draft, event: events.LauncherSilent) -> None:
    launcher = draft.resources.get(event.resource_id)
    if launcher is None:
        draft.count_stale()
        return
    if launcher.request_id is not None:
        draft.cancel(launcher.request_id, is_ended=launcher.ended is not None)
    del draft.resources[launcher.resource_id]
    if launcher.ended is None and not launcher.is_released:
        exclusion.launcher_fell_silent(draft, launcher.host)
    _launcher_gone(draft, launcher, launcher.ended)


def _launcher_gone(
    draft: Draft, launcher: ResourceState, ended: events.ResourceEnded | None
) -> None:
    """Go on after the loss of a launcher, whose child has stopped; charge it where it is known.

    YARN may end launcher and child for what the child did. Then the failure is charged even if the
    launcher reported before that a signal ended its child.
    """
    holder = draft.holder(launcher.resource_id)
    draft.resources.pop(launcher.resource_id, None)
    if holder is None:
        return
    is_own_fault = ended is not None and ended.is_own_fault
    if ended is not None and ended.is_taken_back and not separation.is_alone(draft, holder):
        holder = draft.change(holder.having_tried(launcher.host))
    if holder.is_temporary and holder.phase is not ContainerPhase.STOPPING:
        model_change.temporary_over(draft, holder, None, StopCause.LEASE_LOST)
    elif holder.phase is ContainerPhase.ASSIGNED and not is_own_fault:
        draft.move(replace(holder, resource_id=None), Trigger.RESOURCE_LOST, ContainerPhase.QUEUED)
        draft.because(ReasonKind.LAUNCHER_LOST, holder, launcher.host, story_of_end(ended))
    elif holder.phase is ContainerPhase.STOPPING:
        model_change.stopped(draft, holder, Trigger.RESOURCE_LOST, None)
    else:
        # Without a report of its end it is a lease that ran out (safety C6): Kafka may have been
        # away, from all containers at once.
        is_known = (
            ended is not None
            and not ended.is_taken_back
            and not exclusion.is_lost(draft, launcher.host)
        )
        fail(
            draft,
            draft.change(replace(holder, resource_id=None)),
            Trigger.RESOURCE_LOST,
            ContainerPhase.QUEUED,
            failure=loss(holder, launcher, ended),
            is_charged=(is_own_fault or is_known) and not placement.is_launching(draft, holder),
        )


# --- stream containers


def _current(draft: Draft, incarnation: Incarnation, trigger: Trigger) -> ContainerState | None:
    """Return the container if this is its last incarnation and ``trigger`` can befall it.

    Else count the event as stale and return None.
    """
    container = draft.containers.get(incarnation.processor_id)
    if container is None or container.epoch != incarnation.epoch or container.epoch < 1:
        draft.count_stale()
        return None
    return container if draft.may_befall(container, trigger) else None


def _on_container_started(draft: Draft, event: events.ContainerStarted) -> None:
    container = _current(draft, event.incarnation, Trigger.STARTED)
    if container is None:
        return
    is_starting = container.phase is ContainerPhase.STARTING
    has_home = draft.settings.host_affinity_enabled and not container.is_temporary
    container = standbys.arrived(draft, container)
    draft.move(
        replace(
            container,
            home=draft.host_of(container) if has_home else None,
            lag=container.lag if container.replica_of is not None else None,
            unfenced=tuple(p for p in container.unfenced if p.incarnation not in container.fence),
        ),
        Trigger.STARTED,
        ContainerPhase.RUNNING if is_starting else container.phase,
    )
    if is_starting:
        host, what = draft.host_of(container), f"epoch {container.epoch}"
        draft.because(ReasonKind.STARTED, container, host, what)


def _on_container_stopped(draft: Draft, event: events.ContainerStopped) -> None:
    if event.incarnation in draft.retired:
        draft.retired -= {event.incarnation}
        draft.record(WriteStop(event.incarnation, event.cause.value))
        return
    container = _current(draft, event.incarnation, Trigger.STOPPED)
    if container is None:
        return
    launcher = draft.resources.get(container.resource_id)
    allocator.note_stop(draft, event.incarnation)
    container = draft.containers[container.processor_id]
    if event.cause is StopCause.FINISHED and has_nothing_left(container):
        finish(draft, container)
    elif container.phase in WAITING:
        draft.count_stale()
    elif container.phase is ContainerPhase.STOPPING:
        model_change.stopped(draft, container, Trigger.STOPPED, launcher)
    elif container.is_temporary:
        model_change.temporary_over(draft, container, launcher, event.cause)
    elif launcher is None:
        raise InvariantViolation(f"{events.named(event.incarnation)} runs without a resource")
    elif launcher.ended is not None and launcher.ended.is_own_fault:
        _launcher_gone(draft, launcher, launcher.ended)
    else:
        _child_failed(draft, container, launcher, event)


def _child_failed(
    draft: Draft, container: ContainerState, launcher: ResourceState, event: events.ContainerStopped
) -> None:
    """Restart it on the same launcher, unless that is gone, or a command wants it elsewhere.

    After CUT_OFF release the launcher: this attempt reached Kafka while the launcher renewed its
    lease, so the host is cut off. After NO_PACKAGE release it, too. Then no container of the group
    requests that host first.
    """
    next_phase = ContainerPhase.ASSIGNED
    is_moving = placement.is_launching(draft, container)
    leaves = event.cause in {StopCause.CUT_OFF, StopCause.NO_PACKAGE}
    if launcher.ended is not None:
        del draft.resources[launcher.resource_id]
    elif leaves:
        draft.release(launcher)
        is_cut_off = event.cause is StopCause.CUT_OFF
        kind = ReasonKind.CUT_OFF_RELEASED if is_cut_off else ReasonKind.PACKAGELESS_RELEASED
        draft.because(kind, host=launcher.host, detail=str(launcher.resource_id))
    if leaves:
        # The standbys try it last, too: one that stops for its active would be placed there.
        for other in (container, *separation.others(draft, container)):
            draft.change(other.having_tried(launcher.host))
        container = draft.containers[container.processor_id]
    if launcher.ended is not None or is_moving or leaves:
        container = draft.change(replace(container, resource_id=None))
        next_phase = ContainerPhase.QUEUED
    fail(
        draft,
        container,
        Trigger.STOPPED,
        next_phase,
        failure=Failure(
            FailureKind.STOPPED,
            f"{events.named(event.incarnation)} on {launcher.host}: "
            f"{event.cause.value}, exit code {event.exit_code}",
            event.incarnation,
            launcher.host,
            event.cause,
            event.exit_code,
            event.reason,
        ),
        is_charged=is_charged(container, event.cause) and not is_moving,
    )


_HANDLERS: Mapping[type[events.Event], Callable[[Draft, Any], None]] = {
    events.JobModelPublished: model_change.published,
    events.SettingsChanged: _on_settings_changed,
    events.OlderModelsWanted: _on_older_models_wanted,
    events.HostsObserved: capacity.hosts_observed,
    events.LauncherCheckedIn: _on_launcher_checked_in,
    events.ResourceAllocated: _on_resource_allocated,
    events.ResourceEnded: _on_resource_ended,
    events.LauncherSilent: _on_launcher_silent,
    events.TimerFired: _on_timer_fired,
    events.ContainerStarted: _on_container_started,
    events.ContainerStopped: _on_container_stopped,
    events.RetiredStopped: model_change.retired_stopped,
    events.FencesReported: allocator.fences_reported,
    events.FencedByDriver: allocator.fenced_by_driver,
    events.LagsReported: standbys.lags_reported,
    events.SparesReported: standbys.spares_reported,
    events.PlacementRequested: placement.requested,
    events.ShutdownRequested: _on_shutdown_requested,
}
