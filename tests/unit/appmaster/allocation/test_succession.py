"""What a driver takes over from the one before it: charged failures, and an end under way."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.job_state.failure import FailureKind
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import retry_window_timer
from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    JobModelPublished,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import EndJob, JobResult, SetTimer
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    check_in,
    inc,
    live,
    model,
    stopped,
    stops,
    window_over,
)

P0 = ProcessorId("0")


def charged(count: int, left_ms: int = 7000) -> JobModelPublished:
    """The model of two processors, the first of which has been charged so much."""
    published = model({"0": "a", "1": "b"})
    return replace(published, failures={P0: ChargedFailures(count, left_ms)})


def test_failures_charged_before_count(machine_with: MachineWith) -> None:
    """For the rest of its window; the next failure within it is one too many."""
    machine = machine_with(retry_count=1)
    assert SetTimer(retry_window_timer(P0), 7000) in machine.feed(charged(1), live("a"))
    assert machine.container("0").failures == 1
    machine.run("0", "r0", "a", 1)
    machine.feed(stopped("0", 1))
    assert machine.phase("0") is P.FAILED


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


def test_an_end_that_another_driver_began_goes_on(machine: Machine) -> None:
    """Each adopted container gets an order to stop; the result is the one decided then."""
    machine.feed(model({"0": "a"}, p0=3), live("a"), check_in("r0", "a", inc("0", 3)))
    orders = machine.feed(ShutdownRequested("FAILED", "why"))
    assert orders == stops("r0", "0", 3)
    assert EndJob(JobResult.FAILED, "why") in machine.feed(stopped("0", 3, StopCause.ORDERED))
