"""What a driver takes over from the one before it: charged failures, and an end under way."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.job_state.failure import FailureKind
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import ChargedFailures, JobModelPublished
from homeport.job_coordinator.model.ids import ProcessorId
from tests.unit.appmaster.allocation.conftest import MachineWith, live, model, window_over

P0 = ProcessorId("0")


def charged(count: int, left_ms: int = 7000) -> JobModelPublished:
    """The model of two processors, the first of which has been charged so much."""
    published = model({"0": "a", "1": "b"})
    return replace(published, failures={P0: ChargedFailures(count, left_ms)})


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
