"""``step(state, event) -> Decision``: the one entrance of a processor's coordination.

PURE: no I/O, clock, randomness, logging. Same state and event, same decision.

Rules for editing: a handler notes what the event says, and nothing else; what follows from it is
``_settle``'s, which compares what is with what should be after every event. So no order of the
events has a rule of its own, and one that comes twice, or late, does no harm. A new event needs a
class, a handler in ``_HANDLERS``, a move in ``tests/exhaustive/standalone``, and a mutant.

Decisions.

* *The leader* is the first registration; no vote and no node of its own. A leader that does not
  know that its session is over does no harm: a publication compares the newest version and requires
  the leader's own node, and a barrier is closed only while it is NEW and its version the newest.
* *Twins*: of two registrations with one processor id the first counts. The second waits, as the
  first may be the rest of its own predecessor, and ends where it stays.
* *A session that begins is the end of the one before*, whether or not that was heard of: a renewal
  takes a while, in which the old session's connection may come and go once more.
* *Nothing is written while there is no connection*, and after a reconnection what was written is
  written again where it is not seen: ZooKeeper may have lost it with the connection.
* *Work stops* where the newest version has another generation for it, before its barrier is
  joined; and where the session is over, or was out of reach for as long as it lasts.
* *Work starts* where the barrier of the newest version is DONE, each generation once.
* *Standbys* change without a new generation: they write nothing. So a version that only moves
  replicas stops no active task. A standby that is promoted does: its processor has one task more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from homeport.job_coordinator.standalone import leading
from homeport.job_coordinator.standalone.plan import Standby
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    BarrierSeen,
    Computed,
    Deregister,
    Disconnected,
    EndCause,
    EndProcessor,
    Event,
    FollowStandbys,
    InputsChanged,
    Join,
    PlanSeen,
    ProcessorsSeen,
    PublishRefused,
    Reconnected,
    Register,
    Registered,
    RenewSession,
    SessionBegun,
    SessionExpired,
    StartWork,
    StopRequested,
    StopWork,
    TimerFired,
    TimerKind,
    WorkFailed,
    WorkOvertaken,
    WorkStarted,
    WorkStopped,
    WriteLocality,
)
from homeport.job_coordinator.standalone.reasons import ReasonKind
from homeport.job_coordinator.standalone.state import (
    Decision,
    Draft,
    Life,
    ProcessorState,
    Work,
    WorkPhase,
)


def step(state: ProcessorState, event: Event) -> Decision:
    """What the processor does about the event."""
    draft = Draft(state)
    if state.life is not Life.ENDED:
        _HANDLERS[type(event)](draft, event)
        _settle(draft)
    return draft.decision()


# --- what an event says


def _session_begun(draft: Draft, _event: SessionBegun) -> None:
    """Begin from the start, whatever was heard late of the session before, or was written."""
    _forget_session(draft)
    draft.set(is_connected=True)


def _registered(draft: Draft, event: Registered) -> None:
    if draft.state.life is Life.REGISTERING:
        draft.set(life=Life.MEMBER)
    draft.set(sequence=event.sequence, joined=0)


def _processors_seen(draft: Draft, event: ProcessorsSeen) -> None:
    leading.note_registrations(draft, event.registrations)


def _plan_seen(draft: Draft, event: PlanSeen) -> None:
    if event.plan.version > draft.state.version:
        draft.set(plan=event.plan, barrier=None, computing=-1)
    if event.plan.version >= draft.state.publishing:
        draft.set(publishing=0)


def _barrier_seen(draft: Draft, event: BarrierSeen) -> None:
    if event.version == draft.state.version:
        draft.set(barrier=event)


def _computed(draft: Draft, event: Computed) -> None:
    leading.take_computed(draft, event)


def _publish_refused(draft: Draft, event: PublishRefused) -> None:
    if event.version == draft.state.publishing:
        draft.because(ReasonKind.PUBLISHED_BY_ANOTHER, version=event.version)
        leading.forget_publication(draft)


def _inputs_changed(draft: Draft, _event: InputsChanged) -> None:
    draft.set(has_new_inputs=True, computing=-1)
    draft.cancel(TimerKind.DEBOUNCE)


def _work_started(draft: Draft, event: WorkStarted) -> None:
    work = draft.state.work
    if work.phase is WorkPhase.STARTING and work.generation == event.generation:
        draft.set(work=replace(work, phase=WorkPhase.RUNNING))
        draft.because(ReasonKind.STARTED, generation=event.generation)
        if draft.state.is_connected:
            draft.records.append(WriteLocality(draft.state.work.here, draft.state.location))


def _work_overtaken(draft: Draft, event: WorkOvertaken) -> None:
    if draft.state.work.generation == event.generation:
        draft.because(ReasonKind.OVERTAKEN, generation=event.generation)
        draft.set(work=Work(generation=event.generation))


def _work_stopped(draft: Draft, _event: WorkStopped) -> None:
    draft.set(work=Work(generation=draft.state.work.generation))


def _work_failed(draft: Draft, event: WorkFailed) -> None:
    draft.because(ReasonKind.FAILED, error=event.error)
    work = Work(generation=draft.state.work.generation)
    draft.set(work=work, life=Life.LEAVING, end=EndCause.FAILED, error=event.error)


def _disconnected(draft: Draft, _event: Disconnected) -> None:
    leading.forget_publication(draft)
    draft.set(is_connected=False, computing=-1)
    draft.set_timer(TimerKind.SESSION)


def _reconnected(draft: Draft, _event: Reconnected) -> None:
    """What was written may be lost: it is looked for, and written again."""
    draft.set(is_connected=True, joined=0, closed=0, barrier=None)
    draft.cancel(TimerKind.SESSION)
    work = draft.state.work
    if work.phase is WorkPhase.RUNNING:
        draft.records.append(WriteLocality(work.here, draft.state.location))
    if draft.state.life is Life.REGISTERING:
        draft.set(life=Life.OUT)


def _session_expired(draft: Draft, _event: SessionExpired) -> None:
    draft.because(ReasonKind.SESSION_LOST)
    _forget_session(draft)


def _forget_session(draft: Draft) -> None:
    """Note that the session is over: with it go the registration and all that awaits an answer."""
    draft.cancel(TimerKind.SESSION)
    draft.set(is_connected=False, is_given_up=True, sequence=None, registrations=(), barrier=None)
    leading.forget_publication(draft)
    draft.set(joined=0, closed=0, computing=-1)
    if draft.state.life is not Life.LEAVING:
        draft.set(life=Life.OUT)


def _timer_fired(draft: Draft, event: TimerFired) -> None:
    timer = event.timer
    if timer not in draft.state.timers:
        return
    draft.set(timers=draft.state.timers - {timer})
    if timer.kind is TimerKind.SESSION:
        draft.because(ReasonKind.SESSION_GIVEN_UP)
        draft.set(is_given_up=True)
    elif timer.kind is TimerKind.DUPLICATE:
        twin = draft.state.twin
        if twin is not None:
            draft.because(ReasonKind.TWIN_STAYS, twin=twin.sequence)
            error = (
                f"processor.id = {twin.processor_id!r}: a processor at {twin.location} has this id "
                "in this job; give each processor an id of its own, or stop that one"
            )
            draft.set(life=Life.LEAVING, end=EndCause.DUPLICATE, error=error)
    elif timer.kind is TimerKind.DEBOUNCE:
        leading.compute(draft)
    else:
        leading.time_out(draft)


def _stop_requested(draft: Draft, _event: StopRequested) -> None:
    if draft.state.life is not Life.LEAVING:
        draft.because(ReasonKind.STOPS)
        draft.set(life=Life.LEAVING)


_HANDLERS: Mapping[type, Callable[[Draft, Any], None]] = MappingProxyType(
    {
        SessionBegun: _session_begun,
        Registered: _registered,
        ProcessorsSeen: _processors_seen,
        PlanSeen: _plan_seen,
        BarrierSeen: _barrier_seen,
        Computed: _computed,
        PublishRefused: _publish_refused,
        InputsChanged: _inputs_changed,
        WorkStarted: _work_started,
        WorkOvertaken: _work_overtaken,
        WorkStopped: _work_stopped,
        WorkFailed: _work_failed,
        Disconnected: _disconnected,
        Reconnected: _reconnected,
        SessionExpired: _session_expired,
        TimerFired: _timer_fired,
        StopRequested: _stop_requested,
    }
)


# --- what follows from it


def _settle(draft: Draft) -> None:
    if draft.state.life is Life.LEAVING:
        _leave(draft)
        return
    if draft.state.is_given_up:
        _begin_again(draft)
    if draft.state.life is Life.OUT and draft.state.is_connected and not draft.state.is_given_up:
        draft.because(ReasonKind.REGISTERS, processor=draft.state.processor_id)
        draft.set(life=Life.REGISTERING)
        draft.records.append(Register(draft.state.processor_id, draft.state.location))
    _await_twin(draft)
    leading.lead(draft)
    if draft.state.life is Life.MEMBER and not draft.state.is_given_up:
        _follow(draft)


def _leave(draft: Draft) -> None:
    for kind in TimerKind:
        draft.cancel(kind)
    if not _has_stopped(draft):
        return
    if draft.state.is_connected and draft.state.sequence is not None:
        draft.records.append(Deregister(draft.state.sequence))
    draft.instructions.append(EndProcessor(draft.state.end, draft.state.error))
    draft.set(life=Life.ENDED)


def _begin_again(draft: Draft) -> None:
    """After a session that is over, or given up: no work, then a registration of a new number.

    One that is given up and stands after all is closed: a second node in it could get lost, and
    the first would stay, with a generation that does not start twice.
    """
    if not _has_stopped(draft) or not draft.state.is_connected:
        return
    if draft.state.sequence is not None:
        draft.set(is_connected=False)
        draft.instructions.append(RenewSession())
    draft.set(is_given_up=False, life=Life.OUT, sequence=None, registrations=())


def _await_twin(draft: Draft) -> None:
    twin = draft.state.twin
    # A server that was away gives the session of a predecessor its whole time again.
    if twin is None or not draft.state.is_connected:
        draft.cancel(TimerKind.DUPLICATE)
    elif not draft.runs(TimerKind.DUPLICATE):
        draft.because(ReasonKind.WAITS_FOR_TWIN, twin=twin.sequence)
        draft.set_timer(TimerKind.DUPLICATE)


def _follow(draft: Draft) -> None:
    state = draft.state
    entry, work = state.entry, state.work
    if state.plan is None:
        return
    if entry is None:
        if work.phase in {WorkPhase.STARTING, WorkPhase.RUNNING}:
            draft.because(ReasonKind.NOT_PLANNED, version=state.version)
            _has_stopped(draft)
        return
    is_own = work.phase in {WorkPhase.STARTING, WorkPhase.RUNNING}
    if is_own and work.generation == entry.generation:
        _join(draft, ReasonKind.WORK_STAYS, generation=entry.generation)
        _follow_standbys(draft, entry.standbys)
        return
    if is_own:
        facts = {"held": len(work.held), "kept": len(set(work.held) & set(entry.tasks))}
        draft.because(ReasonKind.WORK_CHANGES, version=state.version, **facts)
    if not _has_stopped(draft):
        return
    _join(draft, ReasonKind.JOINS)
    is_new = entry.generation > work.generation
    if (entry.tasks or entry.standbys) and is_new and _is_in_force(state):
        facts = {"tasks": len(entry.tasks), "standbys": len(entry.standbys)}
        draft.because(
            ReasonKind.STARTS, version=state.version, generation=entry.generation, **facts
        )
        standbys = entry.standbys
        starting = Work(WorkPhase.STARTING, entry.generation, entry.tasks, standbys=standbys)
        draft.set(work=starting)
        start = StartWork(state.version, entry.generation, entry.tasks, entry.fence, standbys)
        draft.instructions.append(start)


def _follow_standbys(draft: Draft, planned: tuple[Standby, ...]) -> None:
    """What the version takes away is let go of at once; what it gives is kept once it is in force.

    The active tasks work on. Before the version is in force another processor of this location may
    still have the files.
    """
    state = draft.state
    had = state.work.standbys
    wanted = planned if _is_in_force(state) else tuple(s for s in had if s in planned)
    if wanted == had:
        return
    facts = {"kept": len(set(had) & set(wanted)), "standbys": len(wanted)}
    draft.because(ReasonKind.FOLLOWS, version=state.version, **facts)
    draft.set(work=replace(state.work, standbys=wanted))
    draft.instructions.append(FollowStandbys(state.version, wanted))
    if state.work.phase is WorkPhase.RUNNING and state.is_connected and wanted:
        names = tuple(standby.name for standby in wanted)
        draft.records.append(WriteLocality(names, state.location))


def _is_in_force(state: ProcessorState) -> bool:
    return state.barrier_phase is BarrierPhase.DONE


def _join(draft: Draft, kind: ReasonKind, **facts: object) -> None:
    state = draft.state
    if not state.is_connected or state.joined == state.version or state.sequence is None:
        return
    draft.because(kind, version=state.version, **facts)
    draft.set(joined=state.version)
    draft.records.append(Join(state.version, state.processor_id, state.sequence))


def _has_stopped(draft: Draft) -> bool:
    work = draft.state.work
    if work.phase is WorkPhase.IDLE:
        return True
    if work.phase is not WorkPhase.STOPPING:
        draft.set(work=replace(work, phase=WorkPhase.STOPPING))
        draft.instructions.append(StopWork())
    return False
