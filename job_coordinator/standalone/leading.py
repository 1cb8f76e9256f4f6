"""The leader's part: it debounces, computes and publishes a version, and closes its barrier.

PURE. ``machine`` calls these functions in its steps.
"""

from dataclasses import replace

from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.standalone.plan import are_back, fits, plan_of, same_work, unreported
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    CloseBarrier,
    Computed,
    ComputeModel,
    ProcessorsSeen,
    ProcessorTimerKind,
    Publish,
)
from homeport.job_coordinator.standalone.reasons import ProcessorReasonKind
from homeport.job_coordinator.standalone.state import ProcessorDraft, ProcessorState


def note_registrations(draft: ProcessorDraft, seen: ProcessorsSeen | Computed) -> None:
    """Note all registrations; a change restarts the debounce time, and voids a computation."""
    if seen.registrations == draft.state.registrations:
        return
    led = draft.state.is_leader
    draft.state = replace(draft.state, registrations=seen.registrations, computing=-1)
    draft.cancel(ProcessorTimerKind.DEBOUNCE)
    if draft.state.is_leader and not led:
        draft.because(ProcessorReasonKind.LEADS, sequence=draft.state.sequence)
    elif led and not draft.state.is_leader:
        draft.because(ProcessorReasonKind.LEADS_NO_MORE)


def compute(draft: ProcessorDraft, why: ProcessorReasonKind) -> None:
    """Have the next version computed."""
    version = draft.state.version
    draft.because(why, version=version)
    draft.state = replace(draft.state, computing=version)
    draft.instructions.append(ComputeModel(version))


def take_computed(draft: ProcessorDraft, event: Computed) -> None:
    """Publish the answer if it is about the present processors and the newest version."""
    state = draft.state
    if state.computing != event.base:
        return
    draft.state = replace(draft.state, computing=-1)
    number = state.sequence
    if event.registrations != state.registrations or number is None:
        draft.because(ProcessorReasonKind.STALE_COMPUTATION)
        note_registrations(draft, event)
        return
    plan = plan_of(state.plan, event.registrations, event.model, event.fenced)
    draft.state = replace(draft.state, has_new_inputs=False)
    changes = sum(member.generation == plan.version for member in plan.members)
    is_same = same_work(state.plan, plan) and fits(state.plan, event.registrations)
    if is_same and not _is_timed_out(state):
        draft.because(ProcessorReasonKind.NOTHING_CHANGES, version=state.version)
        return
    members = len(plan.members)
    draft.because(
        ProcessorReasonKind.PUBLISHES, version=plan.version, changes=changes, members=members
    )
    if plan.lost:
        backed = plan.lost - plan.unbacked
        facts = {"lost": plan.lost, "backed": backed, "unbacked": plan.unbacked}
        draft.because(ProcessorReasonKind.TAKES_OVER, version=plan.version, **facts)
    draft.state = replace(draft.state, publishing=plan.version)
    overtaken = unreported(state.plan, plan, event.fenced)
    draft.records.append(Publish(plan, number, overtaken))


def forget_publication(draft: ProcessorDraft) -> None:
    """Forget a publication without an answer: it may be lost, with its changes of the inputs."""
    if draft.state.publishing:
        draft.state = replace(draft.state, publishing=0, has_new_inputs=True)


def time_out(draft: ProcessorDraft) -> None:
    """Time the newest barrier out; ``lead`` runs the timer only while the barrier is open."""
    state = draft.state
    names = ", ".join(missing(state))
    draft.because(ProcessorReasonKind.BARRIER_TIMED_OUT, version=state.version, missing=names)
    draft.state = replace(draft.state, closed=state.version)
    draft.records.append(CloseBarrier(state.version, BarrierPhase.TIMED_OUT))


def lead(draft: ProcessorDraft) -> None:
    """Prepare a version that is due, and close or time an open barrier, if this is the leader."""
    if not draft.state.is_leader:
        draft.cancel(ProcessorTimerKind.DEBOUNCE)
        draft.cancel(ProcessorTimerKind.BARRIER)
        return
    state = draft.state
    if _is_open(state) and not missing(state) and state.plan is not None:
        members = len(state.plan.members)
        draft.because(ProcessorReasonKind.BARRIER_DONE, version=state.version, members=members)
        draft.state = replace(draft.state, closed=state.version)
        draft.records.append(CloseBarrier(state.version, BarrierPhase.DONE))
    if not _is_open(draft.state):
        draft.cancel(ProcessorTimerKind.BARRIER)
    elif not draft.runs(ProcessorTimerKind.BARRIER, state.version):
        draft.set_timer(ProcessorTimerKind.BARRIER, state.version)
    _debounce(draft)


def _debounce(draft: ProcessorDraft) -> None:
    state = draft.state
    cause = due(state)
    if not cause:
        draft.cancel(ProcessorTimerKind.DEBOUNCE)
    elif state.computing >= 0 or state.publishing:
        return
    elif are_back(state.plan, state.registrations):
        # A wait gains nothing, and the tasks of the processors that were away would wait too.
        draft.cancel(ProcessorTimerKind.DEBOUNCE)
        compute(draft, ProcessorReasonKind.ALL_ARE_BACK)
    elif not draft.runs(ProcessorTimerKind.DEBOUNCE):
        draft.because(ProcessorReasonKind.REBALANCE_DUE, cause=cause)
        draft.set_timer(ProcessorTimerKind.DEBOUNCE)


def due(state: ProcessorState) -> str:
    """Return why a further version is due; empty if none is."""
    if not fits(state.plan, state.registrations):
        return "The processors are not the members of the newest version"
    if _is_timed_out(state):
        return "The barrier timed out"
    return "The inputs changed" if state.has_new_inputs else ""


def _is_timed_out(state: ProcessorState) -> bool:
    return state.barrier_phase is BarrierPhase.TIMED_OUT


def _is_open(state: ProcessorState) -> bool:
    return state.barrier_phase is BarrierPhase.NEW and state.closed != state.version


def missing(state: ProcessorState) -> list[ProcessorId]:
    """Return the members of the newest version that have not joined its barrier."""
    joined = set() if state.barrier is None else set(state.barrier.joined)
    members = () if state.plan is None else state.plan.members
    return [m.processor_id for m in members if (m.processor_id, m.sequence) not in joined]
