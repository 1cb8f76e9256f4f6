"""Tests of the search: each rule that is taken out is missed, with the shortest way to the harm.

``pytest -v`` prints the ways. The allocator's rules are replaced in the product; those of the
keeper, the child and the shell, which the search mirrors, are replaced there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from immutables import Map
from suites import every_third

from homeport.appmaster.allocation import (
    container_allocator,
    container_process_manager,
    destinations,
    host_search,
    job_end,
    retries,
    separation,
    standby_container_manager,
)
from homeport.appmaster.allocation.commands import warm_moves
from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import Placement
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    ContainerState,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import Event, TimerFired
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    DeleteLocality,
    DeletePlacementRequest,
    EndFailover,
    Record,
    RequestResource,
    WriteFailover,
    WriteFailureCount,
    WriteJobEnd,
    WriteLocality,
    WritePlacementResponse,
    WriteProcessorEpoch,
    WriteStop,
)
from homeport.appmaster.job_model import publication
from homeport.job_coordinator.model.ids import ProcessorId, RequestId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.exhaustive.job import SETTINGS
from tests.exhaustive.mutants import Announce, Mutant, Patch
from tests.exhaustive.people import NO_PEOPLE, READ, WARM, People
from tests.exhaustive.search import Search
from tests.exhaustive.small_world import SmallWorld


@dataclass(frozen=True)
class AllocatorMutant(Mutant):
    """A rule of the allocator, and the job in which its absence is found."""

    groups: dict[str, tuple[str, ...]]
    fault_count: int
    retry_count: int = -1
    is_settled: bool = False
    is_fine: bool = False
    people: People = NO_PEOPLE
    has_pipeline: bool = False
    absent: tuple[str, ...] = ()

    def search(self) -> None:
        """All worlds of its job are safe, and can all go well.

        Raises:
            FoundError: one is not as it must be.
        """
        settings = replace(
            SETTINGS, retry_count=self.retry_count, temporary_have_spark=self.has_pipeline
        )
        hosts = ("a", "b", "c")
        rules = SmallWorld(self.groups, hosts, settings, people=self.people, is_fine=self.is_fine)
        search = Search(rules, self.fault_count)
        search.visit(rules.settled() if self.is_settled else rules.deployed(self.absent))


MUTANTS: list[AllocatorMutant] = []


def mutant(
    verdict: str,
    *,
    retry_count: int = -1,
    is_settled: bool = False,
    is_fine: bool = False,
    people: People = NO_PEOPLE,
    faults: int | None = None,
    has_pipeline: bool = False,
    absent: tuple[str, ...] = (),
    **groups: tuple[str, ...],
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Enter the function as a mutant; groups as ``p0=("0-0",)``, one active by default.

    ``is_settled``: the search begins when all run. ``is_fine``: its grain. ``people``: what people
    do; with them the search is within one fault, or ``faults``. ``has_pipeline``: a Spark is to be
    beside the standby of a warm move. ``absent``: hosts that are not in the cluster at first.
    """

    def enter(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        named = {p.removeprefix("p"): replicas for p, replicas in groups.items()} or {"0": ()}
        count = faults or (2 if people is NO_PEOPLE else 1)
        MUTANTS.append(
            AllocatorMutant(
                *(patch, verdict, named, count, retry_count, is_settled, is_fine, people),
                *(has_pipeline, absent),
            )
        )
        return patch

    return enter


def _decisions(patch: Patch, changed: Callable[[Event, Decision], Decision]) -> None:
    step = container_process_manager.step

    def mutated(state: AllocatorState, event: Event) -> Decision:
        return changed(event, step(state, event))

    patch.setattr(container_process_manager, "step", mutated)


def _forget(patch: Patch, kind: type[Record]) -> None:
    def forgetful(_: Event, decision: Decision) -> Decision:
        kept = tuple(r for r in decision.records if not isinstance(r, kind))
        return replace(decision, records=kept)

    _decisions(patch, forgetful)


# --- the keeper's, the child's and the shell's rules


@mutant("two live children of one processor")
def drop_the_lease_margin(patch: Patch) -> None:
    """Safety C1: the keeper may end a lease before its launcher does."""
    patch.setattr(SmallWorld, "has_margin", False)


@mutant("Kafka takes writes of (two incarnations of 0|0@.* after a newer one has read its state)")
def fence_after_restore(patch: Patch) -> None:
    """Safety I3: the listed incarnations are fenced once the stores are restored."""
    patch.setattr(SmallWorld, "start_order", ("init", "check", "restore", "fence"))


@mutant("Kafka takes writes of (two incarnations of 0|0@.* after a newer one has read its state)")
def skip_the_head_read(patch: Patch) -> None:
    """Safety I3: a child goes on without asking whether its epoch still stands."""
    patch.setattr(SmallWorld, "_is_newest", lambda *_: True)


@mutant("two live children of one processor|a permit is for a launcher without a child")
def place_before_all_are_accounted_for(patch: Patch) -> None:
    """A new driver does not wait for those that an earlier one permitted."""
    patch.setattr(SmallWorld, "awaits_all", False)


# --- the allocator's rules


@mutant("nothing leads to a good one", faults=1, absent=("c",), p0=("0-0", "0-1"))
def request_hosts_of_the_submission_alone(patch: Patch) -> None:
    """A host that joins later is never requested: the last of a group has no place."""
    is_open = host_search.Candidates.is_open
    patch.setattr(
        host_search.Candidates, "is_open", lambda self, host: host != "c" and is_open(self, host)
    )


@mutant("two live children of one processor|a permit is for a launcher without a child")
def take_yarns_word_for_a_stop(patch: Patch) -> None:
    """Safety P1: the end that Skein reports counts as evidence that the child has stopped."""
    patch.setattr(Draft, "has_child", lambda *_: False)


@mutant("the stream does not know the epoch")
def forget_the_record_of_a_permit(patch: Patch) -> None:
    """Safety L3: the permit is given, and the stream does not know."""
    _forget(patch, WriteProcessorEpoch)


@mutant("the stream does not know the failover", p0=("0-0",), is_settled=True)
def forget_the_record_of_a_failover(patch: Patch) -> None:
    """The next driver would begin it once more, with a standby that was used."""
    _forget(patch, WriteFailover)


@mutant("the stream does not know the failover", p0=("0-0",), is_settled=True)
def forget_the_end_of_a_failover(patch: Patch) -> None:
    """The next driver would go on with a failover that is over."""
    _forget(patch, EndFailover)


@mutant("the stream does not know the locality", p0=("0-0",), is_settled=True)
def forget_where_an_active_goes(patch: Patch) -> None:
    """The next driver would ask for its old host."""
    _forget(patch, WriteLocality)


@mutant("the stream does not know the locality", p0=("0-0",), is_settled=True)
def forget_that_a_standby_has_no_place(patch: Patch) -> None:
    """The next driver would ask for the host that its active has taken."""
    _forget(patch, DeleteLocality)


@mutant("the stream does not know the failures", retry_count=1)
def forget_a_failure(patch: Patch) -> None:
    """A job whose driver dies often would be restarted without limit."""
    _forget(patch, WriteFailureCount)


@mutant("the stream does not know the end", retry_count=0)
def forget_the_end_of_the_job(patch: Patch) -> None:
    """The next driver would start again what this one has stopped."""
    _forget(patch, WriteJobEnd)


@mutant("the stream does not know the epoch", people=People(({"0": "1"},)))
def forget_the_stop_of_a_removed_processor(patch: Patch) -> None:
    """Safety A4: every later driver would wait for it."""
    _forget(patch, WriteStop)


@mutant("the stream does not know the answer", people=People(commands=(("0", "b"),)))
def forget_an_answer_to_the_operator(patch: Patch) -> None:
    """The next driver would not complete the command."""
    _forget(patch, WritePlacementResponse)


@mutant("the stream does not know the request", people=People(commands=(("0", "b"),)))
def forget_that_a_request_was_read(patch: Patch) -> None:
    """The next driver would carry it out once more."""
    _forget(patch, DeletePlacementRequest)


@mutant("Kafka takes writes of (two incarnations of 0|0@.* after a newer one has read its state)")
def fence_no_processor(patch: Patch) -> None:
    """Safety I1: a permit lists no incarnation to fence."""
    permit = container_allocator.permit

    def without_list(draft: Draft, container: ContainerState, *rest: Any) -> None:  # noqa: ANN401 - handed on as it comes
        permit(draft, draft.change(replace(container, unfenced=())), *rest)

    patch.setattr(container_allocator, "permit", without_list)


@mutant("one child per incarnation|does not fence itself|permitted again")
def use_an_epoch_again(patch: Patch) -> None:
    """A permit has the epoch of the one before."""
    patch.setattr(ContainerState, "next_epoch", property(lambda c: max(1, c.epoch)))


@mutant("no container waits for request")
def forget_a_request(patch: Patch) -> None:
    """The allocator does not cancel a request that no container needs any more."""

    def forgetful(_: Event, decision: Decision) -> Decision:
        kept = (i for i in decision.instructions if not isinstance(i, CancelRequest))
        return replace(decision, instructions=tuple(kept))

    _decisions(patch, forgetful)


@mutant("a launcher that YARN will end gets no permit", is_fine=True)
def forget_what_was_cancelled(patch: Patch) -> None:
    """A launcher that checks in while it is being ended is given a container."""

    def only_told(draft: Draft, request_id: RequestId, **_: bool) -> None:
        draft.instruct(CancelRequest(request_id))

    patch.setattr(Draft, "cancel", only_told)


@mutant("is ended without need")
def adopt_twice(patch: Patch) -> None:
    """A child that is found is taken for its processor's, though another runs already."""
    with_child = container_process_manager._with_child

    def taken(
        draft: Draft, launcher: ResourceState, running: Incarnation, holder: ContainerState | None
    ) -> None:
        owner = draft.containers.get(running.processor_id)
        is_news = launcher.resource_id not in draft.resources
        is_found = is_news and launcher.request_id not in draft.cancelled
        if is_found and owner is not None and owner.phase is ContainerPhase.RUNNING:
            container_allocator.adopt(draft, owner, launcher)
        else:
            with_child(draft, launcher, running, holder)

    patch.setattr(container_process_manager, "_with_child", taken)


@mutant("nothing leads to a good one")
def ask_once_only(patch: Patch) -> None:
    """After a request has expired the allocator requests no other host."""

    def silent(event: Event, decision: Decision) -> Decision:
        asks = (i for i in decision.instructions if not isinstance(i, RequestResource))
        is_expiry = isinstance(event, TimerFired)
        return replace(decision, instructions=tuple(asks)) if is_expiry else decision

    _decisions(patch, silent)


@mutant("a job fails only for what counts as a failure", retry_count=0)
def charge_a_lost_lease(patch: Patch) -> None:
    """Safety C6: that the lease ran out counts as a failure of the processor."""
    charged = retries.CHARGED_CAUSES | {StopCause.LEASE_LOST}
    patch.setattr(retries, "CHARGED_CAUSES", charged)


@mutant("is ended without need")
def believe_a_stop_of_long_ago(patch: Patch) -> None:
    """A stop is taken for the present incarnation's, whosever it was."""

    def current(draft: Draft, incarnation: Incarnation, trigger: Trigger) -> ContainerState | None:
        container = draft.containers[incarnation.processor_id]
        return container if draft.may_befall(container, trigger) else None

    patch.setattr(container_process_manager, "_current", current)


# --- the rules of standbys


@mutant("Invariant-1|are on one host|stay apart", p0=("0-0",))
def skip_the_host_check(patch: Patch) -> None:
    """Invariant-1: hosts, grants and launchers are given out without a look at their containers."""
    patch.setattr(separation, "_taken_hosts", lambda *_: iter(()))


@mutant("Invariant-1|Invariant-2|stay apart|on one host", p0=("0-0",), is_settled=True)
def permit_without_the_gate(patch: Patch) -> None:
    """Invariant-2: an order to stop a standby counts as its stop."""
    await_stop, taken_hosts = standby_container_manager._await, separation._taken_hosts

    def go_ahead(draft: Draft, active: ContainerState, standby: ContainerState) -> ContainerState:
        waiting = await_stop(draft, active, standby)
        standby_container_manager.way_is_clear(draft, waiting, None)
        return draft.containers[active.processor_id]

    def but_stopping(draft: Draft, container: ContainerState) -> Any:  # noqa: ANN401 - as it was
        every = taken_hosts(draft, container)
        return (pair for pair in every if pair[0].phase is not ContainerPhase.STOPPING)

    patch.setattr(separation, "_taken_hosts", but_stopping)
    patch.setattr(separation, "is_clear", lambda *_: True)
    patch.setattr(standby_container_manager, "_await", go_ahead)


@mutant("a standby is chosen once in a failover", p0=("0-0", "0-1"), is_settled=True)
def choose_a_standby_again(patch: Patch) -> None:
    """The standbys that a failover has used are not remembered."""
    choose = standby_container_manager.choose

    patch.setattr(standby_container_manager, "choose", lambda draft, of, _: choose(draft, of, ()))


# --- the rules of what people do


@mutant("two live children of one task|Kafka takes writes", people=People(({"0": "1"},)))
def overtake_nobody(patch: Patch) -> None:
    """Safety I2: a model that moves tasks raises no epoch."""
    patch.setattr(publication.TaskChange, "affected", frozenset())


@mutant("nothing leads to a good one", people=People(({"0": "0", f"{READ}more": ""},)))
def let_containers_read_on_what_they_read(patch: Patch) -> None:
    """Safety I2: a model with another input overtakes no container whose tasks stay."""

    def differs(change: publication.TaskChange, processor_id: ProcessorId) -> bool:
        before, after = change.before.get(processor_id), change.after.get(processor_id)
        names = [{task.task_name for task in tasks or ()} for tasks in (before, after)]
        return names[0] != names[1]

    patch.setattr(publication.TaskChange, "_differs", differs)


@mutant("nothing leads to a good one", people=People(({"0": "0", "new": "0"},)))
def let_containers_run_on_without_what_comes(patch: Patch) -> None:
    """Safety I2: a model with one more task overtakes no container that keeps its own."""

    def differs(change: publication.TaskChange, processor_id: ProcessorId) -> bool:
        before, after = change.before.get(processor_id), change.after.get(processor_id)
        return before is None or after is None or not before <= after

    patch.setattr(publication.TaskChange, "_differs", differs)


@mutant(
    "two live children of one task|Kafka takes writes",
    people=People(({"0": "0", "new": "1"}, {"0": "0"}, {"0": "0", "new": "0"})),
)
def fence_nobody_for_a_task_that_comes_back(patch: Patch) -> None:
    """Safety I1: of a task that the model before lacks, no former owner is listed."""

    def fence(change: publication.TaskChange, processor_id: ProcessorId) -> tuple[Incarnation, ...]:
        found = set(change.owners.unfenced(processor_id))
        for task in change.after.get(processor_id, ()):
            owner = change._owner_before.get(task.task_name, processor_id)
            found |= set(change.owners.unfenced(owner))
        return tuple(sorted(found))

    patch.setattr(publication.TaskChange, "_fence", fence)


@mutant("two live children of one task|waits|fence", people=People(({"0": "1"},)))
def permit_before_the_losers_have_stopped(patch: Patch) -> None:
    """Safety I1: a processor that gains a task is permitted while its former owner runs."""
    patch.setattr(container_allocator, "former_owners", lambda *_: iter(()))


@mutant("nothing leads to a good one|JobPhase|ending", people=People(may_shut_down=True))
def stop_nobody_at_the_end(patch: Patch) -> None:
    """The job is to end, and no container gets the order to stop."""
    patch.setattr(job_end, "LIVE", frozenset())


@mutant(
    "the stream does not know the answer|nothing leads to a good one",
    people=People(commands=(("0", "b"),)),
)
def answer_no_command(patch: Patch) -> None:
    """A command is carried out, and has no final answer."""

    def silent(_: Event, decision: Decision) -> Decision:
        kept = (r for r in decision.records if not _is_final(r))
        return replace(decision, records=tuple(kept))

    _decisions(patch, silent)


_WARM = People(commands=(("0", f"{WARM}b"),))


@mutant(
    "one child per incarnation|0-warm stays or is the next one",
    people=_WARM,
    is_settled=True,
    faults=2,
)
def forget_the_epochs_of_temporary_standbys(patch: Patch) -> None:
    """Safety I1: the standby of the next warm move begins with the first epoch again."""

    def forgetful(_: Event, decision: Decision) -> Decision:
        return replace(decision, state=replace(decision.state, former=Map()))

    _decisions(patch, forgetful)


@mutant("no two containers are on one resource", people=_WARM, is_settled=True)
def take_the_place_of_a_standby_that_stops(patch: Patch) -> None:
    """Invariant-2: an order to stop the temporary standby counts as its stop."""
    give_way = warm_moves.give_way

    def at_once(draft: Draft, placement: Placement, launcher: ResourceState) -> None:
        with patch.context() as blind:
            blind.setattr(Draft, "holder", lambda *_: None)
            give_way(draft, placement, launcher)

    patch.setattr(destinations, "group_fault", lambda *_: None)
    patch.setattr(warm_moves, "give_way", at_once)


@mutant("gives way with a Spark beside it", people=_WARM, is_settled=True, has_pipeline=True)
def give_way_before_there_is_a_spark(patch: Patch) -> None:
    """The container would start one within the pause."""

    def at_once(draft: Draft, placement: Placement, standby: ContainerState) -> None:
        launcher = draft.resources[standby.resource_id] if standby.resource_id else None
        assert launcher is not None
        warm_moves._order_to_give_way(draft, placement, standby, launcher)

    patch.setattr(warm_moves, "_wait_for_spark", at_once)


@mutant(
    "timers are armed exactly where", people=_WARM, is_settled=True, has_pipeline=True, faults=2
)
def wait_for_a_spark_for_ever(patch: Patch) -> None:
    """The end of the time that a warm move waits means nothing."""
    patch.setattr(warm_moves, "wait_for_no_spark", lambda *_: None)


def _is_final(record: Record) -> bool:
    return isinstance(record, WritePlacementResponse) and record.status.is_final


@pytest.mark.parametrize("wrong", every_third(MUTANTS), ids=str)
def test_the_search_finds_what_a_missing_rule_does(
    wrong: AllocatorMutant,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    announce: Announce,
) -> None:
    """The shortest way: fewest faults, then fewest moves."""
    wrong.require_found(monkeypatch, request, announce)


_OTHER_JOBS = [m for m in MUTANTS if m.retry_count != -1 or m.people is not NO_PEOPLE]
"""The jobs that ``test_search`` does not search."""


@pytest.mark.parametrize("wrong", every_third(_OTHER_JOBS), ids=str)
def test_with_the_rule_the_same_search_finds_nothing(wrong: AllocatorMutant) -> None:
    """What is found without the rule is the work of the mutant."""
    wrong.search()
