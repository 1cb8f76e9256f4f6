"""``step(state, event) -> Decision``: the one entrance of a processor's coordination.

PURE: no I/O, clock, randomness, logging. Same state and event, same decision.

Rules for editing: a handler only notes the facts of its event. ``_conclude`` compares the state
with the goal after every event, and decides. So no order of the events needs a rule of its own, and
an event that comes twice, or late, does no harm. A new event needs a class, a handler in
``_HANDLERS``, a move in ``tests/exhaustive/standalone``, and a mutant.

Decisions.

* *The leader* is the first registration; there is no vote, and no node for it. A leader that does
  not know the end of its session does no harm. A publication requires the newest version and the
  leader's own node; a barrier is closed only while it is NEW and its version the newest.
* *Twins*: of two registrations with one processor id the first counts. The second waits, as the
  first may be left from its own predecessor, and ends if the first stays.
* *A new session ends the last one*, even without an event: a renewal takes a while, and meanwhile
  the old session's connection may come and go once more.
* *Nothing is written without a connection.* After a reconnection the processor writes again what it
  does not see: ZooKeeper may have lost it with the connection.
* *Work stops* if the newest version has another generation for it, before the processor joins the
  barrier. It also stops when the session is over, or was out of reach for its whole time-out.
* *Work that ends without an order* begins again in a new session if the job is not at fault. If the
  end is in order, its processor leaves; else it fails (``WORK_ENDS``).
* *Work starts* when the barrier of the newest version is DONE, each generation once.
* *Standbys* change without a new generation: they write nothing. So a version that only moves
  replicas stops no active task. A promoted standby does: its processor gets one more task.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import leading
from homeport.job_coordinator.standalone.plan import Standby
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    BarrierSeen,
    Broken,
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
    ProcessorTimerFired,
    ProcessorTimerKind,
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
    WorkEnded,
    WorkOvertaken,
    WorkStarted,
    WriteLocations,
)
from homeport.job_coordinator.standalone.reasons import ProcessorReasonKind
from homeport.job_coordinator.standalone.state import (
    HeldWork,
    Life,
    ProcessorDecision,
    ProcessorDraft,
    ProcessorState,
    WorkPhase,
)


def step(state: ProcessorState, event: Event) -> ProcessorDecision:
    """Return what the processor does about the event."""
    draft = ProcessorDraft(state)
    if state.life is not Life.ENDED:
        _HANDLERS[type(event)](draft, event)
        _conclude(draft)
    return draft.decision()


# --- the facts of an event


def _session_begun(draft: ProcessorDraft, _event: SessionBegun) -> None:
    """Begin from the start, whatever late events or writes of the last session there were."""
    _forget_session(draft)
    draft.state = replace(draft.state, is_connected=True)


def _registered(draft: ProcessorDraft, event: Registered) -> None:
    if draft.state.life is Life.REGISTERING:
        draft.state = replace(draft.state, life=Life.MEMBER)
    draft.state = replace(draft.state, sequence=event.sequence, joined=0)


def _plan_seen(draft: ProcessorDraft, event: PlanSeen) -> None:
    if event.plan.version > draft.state.version:
        draft.state = replace(draft.state, plan=event.plan, barrier=None, computing=-1)
    if event.plan.version >= draft.state.publishing:
        draft.state = replace(draft.state, publishing=0)


def _barrier_seen(draft: ProcessorDraft, event: BarrierSeen) -> None:
    if event.version == draft.state.version:
        draft.state = replace(draft.state, barrier=event)


def _publish_refused(draft: ProcessorDraft, event: PublishRefused) -> None:
    if event.version == draft.state.publishing:
        draft.because(ProcessorReasonKind.PUBLISHED_BY_ANOTHER, version=event.version)
        leading.forget_publication(draft)


def _inputs_changed(draft: ProcessorDraft, _event: InputsChanged) -> None:
    draft.state = replace(draft.state, has_new_inputs=True, computing=-1)
    draft.cancel(ProcessorTimerKind.DEBOUNCE)


def _work_started(draft: ProcessorDraft, event: WorkStarted) -> None:
    work = draft.state.work
    if work.phase is WorkPhase.STARTING and work.generation == event.generation:
        draft.state = replace(draft.state, work=replace(work, phase=WorkPhase.RUNNING))
        draft.because(ProcessorReasonKind.STARTED, generation=event.generation)
        if draft.state.is_connected:
            draft.records.append(WriteLocations(draft.state.work.here, draft.state.location))


def _work_overtaken(draft: ProcessorDraft, event: WorkOvertaken) -> None:
    if draft.state.work.generation == event.generation:
        draft.because(ProcessorReasonKind.OVERTAKEN, generation=event.generation)
        draft.state = replace(draft.state, work=HeldWork(generation=event.generation))


def _work_ended(draft: ProcessorDraft, event: WorkEnded) -> None:
    work = draft.state.work
    if work.phase is WorkPhase.IDLE or work.generation != event.generation:
        return
    draft.state = replace(draft.state, work=HeldWork(generation=work.generation))
    if work.phase is not WorkPhase.STOPPING:
        facts = {"generation": event.generation, "cause": event.cause.value}
        WORK_ENDS[event.cause](draft, event.text, facts)


def _begin_other_work(draft: ProcessorDraft, text: str, facts: Mapping[str, object]) -> None:
    """Give the session up: a new registration gets a generation that may start.

    Give up a client without a connection, too: a ZooKeeper that has come back with less data than
    the client has seen answers only a new client.
    """
    draft.because(ProcessorReasonKind.WORK_LOST, error=text, **facts)
    if draft.state.is_connected:
        draft.state = replace(draft.state, is_given_up=True)
    else:
        _forget_session(draft)
        draft.instructions.append(RenewSession())


def _leave_without_fault(draft: ProcessorDraft, _text: str, facts: Mapping[str, object]) -> None:
    draft.because(ProcessorReasonKind.WORK_OVER, **facts)
    draft.state = replace(draft.state, life=Life.LEAVING)


def _fail(draft: ProcessorDraft, text: str, _facts: Mapping[str, object]) -> None:
    draft.because(ProcessorReasonKind.FAILED, error=text)
    draft.state = replace(draft.state, life=Life.LEAVING, end=EndCause.FAILED, error=text)


WORK_ENDS: Mapping[StopCause, Callable[[ProcessorDraft, str, Mapping[str, object]], None]] = (
    MappingProxyType(
        {
            StopCause.UNAVAILABLE: _begin_other_work,
            StopCause.CUT_OFF: _begin_other_work,
            StopCause.LEASE_LOST: _begin_other_work,
            StopCause.FINISHED: _leave_without_fault,
            StopCause.SIGNALLED: _leave_without_fault,
            StopCause.ORDERED: _leave_without_fault,
            StopCause.FAILED: _fail,
            StopCause.KILLED: _fail,
            StopCause.DISK_FULL: _fail,
            StopCause.NO_PACKAGE: _fail,
        }
    )
)
"""{cause of an end without an order: the reaction}, for every cause."""


def _broken(draft: ProcessorDraft, event: Broken) -> None:
    draft.state = replace(draft.state, work=HeldWork(generation=draft.state.work.generation))
    _fail(draft, event.error, {})


def _disconnected(draft: ProcessorDraft, _event: Disconnected) -> None:
    leading.forget_publication(draft)
    draft.state = replace(draft.state, is_connected=False, computing=-1)
    draft.set_timer(ProcessorTimerKind.SESSION)


def _reconnected(draft: ProcessorDraft, _event: Reconnected) -> None:
    """Forget what was written: it may be lost, and is then written again."""
    draft.state = replace(draft.state, is_connected=True, joined=0, closed=0, barrier=None)
    draft.cancel(ProcessorTimerKind.SESSION)
    work = draft.state.work
    if work.phase is WorkPhase.RUNNING:
        draft.records.append(WriteLocations(work.here, draft.state.location))
    if draft.state.life is Life.REGISTERING:
        draft.state = replace(draft.state, life=Life.OUT)


def _session_expired(draft: ProcessorDraft, _event: SessionExpired) -> None:
    draft.because(ProcessorReasonKind.SESSION_LOST)
    _forget_session(draft)


def _forget_session(draft: ProcessorDraft) -> None:
    draft.cancel(ProcessorTimerKind.SESSION)
    draft.state = replace(
        draft.state,
        is_connected=False,
        is_given_up=True,
        sequence=None,
        registrations=(),
        barrier=None,
    )
    leading.forget_publication(draft)
    draft.state = replace(draft.state, joined=0, closed=0, computing=-1)
    if draft.state.life is not Life.LEAVING:
        draft.state = replace(draft.state, life=Life.OUT)


def _timer_fired(draft: ProcessorDraft, event: ProcessorTimerFired) -> None:
    timer = event.timer
    if timer not in draft.state.timers:
        return
    draft.state = replace(draft.state, timers=draft.state.timers - {timer})
    if timer.kind is ProcessorTimerKind.SESSION:
        draft.because(ProcessorReasonKind.SESSION_GIVEN_UP)
        draft.state = replace(draft.state, is_given_up=True)
    elif timer.kind is ProcessorTimerKind.DUPLICATE:
        twin = draft.state.twin
        if twin is not None:
            draft.because(ProcessorReasonKind.TWIN_STAYS, twin=twin.sequence)
            error = (
                f"processor.id = {twin.processor_id!r}: a processor at {twin.location} has this id "
                "in this job; give each processor an id of its own, or stop that one"
            )
            draft.state = replace(
                draft.state, life=Life.LEAVING, end=EndCause.DUPLICATE, error=error
            )
    elif timer.kind is ProcessorTimerKind.DEBOUNCE:
        # ``lead`` lets it run only while a version is due
        leading.compute(draft, ProcessorReasonKind.COMPUTES)
    else:
        leading.time_out(draft)


def _stop_requested(draft: ProcessorDraft, _event: StopRequested) -> None:
    if draft.state.life is not Life.LEAVING:
        draft.because(ProcessorReasonKind.STOPS)
        draft.state = replace(draft.state, life=Life.LEAVING)


_HANDLERS: Mapping[type, Callable[[ProcessorDraft, Any], None]] = MappingProxyType(
    {
        SessionBegun: _session_begun,
        Registered: _registered,
        ProcessorsSeen: leading.note_registrations,
        PlanSeen: _plan_seen,
        BarrierSeen: _barrier_seen,
        Computed: leading.take_computed,
        PublishRefused: _publish_refused,
        InputsChanged: _inputs_changed,
        WorkStarted: _work_started,
        WorkOvertaken: _work_overtaken,
        WorkEnded: _work_ended,
        Broken: _broken,
        Disconnected: _disconnected,
        Reconnected: _reconnected,
        SessionExpired: _session_expired,
        ProcessorTimerFired: _timer_fired,
        StopRequested: _stop_requested,
    }
)


# --- the conclusions


def _conclude(draft: ProcessorDraft) -> None:
    if draft.state.life is Life.LEAVING:
        _leave(draft)
        return
    if draft.state.is_given_up:
        _begin_again(draft)
    if draft.state.life is Life.OUT and draft.state.is_connected and not draft.state.is_given_up:
        draft.because(ProcessorReasonKind.REGISTERS, processor=draft.state.processor_id)
        draft.state = replace(draft.state, life=Life.REGISTERING)
        draft.records.append(Register(draft.state.processor_id, draft.state.location))
    _await_twin(draft)
    leading.lead(draft)
    if draft.state.life is Life.MEMBER and not draft.state.is_given_up:
        _follow(draft)


def _leave(draft: ProcessorDraft) -> None:
    for kind in ProcessorTimerKind:
        draft.cancel(kind)
    if not _has_stopped(draft):
        return
    if draft.state.is_connected and draft.state.sequence is not None:
        draft.records.append(Deregister(draft.state.sequence))
    draft.instructions.append(EndProcessor(draft.state.end, draft.state.error))
    draft.state = replace(draft.state, life=Life.ENDED)


def _begin_again(draft: ProcessorDraft) -> None:
    """Begin again after a session that is over, or given up: stop all work, then register.

    Close a session that was given up and still exists: a second node in it could get lost. Then the
    first node would stay, with a generation that does not start twice.
    """
    if not _has_stopped(draft) or not draft.state.is_connected:
        return
    if draft.state.sequence is not None:
        draft.state = replace(draft.state, is_connected=False)
        draft.instructions.append(RenewSession())
    draft.state = replace(
        draft.state, is_given_up=False, life=Life.OUT, sequence=None, registrations=()
    )


def _await_twin(draft: ProcessorDraft) -> None:
    twin = draft.state.twin
    # A server that was away restarts the time-out of the predecessor's session.
    if twin is None or not draft.state.is_connected:
        draft.cancel(ProcessorTimerKind.DUPLICATE)
    elif not draft.runs(ProcessorTimerKind.DUPLICATE):
        draft.because(ProcessorReasonKind.WAITS_FOR_TWIN, twin=twin.sequence)
        draft.set_timer(ProcessorTimerKind.DUPLICATE)


def _follow(draft: ProcessorDraft) -> None:
    state = draft.state
    entry, work = state.entry, state.work
    if state.plan is None:
        return
    if entry is None:
        if work.is_live:
            draft.because(ProcessorReasonKind.NOT_PLANNED, version=state.version)
            _has_stopped(draft)
        return
    if work.is_live and work.generation == entry.generation:
        _join(draft, ProcessorReasonKind.WORK_STAYS, generation=entry.generation)
        _follow_standbys(draft, entry.standbys)
        return
    kept = tuple(task for task in work.held if task in set(entry.tasks))
    if work.is_live:
        facts = {"held": len(work.held), "kept": len(kept)}
        draft.because(ProcessorReasonKind.WORK_CHANGES, version=state.version, **facts)
    if not _has_stopped(draft, kept):
        return
    _join(draft, ProcessorReasonKind.JOINS)
    is_new = entry.generation > work.generation
    if (entry.tasks or entry.standbys) and is_new and _is_in_force(state):
        facts = {"tasks": len(entry.tasks), "standbys": len(entry.standbys)}
        draft.because(
            ProcessorReasonKind.STARTS, version=state.version, generation=entry.generation, **facts
        )
        standbys = entry.standbys
        starting = HeldWork(WorkPhase.STARTING, entry.generation, entry.tasks, standbys=standbys)
        draft.state = replace(draft.state, work=starting)
        start = StartWork(state.version, entry.generation, entry.tasks, entry.fence, standbys)
        draft.instructions.append(start)


def _follow_standbys(draft: ProcessorDraft, planned: tuple[Standby, ...]) -> None:
    """Drop standbys that the version takes away at once; take new ones when it is in force.

    Before that, another processor of this location may still use the files. The active tasks go on.
    """
    state = draft.state
    had = state.work.standbys
    wanted = planned if _is_in_force(state) else tuple(s for s in had if s in planned)
    if wanted == had:
        return
    facts = {"kept": len(set(had) & set(wanted)), "standbys": len(wanted)}
    draft.because(ProcessorReasonKind.FOLLOWS, version=state.version, **facts)
    draft.state = replace(draft.state, work=replace(state.work, standbys=wanted))
    draft.instructions.append(FollowStandbys(state.version, wanted))
    if state.work.phase is WorkPhase.RUNNING and state.is_connected and wanted:
        names = tuple(standby.name for standby in wanted)
        draft.records.append(WriteLocations(names, state.location))


def _is_in_force(state: ProcessorState) -> bool:
    return state.barrier_phase is BarrierPhase.DONE


def _join(draft: ProcessorDraft, kind: ProcessorReasonKind, **facts: object) -> None:
    state = draft.state
    if not state.is_connected or state.joined == state.version or state.sequence is None:
        return
    draft.because(kind, version=state.version, **facts)
    draft.state = replace(draft.state, joined=state.version)
    draft.records.append(Join(state.version, state.processor_id, state.sequence))


def _has_stopped(draft: ProcessorDraft, kept: tuple[TaskName, ...] = ()) -> bool:
    work = draft.state.work
    if work.phase is WorkPhase.IDLE:
        return True
    if work.phase is not WorkPhase.STOPPING:
        draft.state = replace(draft.state, work=replace(work, phase=WorkPhase.STOPPING))
        draft.instructions.append(StopWork(kept))
    return False
