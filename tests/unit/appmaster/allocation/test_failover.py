"""An active that cannot go home: each flow of STANDBY, part 3, A, and what may fail in it.

Names as S4 are the scenarios of the reference, 14.5; where ours does otherwise, it is said.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import ContainerState, Failover, FailureKind
from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    Event,
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
    LagsReported,
    SettingsChanged,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    EndFailover,
    Instruction,
    Record,
    SetTimer,
    WriteFailover,
    WriteLocality,
    WriteStop,
)
from homeport.appmaster.allocation.standby_container_manager import is_replaced
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.spec.pairs import asked, group, loses_launcher, request_of, running
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    TAKEN_BACK,
    ZERO,
    A,
    B,
    C,
    Machine,
    MachineWith,
    allocated,
    asks,
    cancels,
    check_in,
    deployed,
    ended,
    expired,
    inc,
    job,
    live,
    model,
    permits,
    remembers_failure,
    silent,
    started,
    stopped,
    stops,
    window_over,
)

FIRST, SECOND = ProcessorId("0-0"), ProcessorId("0-1")
MADE_WAY = stopped("0-0", 1, StopCause.ORDERED, 143)
"""The first standby has stopped as ordered."""


def waits() -> tuple[Instruction, ...]:
    """The active waits for the stop of its standby."""
    return (SetTimer(Timer(TimerKind.STANDBY_STOP, ZERO), SETTINGS.stop_timeout_ms),)


def chooses(
    standby: ProcessorId,
    host: Host,
    *used: ProcessorId,
    epoch: int = 1,
    step: FailoverStep = FailoverStep.STANDBY,
) -> tuple[Record, ...]:
    """The records before the standby is touched; ``used``: standbys of this failover so far."""
    return (
        WriteFailover(ZERO, epoch, standby, host, step, tuple(sorted((*used, standby)))),
        DeleteLocality(standby),
        WriteLocality(ZERO, host, epoch),
    )


def news(machine: Machine, *events: Event) -> tuple[Record, ...]:
    """The records that these events lead to."""
    count = len(machine.records)
    machine.feed(*events)
    return machine.records[count:]


@pytest.fixture
def triple(machine: Machine) -> Machine:
    """0 runs on a in r0, 0-0 on b in r1, 0-1 on c in r2; d is live, too."""
    return deployed(machine, {"0": "a", "0-0": "b", "0-1": "c"}, "a", "b", "c", "d")


# --- the flow of the document


def test_the_standby_that_stops_is_known_until_its_active_runs(pair: Machine) -> None:
    """Its launcher may begin what the active's start will need; at any other stop it must not."""
    assert not is_replaced(pair.state, inc("0-0", 1).processor_id)
    pair.feed(TAKEN_BACK)
    assert is_replaced(pair.state, inc("0-0", 1).processor_id)
    assert not is_replaced(pair.state, inc("0", 1).processor_id)
    pair.feed(MADE_WAY, check_in("r1", "b"), started("0", 2))
    assert not is_replaced(pair.state, inc("0-0", 1).processor_id)


@pytest.mark.parametrize("lost", [live("b", "c"), silent("r0")], ids=str)
def test_a_host_that_is_lost_or_silent_is_not_tried(pair: Machine, lost: Event) -> None:
    """The ResourceManager's word, or the keeper's: the failover begins with the evidence."""
    records = news(pair, lost, silent("r0"))
    assert records == chooses(FIRST, B)


def test_a_launcher_that_was_set_aside_for_the_standby_serves_the_active(pair: Machine) -> None:
    """The standby has just stopped by itself: what it would go on with is the active's."""
    pair.feed(stopped("0-0", 1))
    records = news(pair, TAKEN_BACK)
    assert records == chooses(FIRST, B, step=FailoverStep.STANDBY_HOST)
    assert pair.container("0").resource_id == "r1"
    assert pair.feed(check_in("r1", "b")) == permits("r1", "0", 2, (inc("0", 1),))


