"""Which hosts are requested, in which order, and for how long."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import check_in_timer
from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.appmaster.allocation.protocol.instructions import (
    PermitContainer,
    RequestResource,
    SetTimer,
)
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    allocated,
    asks,
    cancels,
    check_in,
    disarms,
    expired,
    live,
    model,
    never_came,
    permits,
    releases,
    remembers_failure,
    stopped,
)


def test_nothing_is_requested_before_both_model_and_hosts_are_known(machine: Machine) -> None:
    """Model alone: nothing; the first observation of hosts starts the placing."""
    assert machine.feed(model({"0": "a"})) == ()
    assert machine.phase("0") is P.QUEUED
    assert machine.feed(live("a", "b")) == asks(1, "a")
    assert machine.phase("0") is P.REQUESTED


def test_before_the_hosts_are_known_no_container_leaves_its_home(machine: Machine) -> None:
    """A new driver finds a launcher left over elsewhere: it is idle until home has been asked."""
    machine.feed(model({"0": "a"}, p0=1))
    assert machine.feed(check_in("rb", "b", request=7)) == ()
    assert machine.feed(live("a", "b")) == asks(1, "a")
    assert machine.phase("0") is P.REQUESTED


def test_there_is_no_permit_before_there_is_a_model(machine: Machine) -> None:
    """COORD: containers are started only after the job coordinator has been initialised.

    Nor is anything asked for, whatever an earlier driver's launchers say and whatever ends.
    """
    early = (
        live("a", "b"),
        check_in("ra", "a"),
        check_in("rb", "b", request=7),
        allocated(7),
        LauncherSilent(ResourceId("ra")),
    )
    instructions = [i for event in early for i in machine.feed(event)]
    assert not [i for i in instructions if isinstance(i, PermitContainer | RequestResource)]
    assert machine.records == ()


def test_hosts_may_be_known_first(machine: Machine) -> None:
    """The order in which model and hosts become known makes no difference."""
    assert machine.feed(live("a", "b")) == ()
    assert machine.feed(model({"0": "a"})) == asks(1, "a")


def test_each_processor_is_requested_at_home(machine: Machine) -> None:
    """Host affinity: a strict request at the last host of each."""
    assert machine.deploy({"0": "b", "1": "a"}, "a", "b", "c") == (*asks(1, "b"), *asks(2, "a"))


def test_without_a_home_processors_are_spread(machine: Machine) -> None:
    """No last host known: one per host, by name."""
    homes = dict.fromkeys("012")
    assert machine.deploy(homes, "c", "b", "a") == (*asks(1, "a"), *asks(2, "b"), *asks(3, "c"))


def test_strangers_keep_off_a_home(machine: Machine) -> None:
    """A processor that can go home is placed first, though its id is higher."""
    assert machine.deploy({"0": None, "1": "a"}, "a", "b") == (*asks(1, "a"), *asks(2, "b"))


def test_without_host_affinity_last_hosts_are_not_used(machine_with: MachineWith) -> None:
    """Affinity off: the same spread, whatever the locality says, also after a start elsewhere."""
    machine = machine_with(host_affinity_enabled=False)
    assert machine.deploy({"0": "b", "1": "b"}, "a", "b") == (*asks(1, "a"), *asks(2, "b"))
    machine.run("0", "r1", "a", 1)
    assert machine.container("0").home is None


def test_a_home_that_is_not_live_counts_as_expired_at_once(machine: Machine) -> None:
    """The last host is gone: the best other host is requested without waiting."""
    assert machine.deploy({"0": "gone"}, "a", "b") == asks(1, "a")


def test_hosts_without_a_service_of_their_own_are_not_requested_by_name(
    machine_with: MachineWith,
) -> None:
    """A host that joined after the submission is reached by ``any`` only."""
    machine = machine_with(strict_hosts=(Host("a"),))
    assert machine.deploy({"0": "late"}, "a", "late") == asks(1, "a")
    assert machine.feed(expired(1)) == (*cancels(1), *asks(2, None))


def test_one_strict_request_per_host_and_no_head_of_line_blocking(machine: Machine) -> None:
    """Two at home on a, one on b: the second of a waits for its turn, the one of b does not."""
    homes = {"0": "a", "1": "a", "2": "b"}
    assert machine.deploy(homes, "a", "b") == (*asks(1, "a"), *asks(2, "b"))
    assert machine.phases == (P.REQUESTED, P.QUEUED, P.REQUESTED)
    granted = machine.feed(allocated(1))
    assert granted[0] == disarms(1, "expiry")[0]
    assert granted[2:] == asks(3, "a")
    assert machine.phases == (P.ALLOCATED, P.REQUESTED, P.REQUESTED)


def test_expiry_leads_to_the_best_other_host_then_to_any_then_round_again(machine: Machine) -> None:
    """Home, the other hosts by load and name, any, and then from the beginning."""
    assert machine.deploy({"0": "b"}, "a", "b", "c") == asks(1, "b")
    assert machine.feed(expired(1)) == (*cancels(1), *asks(2, "a"))
    assert machine.feed(expired(2)) == (*cancels(2), *asks(3, "c"))
    assert machine.feed(expired(3)) == (*cancels(3), *asks(4, None))
    assert machine.feed(expired(4)) == (*cancels(4), *asks(5, "b"))


def test_the_best_other_host_is_the_least_loaded(machine: Machine) -> None:
    """Containers that run, and requests, count."""
    machine.deploy({"0": "a", "1": "b", "2": "c"}, "a", "b", "c", "d")
    machine.run("0", "r1", "a", 1)
    assert machine.feed(expired(3)) == (*cancels(3), *asks(4, "d"))


def test_of_equally_loaded_hosts_one_without_a_queue_is_best(machine: Machine) -> None:
    """The host of a container that runs, rather than queueing behind a request."""
    machine.deploy({"0": "a", "1": "b", "2": "gone"}, "a", "b")
    assert machine.container("2").requested_host == "a"  # both are requested: the first by name
    machine.run("1", "r2", "b", 2)
    assert machine.container("2").requested_host == "b"
    assert machine.phase("2") is P.REQUESTED


def test_expiry_is_about_the_host_so_requests_queued_for_it_do_not_wait_in_turn(
    machine: Machine,
) -> None:
    """No room at home for the first: the second goes on at once as well."""
    machine.deploy({"0": "a", "1": "a"}, "a", "b", "c")
    assert machine.feed(expired(1)) == (*cancels(1), *asks(2, "b"), *asks(3, "c"))


def test_requests_for_any_host_need_not_take_turns(machine: Machine) -> None:
    """No live host at all: both ask anywhere."""
    assert machine.deploy({"0": "a", "1": "a"}) == (*asks(1, None), *asks(2, None))


def test_a_request_for_a_host_that_is_lost_is_cancelled_at_once(machine: Machine) -> None:
    """Requested or allocated there: the next host, no failure; the same hosts again: nothing."""
    machine.deploy({"0": "a", "1": "b", "2": "c"}, "a", "b", "c")
    machine.feed(allocated(2))
    assert machine.feed(live("c")) == (*cancels(1, "expiry"), *cancels(2, "check-in"))
    assert machine.phases == (P.QUEUED, P.QUEUED, P.REQUESTED)
    assert all(c.failures == 0 for c in machine.state.containers)
    assert machine.feed(live("c")) == ()


def test_requests_anywhere_outlive_a_lost_host(machine: Machine) -> None:
    """A request for any host stands, whatever hosts come and go."""
    machine.deploy({"0": "a"})
    assert machine.feed(live("a"), live()) == ()


def test_allocation_disarms_the_expiry_and_limits_the_check_in(machine: Machine) -> None:
    """After RUNNING the launcher has a time of its own to check in; a second report is stale."""
    machine.deploy({"0": "a"}, "a")
    assert machine.feed(allocated(1)) == (
        *disarms(1, "expiry"),
        SetTimer(check_in_timer(RequestId(1)), 60_000),
    )
    machine.stale(allocated(1), allocated(7), expired(1))


def test_a_launcher_that_never_checks_in_is_a_failure_and_the_next_host_is_requested(
    machine: Machine,
) -> None:
    """Check-in limit: cancelled, counted against the retry keys, asked elsewhere."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(allocated(1))
    assert machine.feed(never_came(1)) == (*cancels(1), *remembers_failure("0"), *asks(2, "b"))
    assert machine.container("0").failures == 1


