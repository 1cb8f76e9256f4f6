"""Standbys: where they are placed, what their failures mean, and the end of the job.

Names as S9 are the scenarios of the reference, 14.5.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.protocol.events import (
    HostReport,
    HostsObserved,
    LauncherSilent,
    ResourceEnded,
)
from homeport.appmaster.allocation.protocol.instructions import EndJob, JobResult
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    TAKEN_BACK,
    Machine,
    MachineWith,
    asks,
    cancels,
    check_in,
    expired,
    inc,
    job,
    live,
    model,
    permits,
    releases,
    rest_over,
    stopped,
    stops,
)

P = ContainerPhase


def test_standbys_have_no_host_at_a_first_deployment(machine: Machine) -> None:
    """Actives are placed before them, home first: "all requests for them will be AnyHost" ones.

    Other than in the document, the best other host is requested by name (design 6).
    """
    standbys = {ProcessorId(f"{p}-0"): ProcessorId(p) for p in "01"}
    homes = {"0-0": None, "0": "b", "1": None, "1-0": None}
    stated = machine.feed(replace(model(homes), standbys=standbys), live("a", "b", "c"))
    assert stated == (*asks(1, "b"), *asks(2, "a"), *asks(3, "c"))
    assert [machine.container(p).requested_host for p in ("0-0", "1-0")] == ["c", "b"]


def test_a_group_of_one_has_no_member_to_stay_apart_from(machine: Machine) -> None:
    """S1: without standbys no host is forbidden."""
    machine.feed(model({"0": "a", "1": "a"}), live("a"))
    assert [machine.container(p).requested_host for p in ("0", "1")] == ["a", "a"]


def test_replicas_of_one_active_are_apart_from_each_other(machine: Machine) -> None:
    """S2, S15: two standbys of 0 are never on one host; one without a host waits.

    It is placed when a host comes.
    """
    machine.feed(job({"0": "a", "0-0": "b", "0-1": "b"}), live("a", "b"))
    assert [machine.container(p).requested_host for p in ("0", "0-0", "0-1")] == ["a", "b", None]
    assert machine.phase("0-1") is P.QUEUED
    assert machine.feed(live("a", "b", "c")) == asks(3, "c")


def test_a_standby_is_not_given_a_launcher_on_the_host_of_its_active(machine: Machine) -> None:
    """S9: it requested any host, and got that one: the launcher exits, it requests again."""
    machine.feed(job({"0": "a", "0-0": None}), live("a"))
    machine.run("0", "r0", "a", 1)
    assert machine.phase("0-0") is P.QUEUED
    assert machine.feed(check_in("r9", "a")) == releases("r9")


def test_any_host_is_requested_only_where_a_host_cannot_be_requested_by_name(
    machine_with: MachineWith,
) -> None:
    """S9, S11: z joined after the submission. After a refusal it rests, so that nothing spins."""
    machine = machine_with(strict_hosts=(Host("a"),), launch_retry_ms=1000)
    machine.feed(job({"0": "a", "0-0": None}), live("a", "z"))
    machine.run("0", "r0", "a", 1)
    assert machine.container("0-0").request_id == 2
    assert machine.feed(check_in("r2", "a", request=2))[-1:] == releases("r2")
    assert machine.phase("0-0") is P.BACKING_OFF
    assert machine.feed(rest_over("0-0")) == asks(3, None)
    machine.run("0-0", "r3", "z", 3)


def test_a_refusal_without_rests_asks_again_at_once(machine_with: MachineWith) -> None:
    """The rest of a failed launch is none."""
    machine = machine_with(strict_hosts=(Host("a"),))
    machine.feed(job({"0": "a", "0-0": None}), live("a", "z"))
    machine.run("0", "r0", "a", 1)
    assert machine.feed(check_in("r2", "a", request=2))[1:3] == asks(3, None)


def test_a_standby_goes_on_at_its_launcher_or_its_last_host(pair: Machine) -> None:
    """S13, B: "on the same host on which the standby container was last seen"."""
    pair.feed(stopped("0-0", 1))
    assert pair.feed(check_in("r1", "b")) == permits("r1", "0-0", 2, (inc("0-0", 1),))
    ended = ResourceEnded(RequestId(2), ResourceId("r1"), "killed")
    assert pair.feed(ended)[-2:] == asks(3, "b")
    assert pair.feed(expired(3)) == (*cancels(3), *asks(4, "c"))


def test_a_standby_that_the_cluster_took_back_is_placed_elsewhere_at_once(pair: Machine) -> None:
    """S13: -102; not charged."""
    gone = ResourceEnded(RequestId(2), ResourceId("r1"), "preempted", is_taken_back=True)
    assert pair.feed(gone) == asks(3, "c")
    assert pair.container("0-0").failures == 0


def test_a_standby_keeps_away_from_where_its_active_will_be(pair: Machine) -> None:
    """S11: the active's home is kept for it; a surplus there is no use to the standby."""
    pair.feed(ResourceEnded(RequestId(1), ResourceId("r0"), "killed"))
    pair.feed(live("a", "b"))
    stated = pair.feed(LauncherSilent(ResourceId("r1")), live("a"))
    assert pair.container("0").requested_host == "a"
    assert pair.phase("0-0") is P.QUEUED
    assert asks(4, "a")[0] not in stated


