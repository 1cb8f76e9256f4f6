"""An operator's command: moves a container to another host, or restarts it.

PURE. Theory. A container is not stopped before its new place is sure. An early request, made while
the container runs, brings a launcher at the destination, which is kept for the container
(``ResourceState.reserved_for``). Then the container is ordered to stop; with the evidence of the
stop it is assigned the reserved launcher, and its start ends the action. If it ends otherwise
meanwhile and then waits, it takes the reserved launcher at once. A restart only stops the
container, which comes back on its launcher.

Decisions.

* *One action at a time* in a group, which is an active container with its standbys. The others wait
  in the order of their timestamps; an action also waits until its container runs. A container that
  was given up is moved at once, and what was charged to it is forgiven.
* *Answers.* Each request is deleted with its first answer, and has exactly one final answer.
  BAD_REQUEST: nothing was done. FAILED: the container runs where it ran, goes back to its home, or
  has ended; the end of the job gives this answer to all actions. Nothing is charged to the retry
  keys.
* *Failovers* come first: an active on its way to a standby's place is stopped only when it has
  started there.
* *Destinations* are hosts that the container could request anyway: live, not excluded, without
  another container of its group. The group is checked again before the launch. Without host
  affinity every move goes to any host (Samza), to another one if possible.
* *A warm move* reads the state at the destination first: see ``commands.warm_moves``.
* *A command without progress*, or that is cancelled, ends: see ``commands.unfinished``.
* *A move of a drain* ends if its container is on no drained host any more, before it is ordered to
  stop: the drain was taken back, or the container has left the host.
* *The next driver* knows each action by its last answer. If the container has had a permit since
  then, and runs at its destination, it has arrived. Else the launcher is requested again; the one
  that was reserved before is taken if it checks in.

Unlike in Samza 1.8, unknown processors get an answer, and a processor that was given up can be
restarted.
"""

from dataclasses import replace

from homeport.appmaster.allocation import destinations
from homeport.appmaster.allocation.commands import answers, unfinished, warm_moves
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep, turn
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    WORKING,
    ContainerPhase,
    ContainerState,
    EarlyPhase,
    EarlyRequest,
    JobPhase,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import (
    LauncherCheckedIn,
    PlacementRequested,
    named,
)
from homeport.appmaster.allocation.protocol.instructions import DeletePlacementRequest
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementStatus,
)

_TAKES = ASKING | {ContainerPhase.QUEUED, ContainerPhase.ASSIGNED, ContainerPhase.FAILED}
"""Phases in which a container can be assigned a launcher at once."""


def requested(draft: Draft, event: PlacementRequested) -> None:
    """Accept the request, or refuse it; pass over one that is under way already."""
    request = event.request
    if draft.phase is JobPhase.NEW:
        draft.count_stale()
        return
    if not event.is_resumed:
        draft.record(DeletePlacementRequest(request.uuid))
    if request.uuid in draft.placements:
        return
    if event.refusal:
        status = PlacementStatus.FAILED if event.is_resumed else PlacementStatus.BAD_REQUEST
        answers.answer(draft, Placement(request), status, event.refusal)
        return
    if request.destination == CANCEL:
        unfinished.cancel(draft, request)
        return
    status = PlacementStatus.CREATED
    if event.is_resumed:
        in_progress, accepted = PlacementStatus.IN_PROGRESS, PlacementStatus.ACCEPTED
        status = accepted if event.source is None else in_progress
    draft.keep(Placement(request, status, source=event.source))


def settle(draft: Draft) -> None:
    """Advance each action as far as the state allows; begun ones first, then by timestamp."""
    busy: set[ProcessorId] = set()
    for placement in sorted(draft.placements.values(), key=turn):
        if draft.phase is not JobPhase.ACTIVE:
            answers.fail(draft, placement, "the job ends")
            continue
        group = destinations.group_id(draft.containers.get, placement.request.processor_id)
        before, now = None, draft.placements.get(placement.request.uuid)
        while now is not None and now is not before:
            _advance(draft, now, is_busy=group in busy)
            before, now = now, draft.placements.get(placement.request.uuid)
        if now is not None:
            busy.add(group)
    if draft.placements:
        unfinished.settle(draft)


def _advance(draft: Draft, placement: Placement, *, is_busy: bool) -> None:
    """Advance the action by one step if possible; ``is_busy``: one of its group comes first."""
    container = draft.containers.get(placement.request.processor_id)
    fault = destinations.fault(draft, placement, container)
    if container is None or fault is not None:
        answers.refuse(draft, placement, fault or "")
    elif placement.step is PlacementStep.WAITING:
        _wait(draft, placement, container, is_busy=is_busy)
    elif placement.step is PlacementStep.RESERVING:
        _reserve(draft, placement, container)
    elif placement.step is PlacementStep.RESTARTING:
        _restart(draft, placement, container)
    else:
        _go_on(draft, placement, container)


