"""Samza's own scenarios of its allocator, A1 to A23, by what ours does in the same situation.

Source: samza-behaviours 14.1 and 14.2. Where Samza buffers a resource under a host or under
``ANY_HOST``, a launcher here is idle, or is permitted at once; where Samza asks for any host, the
best other known host is requested by name first.
"""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import ResourceEnded
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    Instruction,
    PermitContainer,
    RequestResource,
)
from homeport.job_coordinator.model.ids import RequestId, ResourceId
from tests.spec.pairs import asked, group
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
    never_came,
    permits,
    releases,
    remembers_failure,
    rest_over,
    stopped,
)


def _launched(instructions: tuple[Instruction, ...]) -> dict[str, str]:
    permits_of = [i for i in instructions if isinstance(i, PermitContainer)]
    return {i.incarnation.processor_id: i.resource_id for i in permits_of}


def _idle(machine: Machine) -> list[str]:
    held = {c.resource_id for c in machine.state.containers}
    kept = (r for r in machine.state.resources if not r.is_released)
    return [r.resource_id for r in kept if r.resource_id not in held]


# --- with host affinity


def test_containers_without_a_host_are_requested_on_any_host(machine: Machine) -> None:
    """A1: four containers, no host known: four requests, none of them for a host."""
    assert asked(machine.deploy(dict.fromkeys("0123"))) == [None] * 4


def test_a_launcher_serves_the_container_of_its_host(machine: Machine) -> None:
    """A2: 0 at home on abc, 1 on xyz; of abc, def and xyz each gets its own, and def is idle."""
    machine.deploy({"0": "abc", "1": "xyz"}, "abc", "def", "xyz")
    came = machine.feed(check_in("r1", "abc"), check_in("r2", "def"))
    assert _launched(came) == {"0": "r1"}
    assert _idle(machine) == ["r2"]
    assert _launched(machine.feed(check_in("r3", "xyz"))) == {"1": "r3"}


def test_a_surplus_on_one_host_is_kept_for_containers_that_still_wait(machine: Machine) -> None:
    """A3: five more on abc than requested: idle while xyz is awaited; the first one is used.

    Samza keeps them for any host, the first one first; here they are taken when home expires.
    """
    machine.deploy({"0": "abc", "1": "xyz"}, "abc", "xyz")
    came = machine.feed(*(check_in(f"r{n}", "abc") for n in range(1, 6)))
    assert _launched(came) == {"0": "r1"}
    assert _idle(machine) == ["r2", "r3", "r4", "r5"]
    assert machine.feed(expired(2)) == (*cancels(2), *releases("r3", "r4", "r5"))
    assert machine.container("1").resource_id == "r2"


def test_each_host_is_requested_for_its_own_containers(machine: Machine) -> None:
    """A5: {0: abc, 1: def, 2: none, 3: abc}: abc and def are requested; 2 goes elsewhere.

    Samza has two requests for abc at once; here there is one strict request per host, and 3 waits
    for its turn there.
    """
    homes = {"0": "abc", "1": "def", "2": None, "3": "abc"}
    assert asked(machine.deploy(homes, "abc", "def", "xyz")) == ["abc", "def", "xyz"]
    assert (machine.phase("3"), machine.container("3").requested_host) == (P.QUEUED, "abc")
    assert asked(machine.feed(allocated(1))) == ["abc"]


def test_a_delayed_request_is_not_sent_before_its_time(machine_with: MachineWith) -> None:
    """A6: one container is requested now, three rest after a failure: one request, three timers."""
    machine = machine_with(last_retry_delay_ms=7_200_000, retry_count=1)
    machine.deploy({"0": "abc", "1": "b", "2": "c", "3": "d"}, "abc", "b", "c", "d")
    for number, host in ((1, "b"), (2, "c"), (3, "d")):
        machine.run(str(number), f"r{number}", host, number + 1)
        assert asked(machine.feed(stopped(str(number), 1))) == []
    assert machine.phases == (P.REQUESTED, P.BACKING_OFF, P.BACKING_OFF, P.BACKING_OFF)


def test_expired_requests_take_what_is_there(machine: Machine) -> None:
    """A7: homes abc and def, surplus on xyz and zzz: after expiry both run there, none waits."""
    machine.deploy({"0": "abc", "1": "def"}, "abc", "def", "xyz", "zzz")
    machine.feed(check_in("r1", "xyz"), check_in("r2", "zzz"))
    assert _idle(machine) == ["r1", "r2"]
    machine.feed(expired(1), expired(2))
    stated = machine.feed(check_in("r1", "xyz"), check_in("r2", "zzz"))
    assert _launched(stated) == {"0": "r1", "1": "r2"}
    assert machine.phases == (P.STARTING, P.STARTING)