def test_a_container_that_ends_before_its_launcher_checks_in_is_a_failure(machine: Machine) -> None:
    """Skein's report is enough for a request: nothing to cancel, the next host is requested."""
    machine.deploy({"0": "a"}, "a", "b")
    ended = ResourceEnded(request_id=RequestId(1))
    assert machine.feed(ended) == (*disarms(1, "expiry"), *remembers_failure("0"), *asks(2, "b"))
    machine.stale(ended)


def test_a_failed_launch_anywhere_starts_no_new_round(machine: Machine) -> None:
    """No host is known to blame: any host is requested again."""
    machine.deploy({"0": None})
    ended = ResourceEnded(request_id=RequestId(1))
    assert machine.feed(ended)[-2:] == asks(2, None)


def test_a_surplus_launcher_is_kept_while_a_container_waits_for_home(machine: Machine) -> None:
    """No container leaves home for a stranger's launcher; it is used when home expires (A7)."""
    machine.deploy({"0": "a"}, "a", "b")
    assert machine.feed(check_in("r9", "b")) == ()
    assert machine.feed(check_in("r9", "b")) == ()
    assert machine.feed(expired(1)) == cancels(1)
    assert machine.phase("0") is P.ASSIGNED
    assert machine.feed(check_in("r9", "b")) == permits("r9", "0", 1)