def _go_on(draft: Draft, placement: Placement, container: ContainerState) -> None:
    launcher = draft.resources.get(placement.resource_id)
    if launcher is None or launcher.ended is not None:
        answers.fail(draft, placement, f"its launcher on {placement.host} was lost")
    elif placement.step is PlacementStep.MOVING:
        _move(draft, placement, container, launcher)
    elif container.resource_id == launcher.resource_id:
        warm_moves.taken_by_failover(draft, placement, launcher)
    elif placement.step is PlacementStep.WARMING:
        warm_moves.warm(draft, placement, container, launcher)
    else:
        warm_moves.give_way(draft, placement, launcher)


# --- steps


def _wait(draft: Draft, placement: Placement, container: ContainerState, *, is_busy: bool) -> None:
    reason = _reason_to_wait(draft, placement, container, is_busy=is_busy)
    if reason is not None:
        answers.accept(draft, placement, reason)
    elif _has_arrived(draft, placement, container):
        answers.succeed(draft, placement, container)
    elif (gone := destinations.drain_fault(draft, placement, container)) is not None:
        answers.refuse(draft, placement, gone)
    elif placement.request.destination == FORCE_RESTART_LAST_SEEN:
        _begin_restart(draft, placement, container)
    else:
        _begin_move(draft, placement, container)


def _reason_to_wait(
    draft: Draft, placement: Placement, container: ContainerState, *, is_busy: bool
) -> str | None:
    name = f"processor {container.processor_id}"
    if draft.hosts is None:
        return "it waits until hosts are known"
    if is_busy:
        return f"it waits for an earlier action of {name} or of a replica of it"
    is_ready = container.phase in {ContainerPhase.RUNNING, ContainerPhase.FAILED}
    if not is_ready and not (placement.source is not None and container.phase in _TAKES):
        return f"it waits until {name} runs, which is {container.phase.value}"
    return None


def _has_arrived(draft: Draft, placement: Placement, container: ContainerState) -> bool:
    source, host = placement.source, draft.host_of(container)
    is_anew = source is not None and container.epoch > source.epoch
    if source is None or not is_anew or container.phase is not ContainerPhase.RUNNING:
        return False
    if placement.request.destination == FORCE_RESTART_LAST_SEEN:
        return True
    named_host = destinations.named_host(draft, placement.request)
    if named_host is not None:
        return host == named_host
    return (host == source.host) == (destinations.word(draft, placement.request) == LAST_SEEN)


def _begin_restart(draft: Draft, placement: Placement, container: ContainerState) -> None:
    begun = answers.begin(
        draft, placement, container, PlacementStep.RESTARTING, draft.host_of(container)
    )
    if container.phase is ContainerPhase.RUNNING:
        answers.stop(draft, container)
        text = f"{named(container.incarnation)} gets the order to stop"
    else:
        text = f"processor {container.processor_id} is placed"
        if container.phase is ContainerPhase.FAILED:
            _forgive(draft, container, ContainerPhase.QUEUED)
    answers.report_progress(draft, begun, text)


def _begin_move(draft: Draft, placement: Placement, container: ContainerState) -> None:
    is_warm = warm_moves.is_warm(placement, container)
    host = destinations.destination(draft, placement, container)
    if host is None and is_warm:
        host = warm_moves.host_of_a_standby(draft, container)
    if host is None:
        answers.refuse(draft, placement, "no host can be asked for it")
        return
    fault = destinations.host_fault(draft, host)
    wait = warm_moves.reason_to_wait(draft, container, host) if is_warm and not fault else None
    if fault is None and (draft.is_asked(host) or container.processor_id in draft.early):
        wait = wait or f"it waits until no other request for {host} stands"
    if wait is not None:
        answers.accept(draft, placement, wait)
        return
    group_fault = warm_moves.fault if is_warm else destinations.group_fault
    fault = fault or group_fault(draft, container, host)
    if fault is not None:
        answers.refuse(draft, placement, fault)
    elif not (is_warm and warm_moves.begin_behind(draft, placement, container, host)):
        begun = answers.begin(draft, placement, container, PlacementStep.RESERVING, host)
        _ask(draft, begun, container, host)
        answers.report_progress(draft, begun, f"a launcher on {host} is being reserved")


