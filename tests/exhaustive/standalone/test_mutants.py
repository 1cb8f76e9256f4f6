"""Tests of the search: each rule that is taken out is missed, with the shortest way to the harm.

The machine's rules are replaced in the product; those of ZooKeeper's transactions and of an
incarnation's start, which the search mirrors, are replaced there. ``pytest -v`` prints the ways.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from suites import every_third, long

from homeport.job_coordinator.grouper import mixed_standbys
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import leading, machine, plan
from homeport.job_coordinator.standalone.plan import Member
from homeport.job_coordinator.standalone.protocol import (
    Join,
    ProcessorTimer,
    ProcessorTimerKind,
    Reconnected,
    SessionBegun,
    WorkEnded,
)
from homeport.job_coordinator.standalone.state import HeldWork, Life, ProcessorDraft, WorkPhase
from tests.exhaustive.mutants import Announce, Mutant, Patch
from tests.exhaustive.search import Search
from tests.exhaustive.standalone import by_itself
from tests.exhaustive.standalone.small_world import SmallWorld
from tests.exhaustive.standalone.test_search import (
    report_world,
    standby_world,
    with_a_late_report,
    without_the_first,
    world_of,
    world_with_files,
)
from tests.exhaustive.standalone.things import World

TWICE = "active twice|Kafka takes writes"
STUCK = "nothing leads to a good one"
Start = Callable[[SmallWorld], World]


@dataclass(frozen=True)
class ProcessorMutant(Mutant):
    """A rule of standalone processors, and the worlds in which its absence is found."""

    ids: str
    kinds: tuple[str, ...]
    faults: int
    start: Start
    places: str
    rules: Callable[[], SmallWorld] | None

    def search(self) -> None:
        """All worlds are safe, and can all go well."""
        kinds = self.kinds or ("may_die", "may_expire")
        if self.rules is not None:
            rules = self.rules()
        elif self.places:
            rules = standby_world(self.ids, self.places, *kinds)
        else:
            rules = world_of(self.ids, *kinds)
        search: Search[World] = Search(rules, self.faults)
        search.visit(self.start(rules))


MUTANTS: list[ProcessorMutant] = []


def mutant(
    verdict: str,
    ids: str = "pq",
    *kinds: str,
    faults: int = 1,
    is_settled: bool = True,
    places: str = "",
    start: Start | None = None,
    rules: Callable[[], SmallWorld] | None = None,
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """The decorated patch is a mutant; with ``places``, the tasks have standbys.

    ``rules``: the searched world, in place of one with these ids, kinds and places.
    """

    def listed(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        begin = start or (SmallWorld.settled if is_settled else SmallWorld.begun)
        made = ProcessorMutant(patch, verdict, ids, kinds, faults, begin, places, rules)
        MUTANTS.append(made)
        return patch

    return listed


@mutant(TWICE)
def fence_no_predecessor(patch: Patch) -> None:
    """Safety I1: an incarnation does not init the ids of those before it."""
    patch.setattr(SmallWorld, "fences", False)


@mutant(TWICE)
def list_no_predecessor(patch: Patch) -> None:
    """Safety I1: a plan has no list of incarnations to fence."""
    patch.setattr(plan, "_suspects", lambda *_: {})


@mutant(TWICE, "pq", "is_slow", "may_expire", start=without_the_first)
def forget_the_list_of_a_generation_that_stays(patch: Patch) -> None:
    """Safety I1: it is not in the first version in force that it fences what it had to."""
    original = plan.next_plan

    def forgetful(before: plan.Plan | None, *rest: object, **others: object) -> plan.Plan:
        made = original(before, *rest, **others)  # type: ignore[arg-type]  # passed on
        stay = {m.incarnation for m in before.members} if before else set()
        members = (replace(m, fence=()) if m.incarnation in stay else m for m in made.members)
        return replace(made, members=tuple(members))

    patch.setattr(plan, "next_plan", forgetful)


@mutant(TWICE, faults=0, start=with_a_late_report, rules=report_world)
def publish_over_a_late_report(patch: Patch) -> None:
    """Safety I1: what has reported meanwhile is in no list, and writes."""
    patch.setattr(SmallWorld, "compares_reports", False)


@mutant(TWICE, faults=0, start=without_the_first, rules=lambda: SmallWorld("pq", "t"))
def delete_the_reports_of_members(patch: Patch) -> None:
    """Safety I1: a member's report is what has the next version list it."""
    patch.setattr(SmallWorld, "keeps_reports", False)


@mutant(TWICE, "pq", "may_expire", is_settled=False)
def check_no_version(patch: Patch) -> None:
    """Safety I3: an incarnation begins without a look at the newest version."""
    patch.setattr(SmallWorld, "checks", False)