def test_expired_requests_are_cancelled(machine: Machine) -> None:
    """A8: host-1 and host-2 do not answer, host-3 does: one launch, there; requests are ended."""
    first = machine.deploy({"0": "host-1", "1": "host-2"}, "host-1", "host-2", "host-3")
    assert asked(first) == ["host-1", "host-2"]
    stated = machine.feed(check_in("r3", "host-3"), expired(1), check_in("r3", "host-3"))
    assert _launched(stated) == {"0": "r3"}
    stated += machine.feed(expired(2), expired(3), expired(4))
    made = 1 + max(i.request_id for i in stated if isinstance(i, RequestResource))
    ended = [i.request_id for i in stated if isinstance(i, CancelRequest)]
    assert ended == list(range(1, made - 1))  # all but the one that is outstanding


def test_homes_that_are_delivered_are_matched(machine: Machine) -> None:
    """A9: both homes come: two strict requests, two launches there, and none for any host."""
    first = machine.deploy({"0": "abc", "1": "xyz"}, "abc", "xyz")
    came = machine.feed(check_in("r1", "abc", request=1), check_in("r2", "xyz", request=2))
    assert asked(first + came) == ["abc", "xyz"]
    assert _launched(came) == {"0": "r1", "1": "r2"}


def test_containers_whose_home_request_expires_are_requested_elsewhere(machine: Machine) -> None:
    """A10: nothing comes: home, then the other host, then any, round after round, no launch."""
    stated = machine.deploy({"0": "hostname-0", "1": "hostname-1"}, "hostname-0", "hostname-1")
    for request in range(1, 9):
        stated += machine.feed(expired(request))
    assert {*asked(stated)} == {"hostname-0", "hostname-1", None}
    assert asked(stated).count(None) >= 2
    assert _launched(stated) == {}


def test_a_surplus_is_used_without_a_new_request(machine: Machine) -> None:
    """A11: surplus on xyz and zzz, both homes expire: both are launched, no request more."""
    stated = machine.deploy({"0": "h0", "1": "h1"}, "h0", "h1", "xyz", "zzz")
    stated += machine.feed(check_in("r1", "xyz"), check_in("r2", "zzz"), expired(1), expired(2))
    stated += machine.feed(check_in("r1", "xyz"), check_in("r2", "zzz"))
    assert asked(stated) == ["h0", "h1"]
    assert _launched(stated) == {"0": "r1", "1": "r2"}


def test_a_grant_that_is_not_used_in_time_is_ended(machine: Machine) -> None:
    """A12: YARN granted host-0, whose launcher never checks in: ended, and asked for once more.

    Samza gives an unused grant back after 570 s and asks for the same host; here a launcher has the
    check-in timeout, the failure is charged, and the next host is requested.
    """
    machine.deploy({"0": "host-0", "1": "host-1"}, "host-0", "host-1")
    machine.feed(allocated(1), check_in("r1", "host-1", request=2))
    stated = machine.feed(never_came(1))
    assert stated == (*cancels(1), *remembers_failure("0"), *asks(3, "host-1"))
    assert machine.phase("1") is P.STARTING


def test_a_cluster_that_answers_late_is_used_when_it_answers(machine: Machine) -> None:
    """A13: only host-3 comes, then, after more rounds, host-4: one launch, then both."""
    hosts = ("host-1", "host-2", "host-3", "host-4")
    stated = machine.deploy({"0": "host-1", "1": "host-2"}, *hosts)
    stated += machine.feed(check_in("r3", "host-3"), expired(1), check_in("r3", "host-3"))
    assert _launched(stated) == {"0": "r3"}
    for request in (2, 3, 4, 5):
        stated += machine.feed(expired(request))
    assert asked(stated)[:2] == ["host-1", "host-2"]
    stated += machine.feed(check_in("r4", "host-4"))
    assert _launched(stated) == {"0": "r3", "1": "r4"}
    assert machine.phases == (P.STARTING, P.STARTING)


# --- without host affinity, and what is remembered of a request


def test_without_affinity_any_launcher_serves_any_container(machine_with: MachineWith) -> None:
    """A14: whatever host it is on, it is taken at once; no host's launchers are set aside."""
    machine = machine_with(host_affinity_enabled=False)
    machine.deploy({"0": "abc", "1": "def"}, "abc", "def")
    came = machine.feed(check_in("r1", "zzz"), check_in("r2", "zzz"))
    assert _launched(came) == {"0": "r1", "1": "r2"}
    assert _idle(machine) == []