def _ask(draft: Draft, placement: Placement, container: ContainerState, host: Host) -> None:
    expiry_ms = placement.request.expiry_ms
    limit_ms = draft.settings.request_timeout_ms if expiry_ms is None else expiry_ms
    draft.early[container.processor_id] = EarlyRequest(
        container.processor_id, draft.request(host, limit_ms), host, is_reservation=True
    )
    is_any = destinations.word(draft, placement.request) == ANY_HOST
    kind = ReasonKind.OTHER_HOST_ASKED if is_any else ReasonKind.COMMANDED_HOST_ASKED
    draft.because(kind, container, host)


def claim(draft: Draft, event: LauncherCheckedIn) -> ResourceState | None:
    """Reserve the launcher for the container that it was requested for; None: it is for none."""
    early = draft.early_asker(event.request_id)
    if early is None or not early.is_reservation or event.running is not None:
        return None
    launcher = ResourceState(event.resource_id, event.host, event.request_id)
    placement = next(
        p
        for p in draft.placements.values()
        if p.request.processor_id == early.processor_id and p.step is PlacementStep.RESERVING
    )
    return _keep(draft, placement, launcher)


def _keep(draft: Draft, placement: Placement, launcher: ResourceState) -> ResourceState:
    processor_id = placement.request.processor_id
    answers.withdraw(draft, processor_id, served=launcher.request_id)
    kept = replace(launcher, reserved_for=processor_id)
    draft.resources[launcher.resource_id] = kept
    moving = replace(placement, step=PlacementStep.MOVING, resource_id=launcher.resource_id)
    draft.keep(moving)
    warm_moves.warm_up(draft, moving, draft.containers[processor_id], kept)
    return kept


def _reserve(draft: Draft, placement: Placement, container: ContainerState) -> None:
    host, early = placement.host, draft.early.get(container.processor_id)
    idle = next((r for r in draft.idle_resources() if r.host == host), None)
    fault = None if host is None else destinations.host_fault(draft, host)
    if idle is not None:
        _keep(draft, placement, idle)
    elif fault is not None:
        answers.fail(draft, placement, fault)
    elif early is None or early.phase is EarlyPhase.OVER:
        story = "" if early is None else early.story
        answers.fail(draft, placement, f"no launcher came on {host}: {story}")


def _move(
    draft: Draft, placement: Placement, container: ContainerState, launcher: ResourceState
) -> None:
    if container.resource_id == launcher.resource_id:
        if container.phase is ContainerPhase.RUNNING:
            answers.succeed(draft, placement, container)
    elif placement.is_launched:
        story = f"its start on {placement.host} failed: {container.last_failure}"
        answers.fail(draft, placement, story)
    elif container.phase in WORKING and container.failover is None:
        answers.stop(draft, container)
        text = f"a launcher on {placement.host} is reserved; {named(container.incarnation)} stops"
        answers.report_progress(draft, placement, text)
    elif container.phase in _TAKES:
        _launch(draft, placement, container, launcher)


def _launch(
    draft: Draft, placement: Placement, container: ContainerState, launcher: ResourceState
) -> None:
    fault = destinations.group_fault(draft, container, launcher.host)
    if fault is not None:
        answers.fail(draft, placement, fault)
        return
    container = draft.change(replace(draft.end_request(container), tried=()))
    draft.resources[launcher.resource_id] = replace(launcher, reserved_for=None)
    launched = draft.keep(replace(placement, is_launched=True))
    if container.phase is ContainerPhase.FAILED:
        container = _forgive(draft, container, ContainerPhase.ASSIGNED)
    else:
        container = draft.move(container, Trigger.COMMANDED, ContainerPhase.ASSIGNED)
    draft.change(replace(container, resource_id=launcher.resource_id))
    answers.report_progress(
        draft, launched, f"processor {container.processor_id} starts on {launcher.host}"
    )


def _restart(draft: Draft, placement: Placement, container: ContainerState) -> None:
    is_anew = placement.source is not None and container.epoch > placement.source.epoch
    if container.phase is ContainerPhase.RUNNING and is_anew:
        answers.succeed(draft, placement, container)
    elif container.phase is ContainerPhase.FAILED:
        answers.fail(draft, placement, str(container.last_failure))


def is_launching(draft: Draft, container: ContainerState) -> bool:
    """Return whether the container starts on a reserved launcher: its failure ends the action."""
    return any(p.is_launched for p in draft.commands_for(container.processor_id))


# --- what all steps do


def _forgive(draft: Draft, container: ContainerState, phase: ContainerPhase) -> ContainerState:
    anew = replace(container, failures=0, launch_failures=0, last_failure=None, tried=())
    return draft.move(anew, Trigger.COMMANDED, phase)
