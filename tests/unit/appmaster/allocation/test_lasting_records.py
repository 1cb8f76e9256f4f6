"""What a step leaves for the next driver besides permits: failure counts and the job's end."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    HostsObserved,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import (
    JobResult,
    WriteFailureCount,
    WriteJobEnd,
)
from homeport.job_coordinator.model.ids import ProcessorId
from tests.unit.appmaster.allocation.conftest import Machine, check_in, model, stopped, window_over

P0 = ProcessorId("0")


def test_a_step_that_charges_nothing_has_no_record(machine: Machine) -> None:
    """Nor does the first one, which takes over what earlier drivers have charged."""
    machine.feed(replace(model({"0": "a"}), failures={P0: ChargedFailures(1, 5)}))
    machine.feed(HostsObserved(()))
    assert machine.container("0").failures == 1
    assert machine.records == ()


def test_a_charged_and_a_forgiven_failure_are_recorded(machine: Machine) -> None:
    """Each with the count that it leads to; a second end of the window leaves nothing."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    charged = machine.decide(stopped("0", 1)).records
    machine.feed(check_in("r0", "a"))
    forgiven = machine.decide(window_over("0")).records
    assert (charged, forgiven) == ((WriteFailureCount(P0, 1),), (WriteFailureCount(P0, 0),))
    machine.stale(window_over("0"))


def test_an_end_is_recorded_once(machine: Machine) -> None:
    """When it is decided; a later wish for another end leaves nothing."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    decided = machine.decide(ShutdownRequested(diagnostics="why")).records
    assert decided == (WriteJobEnd(JobResult.KILLED, "why"),)
    machine.stale(ShutdownRequested("FAILED"))