def test_a_surplus_launcher_is_released_when_no_container_waits_any_more(machine: Machine) -> None:
    """A4: an unneeded launcher exits; each of its check-ins gets this order."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(check_in("r9", "b"))
    assert machine.feed(check_in("r1", "a", request=1)) == (
        *disarms(1, "expiry"),
        *permits("r1", "0", 1),
        *releases("r9"),
    )
    assert machine.feed(check_in("r9", "b")) == releases("r9")
    assert machine.feed(check_in("r8", "a")) == releases("r8")


def test_a_released_launcher_is_forgotten_when_it_is_gone(machine: Machine) -> None:
    """By the shell's word or by Skein's."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(check_in("r8", "a", request=8), check_in("r9", "a"))
    assert machine.feed(ResourceEnded(request_id=RequestId(8))) == ()
    assert machine.feed(LauncherSilent(ResourceId("r9"))) == ()
    assert [r.resource_id for r in machine.state.resources] == ["r1"]


def test_an_idle_launcher_at_home_is_taken_before_asking(machine: Machine) -> None:
    """Its processor finished there; another, whose launcher was lost, takes it over (P13)."""
    machine.deploy({"0": "a", "1": "a", "2": "b"}, "a", "b")
    machine.feed(allocated(1))
    machine.run("0", "r1", "a", 1)
    machine.run("1", "r2", "a", 3)
    machine.feed(check_in("r9", "a"))  # surplus on a while 2 waits for b
    silent = LauncherSilent(ResourceId("r2"))
    assert machine.feed(silent) == cancels(3)
    assert machine.container("1").resource_id == "r9"


def test_an_assigned_launcher_that_is_lost_costs_nothing(machine: Machine) -> None:
    """Nothing ran on it: back to the queue, no failure more."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(stopped("0", 1))
    assert machine.phase("0") is P.ASSIGNED
    assert machine.feed(ResourceEnded(request_id=RequestId(1))) == asks(2, "a")
    assert machine.container("0").failures == 1