@mutant(TWICE + "|barrier is not done", is_settled=False, faults=0)
def join_before_the_work_has_stopped(patch: Patch) -> None:
    """A processor joins a barrier while it still holds what it loses."""
    original = machine._has_stopped

    def hasty(draft: ProcessorDraft, kept: tuple[TaskName, ...] = ()) -> bool:
        done = original(draft, kept)
        state = draft.state
        if not done and state.is_connected and state.sequence and state.joined < state.version:
            draft.state = replace(draft.state, joined=state.version)
            draft.records.append(Join(state.version, state.processor_id, state.sequence))
        return done

    patch.setattr(machine, "_has_stopped", hasty)


@mutant("barrier is not done|" + TWICE, is_settled=False, faults=0)
def start_before_the_barrier(patch: Patch) -> None:
    """A processor starts its tasks as soon as a version names them."""
    patch.setattr(machine, "_is_in_force", lambda _state: True)


@mutant("barrier is not done|" + TWICE, is_settled=False, faults=0)
def close_the_barrier_at_once(patch: Patch) -> None:
    """The leader waits for no member."""
    patch.setattr(leading, "missing", lambda _state: [])


@mutant(TWICE + "|" + STUCK + "|a version that is not there", is_settled=False, faults=1)
def publish_without_comparing(patch: Patch) -> None:
    """Two leaders overwrite each other's versions."""
    patch.setattr(SmallWorld, "compares_version", False)


@mutant(STUCK, is_settled=False, faults=0)
def keep_the_version_when_a_processor_goes(patch: Patch) -> None:
    """No version is due when the members change."""
    patch.setattr(leading, "fits", lambda plan, _registrations: plan is not None)


@mutant(STUCK, "pq", "is_slow", is_settled=False)
def leave_a_timed_out_barrier(patch: Patch) -> None:
    """No version follows on one whose barrier timed out."""
    patch.setattr(leading, "_is_timed_out", lambda _state: False)


def _only_connected(draft: ProcessorDraft, _event: object) -> None:
    draft.cancel(ProcessorTimerKind.SESSION)
    draft.state = replace(draft.state, is_connected=True)


@mutant(STUCK, "p", "may_cut", is_settled=False)
def write_once_only(patch: Patch) -> None:
    """What may be lost with the connection is not written again."""
    patch.setattr(machine, "_HANDLERS", {**machine._HANDLERS, Reconnected: _only_connected})


@mutant(STUCK, "p", "may_cut", "may_lose_work", faults=2)
def take_a_new_session_for_the_first(patch: Patch) -> None:
    """It waits for the answer to a registration that was lost."""
    patch.setattr(machine, "_HANDLERS", {**machine._HANDLERS, SessionBegun: _only_connected})


@mutant("time of a session runs", "p", "may_cut", "may_lose_work", faults=2)
def let_the_time_of_the_old_session_run(patch: Patch) -> None:
    """It would stop the work of the new one."""
    original = machine._forget_session

    def hasty(draft: ProcessorDraft) -> None:
        timer = ProcessorTimer(ProcessorTimerKind.SESSION)
        runs = timer in draft.state.timers
        original(draft)
        if runs:
            draft.state = replace(draft.state, timers=draft.state.timers | {timer})

    patch.setattr(machine, "_forget_session", hasty)


@mutant(STUCK, "p")
def start_a_generation_twice(patch: Patch) -> None:
    """A new session leaves the generation as it was, which does not start again (safety C4)."""
    original = plan.next_plan

    def kept(before: plan.Plan | None, *rest: object, **others: object) -> plan.Plan:
        made = original(before, *rest, **others)  # type: ignore[arg-type]  # passed on
        former = {m.processor_id: m for m in before.members} if before else {}

        def as_before(member: Member) -> Member:
            old = former.get(member.processor_id)
            is_same = old is not None and old.tasks == member.tasks
            return replace(member, generation=old.generation) if old and is_same else member

        return replace(made, members=tuple(as_before(m) for m in made.members))

    patch.setattr(plan, "next_plan", kept)


@mutant("starts beside another|" + TWICE + "|" + STUCK, "p")
def work_on_without_a_session(patch: Patch) -> None:
    """The end of the session stops no work."""

    def renewed(draft: ProcessorDraft) -> None:
        if draft.state.is_connected:
            life = Life.OUT
            draft.state = replace(
                draft.state, is_given_up=False, life=life, sequence=None, registrations=()
            )
            draft.state = replace(
                draft.state, work=replace(draft.state.work, phase=WorkPhase.IDLE, held=())
            )

    patch.setattr(machine, "_begin_again", renewed)