def test_a_standby_that_runs_on_the_home_of_its_active_is_the_one_to_take(machine: Machine) -> None:
    """S10: 0 is offered the host that 0-0 runs on: a failover to that one, whatever its lag."""
    machine.feed(job({"0": "b", "0-0": "b", "0-1": "c"}, p0=1, **{"p0-0": 1, "p0-1": 1}))
    machine.feed(check_in("r1", "b", inc("0-0", 1)), check_in("r2", "c", inc("0-1", 1)))
    machine.feed(LagsReported({SECOND: 0}))
    assert news(machine, live("a", "b", "c")) == chooses(FIRST, B)


# --- replication 2


@pytest.mark.parametrize(
    ("lags", "chosen"),
    [
        ({FIRST: 5, SECOND: 3}, (SECOND, C)),
        ({FIRST: 3, SECOND: 3}, (FIRST, B)),
        ({SECOND: 900}, (SECOND, C)),
        ({}, (FIRST, B)),
    ],
    ids=str,
)
def test_the_standby_with_the_least_lag_is_taken(
    triple: Machine, lags: dict[ProcessorId, int], chosen: tuple[ProcessorId, Host]
) -> None:
    """Unknown lags sort last; the id decides between equals."""
    triple.feed(LagsReported(lags))
    assert news(triple, TAKEN_BACK) == chooses(*chosen)


def test_a_lag_is_that_of_one_incarnation_of_a_standby(triple: Machine) -> None:
    """The next permit makes it unknown; that of an active or an unknown processor is dropped."""
    triple.stale(LagsReported({ZERO: 3}), LagsReported({ProcessorId("9"): 3}), LagsReported({}))
    triple.feed(LagsReported({FIRST: 4}))
    triple.stale(LagsReported({FIRST: 4}))
    assert triple.container("0-0").lag == 4
    triple.feed(stopped("0-0", 1), check_in("r1", "b"))
    assert triple.container("0-0").lag is None


def test_the_next_standby_is_taken_when_the_first_ones_host_does_not_answer(
    triple: Machine,
) -> None:
    """S7: 0-0 is not chosen again in this failover, wherever it is; then any other host."""
    triple.feed(TAKEN_BACK, silent("r1"))
    records = triple.records
    assert records[-3:] == chooses(SECOND, C, FIRST)
    triple.feed(silent("r2"))
    last = triple.records[-1]
    assert last == WriteFailover(ZERO, 1, None, None, FailoverStep.OTHER_HOST, (FIRST, SECOND))
    assert triple.container("0").failover == Failover(FailoverStep.OTHER_HOST, used=(FIRST, SECOND))


# --- what fails in a failover


def test_the_standbys_launcher_may_be_gone_when_it_has_stopped(pair: Machine) -> None:
    """YARN says so before the evidence is in: a launcher there is requested at once (safety P2)."""
    pair.feed(TAKEN_BACK)
    assert pair.feed(ended(2)) == asks(3, "b")
    pair.feed(MADE_WAY)
    assert pair.container("0").request_id == 3
    assert pair.container("0").requested_host == "b"
    pair.run("0", "r3", "b", 3)
    assert pair.container("0").failover is None


def test_a_stop_that_is_not_confirmed_in_time_leads_to_the_next_choice(triple: Machine) -> None:
    """S8: 0-0 runs on; when it stops after all it goes on at its launcher."""
    triple.feed(TAKEN_BACK)
    assert news(triple, TimerFired(Timer(TimerKind.STANDBY_STOP, ZERO)))[-3:] == chooses(
        SECOND, C, FIRST
    )
    assert triple.phases == (P.FAILING_OVER, P.STOPPING, P.STOPPING)
    triple.feed(MADE_WAY)
    assert triple.phase("0-0") is P.ASSIGNED
    triple.stale(TimerFired(Timer(TimerKind.STANDBY_STOP, ProcessorId("9"))))


def test_the_standbys_host_may_die_while_its_stop_is_waited_for(triple: Machine) -> None:
    """Its evidence is not waited for: the next standby is there."""
    triple.feed(TAKEN_BACK)
    assert news(triple, live("a", "c", "d"))[-3:] == chooses(SECOND, C, FIRST)


