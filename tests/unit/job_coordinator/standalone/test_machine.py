"""What the transcripts do not show: events that say nothing new, and that come when it is over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planned_models import model_of

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import machine
from homeport.job_coordinator.standalone import protocol as wire
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.plan import Member, Plan, Registration, Standby
from homeport.job_coordinator.standalone.protocol import ProcessorTimer, ProcessorTimerKind
from homeport.job_coordinator.standalone.reasons import (
    UNEXPECTED,
    ProcessorReason,
    ProcessorReasonKind,
)
from homeport.job_coordinator.standalone.state import HeldWork, Life, ProcessorState, WorkPhase

P = ProcessorId("p")
T = TaskName("t")
HERE = (Registration(1, P, Host("a")),)
PLAN = Plan(2, (Member(P, 1, 2, (T,)),), model=model_of({P: (T,)}))
DEBOUNCE = ProcessorTimer(ProcessorTimerKind.DEBOUNCE)
EVERY_TIMER = frozenset(ProcessorTimer(kind) for kind in ProcessorTimerKind)


def running(timers: frozenset[ProcessorTimer] = frozenset()) -> ProcessorState:
    """The only processor of its job, at work."""
    return ProcessorState(
        P,
        Host("a"),
        life=Life.MEMBER,
        is_connected=True,
        sequence=1,
        registrations=HERE,
        plan=PLAN,
        barrier=wire.BarrierSeen(2, wire.BarrierPhase.DONE, ((P, 1),)),
        joined=2,
        work=HeldWork(WorkPhase.RUNNING, 2, (T,)),
        timers=timers,
    )


@pytest.mark.parametrize(
    "event",
    [
        wire.ProcessorsSeen(HERE),
        wire.PlanSeen(PLAN),
        wire.PlanSeen(Plan(1, (Member(P, 1, 1, (T,)),))),
        wire.BarrierSeen(1, wire.BarrierPhase.TIMED_OUT),
        wire.Computed(2, HERE, model_of({P: (T,)}), {}),
        wire.PublishRefused(3),
        wire.WorkStarted(2),
        wire.WorkOvertaken(1),
        wire.ProcessorTimerFired(DEBOUNCE),
    ],
    ids=str,
)
def test_what_is_known_changes_nothing(event: wire.Event) -> None:
    """No write, no order, no reason: a snapshot may come twice, and late."""
    decision = step(running(), event)
    assert decision.state == running()
    assert not decision.records + decision.instructions + decision.reasons


def test_a_timer_without_its_cause_leads_to_nothing() -> None:
    """The work goes on, and the other timers without a cause end."""
    decision = step(
        running(EVERY_TIMER), wire.ProcessorTimerFired(ProcessorTimer(ProcessorTimerKind.DUPLICATE))
    )
    assert not decision.records + decision.reasons
    assert {type(order) for order in decision.instructions} == {wire.StopTimer}
    assert decision.state.work == running().work


def test_an_older_version_does_not_answer_a_publication() -> None:
    """Only the published one, or a newer one, does."""
    state = step(running(), wire.InputsChanged()).state
    state = step(state, wire.ProcessorTimerFired(DEBOUNCE)).state
    computed = wire.Computed(2, HERE, model_of({P: (T,)}, partition=1), {})
    decision = step(state, computed)
    assert [type(record) for record in decision.records] == [wire.Publish]
    assert step(decision.state, wire.PlanSeen(PLAN)).state.publishing == 3


def test_a_version_of_those_that_are_here_ends_the_debounce_time() -> None:
    """They are back in it, with other registrations: it is computed once, and without a wait."""
    state = step(running(), wire.InputsChanged()).state
    assert state.timers == {DEBOUNCE}
    back = step(state, wire.PlanSeen(Plan(3, (Member(P, 7, 3, (T,)),))))
    assert wire.ComputeModel(3) in back.instructions
    assert wire.StopTimer(DEBOUNCE) in back.instructions
    assert not back.state.timers


def test_a_takeover_says_how_much_of_it_a_standby_had() -> None:
    """Of two tasks that a lost processor had, this one has kept one."""
    lost = ProcessorId("q")
    kept = Standby(TaskName("u"), TaskName("u'"))
    tasks = (kept.task, TaskName("v"))
    members = (Member(P, 1, 2, (T,), standbys=(kept,)), Member(lost, 2, 2, tasks))
    barrier = wire.BarrierSeen(2, wire.BarrierPhase.DONE, ((P, 1), (lost, 2)))
    work = HeldWork(WorkPhase.RUNNING, 2, (T,), standbys=(kept,))
    state = replace(running(), plan=Plan(2, members), barrier=barrier, work=work)
    state = step(state, wire.ProcessorsSeen(HERE)).state
    state = step(state, wire.ProcessorTimerFired(DEBOUNCE)).state
    decision = step(state, wire.Computed(2, HERE, model_of({P: (T, *tasks)}), {}))
    (reason,) = (r for r in decision.reasons if r.kind is ProcessorReasonKind.TAKES_OVER)
    assert dict(reason.facts) == {"lost": 2, "backed": 1, "unbacked": 1, "version": 3}


def test_work_that_changes_hears_which_tasks_stay() -> None:
    """Only their stores may stay open; without a session, none."""
    kept, lost, gained = TaskName("k"), TaskName("l"), TaskName("m")
    state = replace(running(), work=HeldWork(WorkPhase.RUNNING, 2, (lost, kept)))
    plan = Plan(3, (Member(P, 1, 3, (gained, kept)),))
    changed = step(state, wire.PlanSeen(plan))
    assert wire.StopWork((kept,)) in changed.instructions
    expired = step(state, wire.SessionExpired())
    assert wire.StopWork() in expired.instructions


def test_a_processor_with_standbys_alone_has_work() -> None:
    """Its child keeps them up to date, from when the version is in force."""
    kept = Standby(T, TaskName("t'"))
    plan = Plan(2, (Member(P, 1, 2, standbys=(kept,)),))
    joined = wire.BarrierSeen(2, wire.BarrierPhase.NEW, ((P, 1),))
    state = replace(running(), plan=plan, work=HeldWork(), barrier=joined, closed=2)
    decision = step(state, wire.BarrierSeen(2, wire.BarrierPhase.DONE, ((P, 1),)))
    assert decision.instructions == (wire.StartWork(2, 2, (), (), (kept,)),)


def test_a_leader_that_leads_no_more_closes_no_barrier() -> None:
    """Its time ends with the connection; the next leader has one of its own."""
    state = replace(running(), barrier=None)
    state = step(state, wire.BarrierSeen(2, wire.BarrierPhase.NEW, ())).state
    assert state.timers == {ProcessorTimer(ProcessorTimerKind.BARRIER, 2)}
    cut = step(state, wire.Disconnected())
    assert wire.StopTimer(ProcessorTimer(ProcessorTimerKind.BARRIER, 2)) in cut.instructions
    assert cut.state.timers == {ProcessorTimer(ProcessorTimerKind.SESSION)}


def test_what_was_computed_in_an_earlier_session_is_not_used() -> None:
    """Nor are the registrations that it was computed for."""
    state = step(running(), wire.InputsChanged()).state
    state = step(state, wire.ProcessorTimerFired(DEBOUNCE)).state
    assert state.computing == state.version
    over = step(replace(state, closed=2, publishing=3), wire.SessionExpired()).state
    assert (over.registrations, over.barrier, over.publishing) == ((), None, 0)
    assert (over.joined, over.closed, over.computing) == (0, 0, -1), "as before the first session"
    decision = step(over, wire.Computed(2, HERE, model_of({P: (T,)}, partition=1), {}))
    assert decision.state == over
    assert not decision.records + decision.instructions + decision.reasons


@pytest.mark.parametrize("kind", ProcessorReasonKind)
def test_each_reason_has_its_sentence(kind: ProcessorReasonKind) -> None:
    """With every fact that any of them names."""
    names = (
        "backed cause changes error generation held kept lost members missing processor sequence "
        "standbys tasks twin unbacked version"
    )
    assert str(ProcessorReason(kind, tuple((name, 1) for name in names.split())))


@pytest.mark.parametrize("cause", StopCause)
def test_each_cause_of_an_end_of_work_has_its_meaning(cause: StopCause) -> None:
    """A further cause needs a row in ``WORK_ENDS`` and one here."""
    over = step(running(), wire.WorkEnded(2, cause, "the last line"))
    assert over.state.work == HeldWork(generation=2)
    ends = [i for i in over.instructions if isinstance(i, wire.EndProcessor)]
    if cause in {StopCause.UNAVAILABLE, StopCause.CUT_OFF, StopCause.LEASE_LOST}:
        assert (ends, over.instructions[-1]) == ([], wire.RenewSession())
        assert over.reasons[0].kind in UNEXPECTED
        assert f"the work ended ({cause.value}): the last line" in str(over.reasons[0])
    elif cause in {StopCause.FINISHED, StopCause.SIGNALLED, StopCause.ORDERED}:
        assert ends == [wire.EndProcessor(wire.EndCause.STOPPED)]
    else:
        assert cause in {
            StopCause.FAILED,
            StopCause.KILLED,
            StopCause.DISK_FULL,
            StopCause.NO_PACKAGE,
        }
        assert ends == [wire.EndProcessor(wire.EndCause.FAILED, "the last line")]
    assert set(machine.WORK_ENDS) == set(StopCause)


@pytest.mark.parametrize("cause", StopCause)
def test_an_end_that_was_ordered_or_comes_late_means_no_more(cause: StopCause) -> None:
    """Whatever the cause: the stop goes on, and other work is left alone."""
    stopping = step(running(), wire.StopRequested()).state
    ended = step(stopping, wire.WorkEnded(2, cause, "the last line"))
    assert ended.instructions == (wire.EndProcessor(wire.EndCause.STOPPED),)
    assert step(running(), wire.WorkEnded(1, cause)).state == running()


def test_work_that_ends_without_a_connection_gives_its_client_up() -> None:
    """A ZooKeeper that comes back with less than the client has seen never answers it."""
    cut = step(running(), wire.Disconnected()).state
    over = step(cut, wire.WorkEnded(2, StopCause.LEASE_LOST))
    assert over.instructions[-1] == wire.RenewSession()
    assert (over.state.sequence, over.state.is_given_up) == (None, True)
    back = step(over.state, wire.Reconnected())
    assert wire.RenewSession() not in back.instructions
    assert not back.state.is_given_up


def test_inputs_that_change_again_begin_the_debounce_time_again() -> None:
    """The version is computed once they rest; a snapshot that comes twice puts it off no more."""
    state = step(running(), wire.InputsChanged()).state
    orders = step(state, wire.InputsChanged()).instructions
    assert orders == (wire.StopTimer(DEBOUNCE), wire.StartTimer(DEBOUNCE))
    decision = step(state, wire.ProcessorsSeen(HERE))
    assert (decision.state, decision.instructions) == (state, ())


def test_what_was_written_before_a_break_is_looked_for_again() -> None:
    """The barrier that was seen and closed may not be there."""
    cut = step(replace(running(), closed=2), wire.Disconnected()).state
    back = step(cut, wire.Reconnected()).state
    assert (back.barrier, back.closed, back.joined) == (None, 0, 2)


def test_a_processor_that_leaves_stays_so() -> None:
    """Its session may end, and a second order to stop may come; it registers no more."""
    ordered = step(running(EVERY_TIMER), wire.StopRequested())
    stopped = {order.timer for order in ordered.instructions if isinstance(order, wire.StopTimer)}
    assert stopped == EVERY_TIMER
    assert ordered.state.life is Life.LEAVING
    assert step(ordered.state, wire.StopRequested()).reasons == ()
    over = step(ordered.state, wire.SessionExpired()).state
    assert over.life is Life.LEAVING
    ended = step(over, wire.WorkEnded(2, StopCause.ORDERED))
    assert (ended.state.life, ended.records) == (Life.ENDED, ())


@pytest.mark.parametrize("is_connected", [True, False])
def test_only_a_registration_that_stands_is_given_back(*, is_connected: bool) -> None:
    """Without a connection it ends with the session; without one there is nothing to give."""
    state = replace(running(), work=HeldWork(generation=2), is_connected=is_connected)
    records = step(state, wire.StopRequested()).records
    assert records == ((wire.Deregister(1),) if is_connected else ())
    unregistered = replace(state, sequence=None, life=Life.OUT)
    assert step(unregistered, wire.StopRequested()).records == ()


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_barrier_is_joined_by_one_that_is_connected(*, is_connected: bool) -> None:
    """Else after the break."""
    state = replace(running(), joined=0, is_connected=is_connected)
    joins = step(state, wire.BarrierSeen(2, wire.BarrierPhase.NEW, ())).records
    assert (wire.Join(2, P, 1) in joins) is is_connected


@pytest.mark.parametrize(
    ("phase", "is_connected", "is_written"),
    [
        (WorkPhase.RUNNING, True, True),
        (WorkPhase.RUNNING, False, False),
        (WorkPhase.STARTING, True, False),
    ],
)
def test_where_standbys_are_is_written_by_work_that_runs(
    phase: WorkPhase, *, is_connected: bool, is_written: bool
) -> None:
    """Work that starts writes it once it runs; what is cut off does after the break."""
    kept = Standby(TaskName("u"), TaskName("u'"))
    plan = Plan(2, (Member(P, 1, 2, (T,), standbys=(kept,)),))
    work = HeldWork(phase, 2, (T,))
    state = replace(running(), plan=plan, work=work, is_connected=is_connected)
    decision = step(state, wire.BarrierSeen(2, wire.BarrierPhase.DONE, ((P, 1),)))
    assert wire.FollowStandbys(2, (kept,)) in decision.instructions
    written = wire.WriteLocations((kept.name,), Host("a"))
    assert (written in decision.records) is is_written
