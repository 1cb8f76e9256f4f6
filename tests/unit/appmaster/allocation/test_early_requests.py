"""Home is requested as soon as YARN reports that a container ended there; the permit waits."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.job_coordinator.model.ids import RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    allocated,
    asks,
    cancels,
    check_in,
    disarms,
    expired,
    inc,
    never_came,
    permits,
    stopped,
)

EVIDENCE = ResourceEnded(RequestId(1), ResourceId("r0"))


@pytest.fixture
def ended(machine: Machine) -> Machine:
    """Processor 0 runs on ``a`` for all we can prove, and YARN has reported its container's end."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    assert machine.feed(ResourceEnded(RequestId(1))) == asks(2, "a")
    assert machine.phase("0") is P.RUNNING
    machine.stale(ResourceEnded(RequestId(1)))
    return machine


def test_the_launcher_is_there_when_the_evidence_comes(ended: Machine) -> None:
    """It waits, and is permitted with its first check-in afterwards."""
    ended.feed(allocated(2))
    assert ended.feed(check_in("r1", "a", request=2)) == disarms(2, "check-in")
    assert ended.feed(check_in("r1", "a", request=2)) == ()
    assert ended.phase("0") is P.RUNNING
    ended.feed(EVIDENCE)
    assert ended.phase("0") is P.ASSIGNED
    permit = ended.feed(check_in("r1", "a", request=2))
    assert permit == permits("r1", "0", 2, (inc("0", 1),))


@pytest.mark.parametrize("is_granted", [True, False])
def test_a_pending_early_request_is_taken_over(ended: Machine, *, is_granted: bool) -> None:
    """The evidence comes first: not asked twice, and its timer goes on."""
    if is_granted:
        ended.feed(allocated(2))
    ended.feed(EVIDENCE)
    assert ended.phase("0") is (P.ALLOCATED if is_granted else P.REQUESTED)
    assert ended.container("0").request_id == 2
    permit = ended.feed(check_in("r1", "a", request=2))
    assert permit[-1:] == permits("r1", "0", 2, (inc("0", 1),))


@pytest.mark.parametrize("is_granted", [True, False])
def test_without_room_it_is_requested_once_and_nothing_is_charged(
    ended: Machine, *, is_granted: bool
) -> None:
    """The evidence has it placed as ever."""
    if is_granted:
        ended.feed(allocated(2))
    assert ended.feed(never_came(2) if is_granted else expired(2)) == cancels(2)
    assert ended.container("0").failures == 0
    ended.feed(EVIDENCE)
    assert ended.container("0").request_id == 3


def test_a_launcher_that_lives_takes_it_back(ended: Machine) -> None:
    """YARN erred: the request is withdrawn."""
    assert ended.feed(check_in("r0", "a", inc("0", 1))) == cancels(2, "expiry")
    assert not ended.state.early


def test_a_report_that_comes_late_does_not_wait_for_a_launcher_that_is_gone(ended: Machine) -> None:
    """The launcher's word is evidence; YARN's that it is gone as well."""
    ended.feed(stopped("0", 1))
    assert ended.phase("0") is P.REQUESTED
    assert ended.container("0").request_id == 2
    ended.stale(LauncherSilent(ResourceId("r0")))


def test_silence_after_an_end_that_was_reported_says_nothing_of_the_host(ended: Machine) -> None:
    """Safety P2: a NodeManager that reports is alive."""
    ended.feed(LauncherSilent(ResourceId("r0")))
    assert not ended.state.exclusions
    assert ended.container("0").requested_host == "a"


def test_a_launcher_that_yarn_has_ended_is_given_to_no_container(machine: Machine) -> None:
    """Its processor finished; another that waits for the same home does not wait for it."""
    machine.deploy({"0": "a", "1": "a"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.feed(ResourceEnded(RequestId(1)), stopped("0", 1, StopCause.FINISHED, 0))
    machine.feed(expired(2))
    assert (machine.phase("1"), machine.container("1").requested_host) == (P.REQUESTED, "b")