def test_actives_that_want_the_same_host_take_each_its_own_standbys_launcher(
    machine: Machine,
) -> None:
    """0 and 1 fail at once, and both have their standby on c."""
    homes = {"0": "a", "1": "b", "0-0": "c", "1-0": "c"}
    published = replace(model(homes), standbys={FIRST: ZERO, ProcessorId("1-0"): ProcessorId("1")})
    machine.feed(published, live("a", "b", "c", "d"))
    for processor, resource, host, request in (
        ("0", "r0", "a", 1),
        ("1", "r1", "b", 2),
        ("0-0", "r2", "c", 3),
    ):
        machine.run(processor, resource, host, request)
    machine.run("1-0", "r3", "c", 4)
    gone = ended(2, "r1", "preempted", is_taken_back=True)
    machine.feed(TAKEN_BACK, gone, MADE_WAY, stopped("1-0", 1, StopCause.ORDERED))
    assert [machine.container(p).resource_id for p in ("0", "1")] == ["r2", "r3"]


def test_an_active_that_is_found_running_after_all_stays(pair: Machine) -> None:
    """Its launcher was thought gone. The stream is put right, and the standby starts again."""
    pair.feed(TAKEN_BACK)
    records = news(pair, check_in("r0", "a", inc("0", 1)))
    assert records == (EndFailover(ZERO), WriteLocality(ZERO, A, 1))
    pair.feed(MADE_WAY)
    assert pair.phases == (P.RUNNING, P.ASSIGNED)


def test_a_standby_that_is_found_beside_its_active_is_stopped(machine: Machine) -> None:
    """Whatever is on its way so long: Invariant-1 is mended, with evidence."""
    machine.feed(job({"0": "a", "0-0": "b"}, p0=1, **{"p0-0": 1}))
    machine.feed(check_in("r0", "a", inc("0", 1)))
    assert machine.feed(check_in("r1", "a", inc("0-0", 1))) == stops("r1", "0-0", 1)
    machine.feed(live("a", "b"), stopped("0-0", 1, StopCause.ORDERED))
    assert machine.container("0-0").requested_host == "b"


# --- a failover that a driver's death, a new model or the end of the job comes upon; rare corners


# --- the AM, the model and the job


def interrupted(*, step: FailoverStep = FailoverStep.STANDBY) -> JobModelPublished:
    """What a driver finds that starts after the records of a failover."""
    record = FailoverRecord(1, FIRST, B, step, (FIRST,))
    found = job({"0": "b", "0-0": None, "0-1": "c"}, p0=1, **{"p0-0": 1, "p0-1": 1})
    return replace(found, failovers={ZERO: record})


def test_a_model_may_retire_the_active_in_a_failover(pair: Machine) -> None:
    """The failover is over; the standby, retired too, stops."""
    pair.feed(TAKEN_BACK)
    assert news(pair, model({"1": None}, 2)) == (
        EndFailover(ZERO),
        WriteStop(inc("0", 1), "ordered"),
    )
    assert pair.state.container(ZERO) is None
    pair.feed(MADE_WAY)
    assert [c.processor_id for c in pair.state.containers] == ["1"]


def test_an_active_that_is_given_up_fails_over_no_more(machine_with: MachineWith) -> None:
    """Its retries are used up on the standby's host; the standby runs on."""
    machine = machine_with(retry_count=0, fail_job_after_retries=False)
    deployed(machine, {"0": "a", "0-0": "b"}, "a", "b", "c")
    machine.feed(TAKEN_BACK, MADE_WAY, check_in("r1", "b"))
    assert news(machine, stopped("0", 2))[0] == EndFailover(ZERO)
    assert machine.phase("0") is P.FAILED


def test_a_driver_hears_of_a_finish_before_it_has_found_the_standby(machine: Machine) -> None:
    """The job ends when all that an earlier driver left running is found and stopped."""
    machine.feed(job({"0": "a", "0-0": "b"}, p0=1, **{"p0-0": 1}))
    assert machine.feed(stopped("0", 1, StopCause.FINISHED, 0)) == ()
    machine.feed(check_in("r1", "b", inc("0-0", 1)))
    assert machine.feed(live("a", "b")) == stops("r1", "0-0", 1)