@mutant("starts beside another|" + TWICE, is_settled=False, faults=0)
def take_a_stop_for_stopped(patch: Patch) -> None:
    """The work counts as stopped when its stop is ordered."""
    original = machine._has_stopped

    def at_once(draft: ProcessorDraft, kept: tuple[TaskName, ...] = ()) -> bool:
        if not original(draft, kept):
            draft.state = replace(
                draft.state, work=HeldWork(generation=draft.state.work.generation)
            )
        return True

    patch.setattr(machine, "_has_stopped", at_once)
    handlers = dict(machine._HANDLERS)
    handlers[WorkEnded] = lambda _draft, _event: None
    patch.setattr(machine, "_HANDLERS", handlers)


@mutant(STUCK, "pp", faults=0, is_settled=False)
def wait_for_a_twin_for_ever(patch: Patch) -> None:
    """The second processor of an id never ends."""
    patch.setattr(machine, "_await_twin", lambda _draft: None)


@mutant(STUCK, "pqr", "may_die", places="aab")
def keep_the_standbys_that_it_has(patch: Patch) -> None:
    """A version that only moves standbys changes nothing."""
    patch.setattr(machine, "_follow_standbys", lambda *_: None)


@mutant(STUCK, faults=0, is_settled=False, rules=world_with_files)
def pass_over_a_processor_whose_load_has_grown(patch: Patch) -> None:
    """STANDBY: a replica is left out where there is a place for it."""
    forgetful = SimpleNamespace(**{name: getattr(heapq, name) for name in heapq.__all__})
    forgetful.heapreplace = lambda heap, _item: heapq.heappop(heap)
    patch.setattr(mixed_standbys, "heapq", forgetful)
    patch.setattr(by_itself, "_grouped", by_itself._grouped.__wrapped__)


@mutant("is open twice", "pqr", "may_die", places="aab")
def put_a_standby_beside_its_task(patch: Patch) -> None:
    """STANDBY, Invariant-1: the location of a processor does not count."""
    original = mixed_standbys._Dealing.__init__

    def blind(
        dealing: mixed_standbys._Dealing,
        owners: Mapping[TaskName, ProcessorId],
        places: mixed_standbys.Places,
    ) -> None:
        original(dealing, owners, mixed_standbys.Places({p: Host(p) for p in places.hosts}))

    patch.setattr(mixed_standbys._Dealing, "__init__", blind)
    patch.setattr(plan, "check_standbys", lambda *_: None)
    patch.setattr(by_itself, "_grouped", by_itself._grouped.__wrapped__)


@mutant(STUCK, "pq", faults=0, is_settled=False, places="ab")
def say_nothing_of_where_standbys_are(patch: Patch) -> None:
    """Only the tasks' locations are written."""
    patch.setattr(HeldWork, "here", property(lambda work: work.held))


def _with_end(patch: Patch, cause: StopCause, other: StopCause) -> None:
    patch.setattr(machine, "WORK_ENDS", {**machine.WORK_ENDS, cause: machine.WORK_ENDS[other]})


@mutant("wrongly: cut-off", "p", "may_lose_work")
def take_a_host_that_is_cut_off_for_a_fault_of_the_job(patch: Patch) -> None:
    """The processor ends as failed, and nothing begins it again."""
    _with_end(patch, StopCause.CUT_OFF, StopCause.FAILED)


@mutant("wrongly: finished", "p", "may_lose_work")
def begin_finished_work_again(patch: Patch) -> None:
    """The processor of a job that has read all its input never ends."""
    _with_end(patch, StopCause.FINISHED, StopCause.UNAVAILABLE)


@mutant("wrongly: disk-full", "p", "may_lose_work")
def begin_failed_work_again(patch: Patch) -> None:
    """A fault of the job stays unseen."""
    _with_end(patch, StopCause.DISK_FULL, StopCause.UNAVAILABLE)


@mutant(STUCK, "p", "may_lose_work")
def begin_other_work_in_the_same_session(patch: Patch) -> None:
    """Its generation does not start twice."""
    ends = {**machine.WORK_ENDS, StopCause.UNAVAILABLE: lambda *_: None}
    patch.setattr(machine, "WORK_ENDS", ends)


_LONG = {"check_no_version", "publish_without_comparing"}
_MUTANTS = sorted(MUTANTS, key=lambda wrong: str(wrong) in _LONG)
_SHORT = len(MUTANTS) - len(_LONG)
_CASES = [*every_third(_MUTANTS[:_SHORT]), *map(long, _MUTANTS[_SHORT:])]


@pytest.mark.parametrize("wrong", _CASES, ids=str)
def test_the_search_finds_what_a_missing_rule_does(
    wrong: ProcessorMutant,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    announce: Announce,
) -> None:
    """The shortest way: fewest faults, then fewest moves."""
    wrong.require_found(monkeypatch, request, announce)