@pytest.mark.parametrize("processor", ["0", "0-0"])
def test_failures_of_both_roles_carry_equal_weight(pair: Machine, processor: str) -> None:
    """The same retry keys, the same end of the job."""
    resource, host = {"0": ("r0", "a"), "0-0": ("r1", "b")}[processor]
    for epoch in (1, 2):
        pair.feed(stopped(processor, epoch), check_in(resource, host))
    pair.feed(stopped(processor, 3))
    assert pair.phase(processor) is P.FAILED
    assert pair.state.ending is not None
    assert pair.state.ending.result is JobResult.FAILED


def test_a_job_succeeds_when_its_actives_have_finished(pair: Machine) -> None:
    """Its standbys are stopped then."""
    stated = pair.feed(stopped("0", 1, StopCause.FINISHED, 0))
    assert stops("r1", "0-0", 1)[0] in stated
    stated = pair.feed(stopped("0-0", 1, StopCause.ORDERED, 143))
    assert EndJob(JobResult.SUCCEEDED, "every processor finished") in stated


def test_a_standby_that_says_it_finished_has_failed(pair: Machine) -> None:
    """Its work ends with the job."""
    pair.feed(stopped("0-0", 1, StopCause.FINISHED, 0))
    assert (pair.phase("0-0"), pair.container("0-0").failures) == (P.ASSIGNED, 1)


def test_a_standby_that_finishes_after_its_order_to_stop_is_placed_again(pair: Machine) -> None:
    """What a stop that was ordered is called does not matter (the reference's defect 5)."""
    pair.feed(TAKEN_BACK, stopped("0-0", 1, StopCause.FINISHED, 0))
    assert pair.phases == (P.ASSIGNED, P.REQUESTED)


def test_standbys_can_be_switched_off_and_on(pair: Machine) -> None:
    """A model without them stops them; one with them again has them placed."""
    assert pair.feed(model({"0": "a"}, 2)) == stops("r1", "0-0", 1)
    pair.feed(stopped("0-0", 1, StopCause.ORDERED))
    assert pair.feed(job({"0": "a", "0-0": None}, 3)) == asks(3, "b")