def test_other_hosts_are_requested_one_after_the_other(pair: Machine) -> None:
    """Once it is known that no standby can be taken, that is not written with each request."""
    pair.feed(silent("r1"), live("a", "c", "d"), TAKEN_BACK)
    assert pair.container("0").requested_host == "d"
    assert news(pair, expired(4)) == ()


# --- what a driver takes over from the one before it: charged failures, and an end under way


def charged(count: int, left_ms: int = 7000) -> JobModelPublished:
    """The model of two processors, the first of which has been charged so much."""
    published = model({"0": "a", "1": "b"})
    return replace(published, failures={ZERO: ChargedFailures(count, left_ms)})


def test_a_charged_failure_is_forgiven_after_its_window(machine_with: MachineWith) -> None:
    """As if this driver had charged it."""
    machine = machine_with(retry_count=1)
    machine.feed(charged(1), live("a"), window_over("0"))
    assert machine.container("0").failures == 0


def test_a_container_that_was_given_up_is_not_placed_again(machine_with: MachineWith) -> None:
    """The others go on, where the job need not fail for it."""
    machine = machine_with(retry_count=1, fail_job_after_retries=False)
    machine.feed(charged(2), live("a"))
    assert machine.phases == (P.FAILED, P.REQUESTED)
    failure = machine.container("0").last_failure
    assert failure is not None
    assert failure.kind is FailureKind.RETRIES_USED_UP


# --- rare situations of groups: which container is chosen, steps aside or is corrected


def _standby(number: int, phase: P, lag: int | None = None) -> ContainerState:
    processor = ProcessorId(f"0-{number}")
    return ContainerState(processor, replica_of=ProcessorId("0"), phase=phase, lag=lag)


def test_a_standby_withdraws_its_request_for_the_host_of_its_active(machine: Machine) -> None:
    """A new driver finds the active on the host that it has requested for its standby."""
    machine.feed(group({"0": "a", "0-0": "b"}, p0=1), live("a", "b", "c"))
    machine.feed(check_in("r1", "b", running=inc("0", 1)))
    assert (machine.phase("0"), machine.container("0").home) == (P.RUNNING, "b")
    assert machine.container("0-0").requested_host in {"a", "c"}


def test_room_is_not_made_where_standbys_run(machine: Machine) -> None:
    """Two standbys were found on the one host that is left: the active waits until one has gone."""
    machine.feed(group({"0": "a", "0-0": "b", "0-1": "b"}, **{"p0": 1, "p0-0": 1, "p0-1": 1}))
    for number in range(2):
        machine.feed(check_in(f"r{number}", "b", running=inc(f"0-{number}", 1)))
    assert machine.feed(live("b")) == ()
    assert machine.phases == (P.QUEUED, P.RUNNING, P.STOPPING)
    machine.feed(stopped("0-1", 1, StopCause.ORDERED, 0))
    assert machine.phase("0") is P.FAILING_OVER


def test_a_group_that_a_model_makes_is_brought_apart(machine: Machine) -> None:
    """1 was active on the host of 0, and is its standby now: it stops and goes elsewhere."""
    machine.feed(group({"0": "a", "1": "a", "2": "a"}), live("a", "b"))
    for processor in "01":
        machine.feed(allocated(request_of(machine, processor)))
        machine.run(processor, f"r-{processor}", "a", request_of(machine, processor))
    assert machine.phase("2") is P.REQUESTED
    changed = group({"0": None, "1": None, "2": None}, version=2)
    standbys = {ProcessorId("1"): ProcessorId("0"), ProcessorId("2"): ProcessorId("0")}
    stated = machine.feed(replace(changed, standbys=standbys))
    assert stops("r-1", "1", 1)[0] in stated
    assert machine.container("2").requested_host != "a"