def test_without_affinity_last_hosts_are_not_requested(machine_with: MachineWith) -> None:
    """A15: {0: abc, 1: def, 2: none, 3: abc}: four requests, none for the sake of a home.

    Samza requests any host four times. Here known hosts are requested by name, to spread the load.
    """
    machine = machine_with(host_affinity_enabled=False)
    homes = {"0": "abc", "1": "def", "2": None, "3": "abc"}
    assert asked(machine.deploy(homes)) == [None] * 4
    machine = machine_with(host_affinity_enabled=False)
    assert asked(machine.deploy(homes, "k", "l", "m", "n")) == ["k", "l", "m", "n"]
    assert all(c.home is None for c in machine.state.containers)


def test_a_request_that_no_host_can_serve_does_not_spin(machine_with: MachineWith) -> None:
    """A16: each expiry ends one request and makes one; the container stays on its way."""
    machine = machine_with(host_affinity_enabled=False)
    machine.deploy({"0": None})
    for request in range(1, 100):
        assert machine.feed(expired(request)) == (*cancels(request), *asks(request + 1, None))
    assert machine.phase("0") is P.REQUESTED


def test_without_affinity_an_unused_grant_is_ended_too(machine_with: MachineWith) -> None:
    """A17: as with affinity, and any host is requested again."""
    machine = machine_with(host_affinity_enabled=False)
    machine.deploy({"0": None})
    machine.feed(allocated(1))
    assert machine.feed(never_came(1)) == (*cancels(1), *remembers_failure("0"), *asks(2, None))


def test_a_request_is_remembered_until_something_comes_of_it(machine: Machine) -> None:
    """A18: one request for abc: outstanding there, once, and no launcher is known."""
    assert machine.deploy({"0": "abc"}, "abc") == asks(1, "abc")
    (container,) = machine.state.containers
    assert (container.phase, container.requested_host) == (P.REQUESTED, "abc")
    assert len(list(machine.state.resources)) == 0
    assert machine.feed(live("abc")) == ()


def test_a_second_launcher_and_a_strangers_are_surplus(machine: Machine) -> None:
    """A19: abc is requested; its first launcher serves, the second and a stranger's are idle."""
    machine.deploy({"0": "abc", "1": "b"}, "abc", "b", "c")
    came = machine.feed(check_in("r1", "abc"), check_in("r2", "abc"), check_in("r3", "c"))
    assert _launched(came) == {"0": "r1"}
    assert _idle(machine) == ["r2", "r3"]


def test_a_container_with_a_launcher_waits_for_nothing_more(machine: Machine) -> None:
    """A20: its request and the timer of it are gone, and so is the launcher from the idle ones."""
    machine.deploy({"0": "abc"}, "abc")
    came = machine.feed(check_in("r1", "abc", request=1))
    assert came == (*disarms(1, "expiry"), *permits("r1", "0", 1))
    assert (machine.container("0").request_id, machine.container("0").requested_host) == (
        None,
        None,
    )
    assert machine.state.timers == frozenset()
    assert _idle(machine) == []


def test_a_released_launcher_gets_its_order_and_is_forgotten(machine: Machine) -> None:
    """A21: each of its check-ins gets the order to exit; it is forgotten once YARN has ended it."""
    machine.deploy({"0": "abc"}, "abc", "def")
    machine.feed(check_in("r2", "def"))
    machine.feed(check_in("r1", "abc", request=1))
    assert machine.feed(check_in("r2", "def")) == releases("r2")
    machine.feed(ResourceEnded(resource_id=ResourceId("r2")))
    assert [r.resource_id for r in machine.state.resources] == ["r1"]


def test_actives_are_requested_before_standbys(machine: Machine) -> None:
    """A22: whatever order they came in: all actives first, then the standbys; each in its order.

    By their homes and ids; Samza's requests are ordered by their times.
    """
    homes = {"1-0": "d", "0": "a", "0-0": "b", "2": "e", "1": "c"}
    stated = machine.feed(group(homes), live("a", "b", "c", "d", "e"))
    assert asked(stated) == ["a", "c", "e", "b", "d"]


def test_delayed_containers_come_back_in_the_order_of_their_timers(
    machine_with: MachineWith,
) -> None:
    """A23: the container that rested first is requested first, whatever its id."""
    machine = machine_with(launch_retry_ms=1000)
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    for request in (2, 1):
        machine.feed(ResourceEnded(request_id=RequestId(request)))
    assert machine.phases == (P.BACKING_OFF, P.BACKING_OFF)
    assert asked(machine.feed(rest_over("1"))) == ["a"]
    assert machine.phases == (P.BACKING_OFF, P.REQUESTED)
    assert asked(machine.feed(rest_over("0"))) == ["b"]