def test_a_model_that_makes_two_replicas_of_one_keeps_them_apart(machine: Machine) -> None:
    """Processor x was a standby of 1, beside 0: as a standby of 0 it must not be there."""
    homes = {"0": "a", "1": "b", "x": "a", "y": "b"}
    of_one = {ProcessorId("x"): ProcessorId("1"), ProcessorId("y"): ProcessorId("0")}
    machine.feed(replace(model(homes), standbys=of_one), live("a", "b", "c"))
    for number, processor in enumerate(homes):
        machine.feed(check_in(f"r{number}", str(homes[processor])))
    assert {c.phase for c in machine.state.containers} == {P.STARTING}
    swapped = {ProcessorId("x"): ProcessorId("0"), ProcessorId("y"): ProcessorId("1")}
    resource = machine.container("x").resource_id
    stated = machine.feed(replace(model(homes, 2), standbys=swapped))
    assert stops(str(resource), "x", 1)[0] in stated
    machine.feed(stopped("x", 1, StopCause.ORDERED))
    assert machine.container("x").requested_host == "c"


def test_a_container_without_replicas_asks_at_home_also_after_it_was_taken_back(
    machine: Machine,
) -> None:
    """Its state is nowhere else; nothing is charged."""
    machine.feed(model({"0": "a"}), live("a", "b"))
    machine.run("0", "r0", "a", 1)
    assert machine.feed(TAKEN_BACK) == asks(2, "a")
    assert machine.container("0").failures == 0


def test_a_standby_on_a_forbidden_host_of_a_new_model_gives_up_its_request(
    machine: Machine,
) -> None:
    """It asks elsewhere under the new model; one that is not in the way goes on."""
    homes = {"0": "a", "1": "b", "x": "a", "y": "c"}
    of_one = {ProcessorId("x"): ProcessorId("1"), ProcessorId("y"): ProcessorId("1")}
    machine.feed(replace(model(homes), standbys=of_one), live("a", "b", "c", "d"))
    machine.run("0", "r1", "a", 1)
    assert (machine.container("x").requested_host, machine.container("y").requested_host) == (
        "a",
        "c",
    )
    of_zero = {ProcessorId("x"): ProcessorId("0"), ProcessorId("y"): ProcessorId("0")}
    machine.feed(replace(model(homes, 2), standbys=of_zero))
    assert (machine.container("x").requested_host, machine.container("y").requested_host) == (
        "d",
        "c",
    )


# --- racks


def racks(**rack: str | None) -> HostsObserved:
    """These hosts in these racks."""
    reports = tuple(HostReport(Host(h), r, 1024, 4, 1024, 4) for h, r in sorted(rack.items()))
    return HostsObserved(tuple(sorted(map(Host, rack))), reports)


def test_another_rack_is_preferred(machine_with: MachineWith) -> None:
    """S18: soft: the standby goes to another rack, though the host in its active's is as empty."""
    for is_preferred, host in ((False, "b"), (True, "c")):
        machine = machine_with(racks_are_preferred=is_preferred)
        machine.feed(job({"0": "a", "0-0": None}))
        machine.feed(racks(a="one", b="one", c="two"))
        assert machine.container("0-0").requested_host == host


def test_without_another_rack_a_standby_is_placed_all_the_same(machine_with: MachineWith) -> None:
    """S18: soft, where all hosts share one rack: the reference's defect 9 blocks every standby."""
    machine = machine_with(racks_are_preferred=True)
    machine.feed(job({"0": "a", "0-0": None}), racks(a="one", b="one"))
    assert machine.container("0-0").requested_host == "b"


def test_racks_may_be_kept_apart_always(machine_with: MachineWith) -> None:
    """S18: hard: a rack counts as a host does; of a host without a known rack nothing is said."""
    machine = machine_with(racks_are_apart=True)
    machine.feed(job({"0": "a", "0-0": "b"}), racks(a="one", b="one"))
    assert machine.phase("0-0") is P.QUEUED
    machine.feed(racks(a="one", b="one", c=None))
    assert machine.container("0-0").requested_host == "c"


def test_racks_are_those_of_the_last_observation(machine_with: MachineWith) -> None:
    """S18: what a later look says counts; one that says nothing of hosts changes nothing."""
    machine = machine_with(racks_are_apart=True)
    machine.feed(job({"0": "a", "0-0": None}), racks(a="one", b="one"))
    assert machine.feed(live("a", "b")) == ()
    assert machine.feed(racks(a="one", b="two"))[:1] == asks(2, "b")[:1]