def test_a_group_that_is_apart_already_is_left_alone(machine: Machine) -> None:
    """1 was active on a host of its own and is the standby of 0 now: it runs on."""
    machine.feed(group({"0": "a", "1": "b", "2": None}), live("a", "b"))
    machine.run("0", "r-0", "a", request_of(machine, "0"))
    machine.run("1", "r-1", "b", request_of(machine, "1"))
    two = group({"0": None, "1": None, "2": None}, version=2)
    assert machine.feed(replace(two, standbys={ProcessorId("1"): ProcessorId("0")})) == ()
    assert machine.container("1").replica_of == "0"


def test_a_launchers_own_fault_is_charged_with_what_yarn_says(machine: Machine) -> None:
    """YARN said that it ended it for its memory; then its launcher says that it stopped."""
    machine.at_home({"0": "a"})
    greed = ended(1, story="beyond its memory", is_own_fault=True)
    assert asked(machine.feed(greed)) == ["a"]
    assert machine.feed(stopped("0", 1, StopCause.SIGNALLED, 143))[:1] == remembers_failure("0")
    failure = machine.container("0").last_failure
    assert failure is not None
    assert (failure.kind, failure.cause) == (FailureKind.LAUNCHER_LOST, None)
    assert "beyond its memory" in failure.story


def test_an_early_request_ends_with_an_active_that_a_model_removes(pair: Machine) -> None:
    """It waits for its standby, whose launcher YARN calls ended: a place is requested already."""
    pair.feed(TAKEN_BACK, ended(request=2))
    (early,) = pair.state.early
    removed = pair.feed(model({"1": None}, version=2))
    assert set(cancels(early.request_id, "expiry")) <= set(removed)
    assert not pair.state.early


def test_an_early_request_ends_with_the_wait_for_a_standby(pair: Machine) -> None:
    """The place of the standby is drained: its active goes elsewhere in the same step."""
    pair.feed(TAKEN_BACK, ended(request=2))
    (early,) = pair.state.early
    drained = replace(SETTINGS, drained_hosts=frozenset({B}))
    gives_up = pair.feed(SettingsChanged(drained))
    assert set(cancels(early.request_id, "expiry")) <= set(gives_up)
    assert not pair.state.early
    assert pair.container("0").requested_host == "c"


def test_an_early_request_is_granted_once(machine: Machine) -> None:
    """The second report of it is stale; a grant that is not used is not charged."""
    machine.at_home({"0": "a"})
    assert machine.feed(ended(1)) == asks(2, "a")
    machine.feed(allocated(2))
    machine.stale(allocated(2))
    stated = machine.feed(ended(2))
    assert cancels(2)[0] not in stated
    assert machine.container("0").failures == 0


@pytest.mark.parametrize("is_standby_first", [True, False])
def test_both_of_a_pair_lost_at_once_are_brought_back(
    machine: Machine, *, is_standby_first: bool
) -> None:
    """In either order: each is on its way to a host of its own."""
    running(machine, {"0": "a", "0-0": "b"}, "c", "d", "e")
    lost = [loses_launcher("0"), loses_launcher("0-0")]
    machine.feed(*(reversed(lost) if is_standby_first else lost))
    wanted = {machine.container(p).requested_host for p in ("0", "0-0")}
    assert wanted == {"a", "b"}


def test_a_retired_standby_that_returns_keeps_its_host(machine: Machine) -> None:
    """A new driver finds 0-0 of an older model running; 0 requests its host when 0-0 returns."""
    a, b, active, standby = Host("a"), Host("b"), ProcessorId("0"), ProcessorId("0-0")
    machine.feed(
        JobModelPublished(2, {active: a}, epochs={active: 1}, retired={standby: 1}),
        check_in("r1", "a", inc("0", 1)),
        check_in("r2", "b", inc("0-0", 1)),
        live("a", "b"),
        silent("r1"),
    )
    assert machine.container("0").requested_host == b
    machine.feed(
        JobModelPublished(
            3,
            {active: a, standby: None},
            epochs={active: 1, standby: 1},
            floors={active: 1, standby: 2},
            gainers=frozenset({standby}),
            standbys={standby: active},
        )
    )
    assert machine.container("0-0").phase is P.STOPPING
    assert machine.container("0").requested_host != b
