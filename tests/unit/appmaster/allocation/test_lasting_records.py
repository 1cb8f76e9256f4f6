"""What a step leaves for the next driver besides permits: failure counts and the job's end."""

from __future__ import annotations

from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from homeport.appmaster.allocation.protocol.instructions import JobResult, WriteJobEnd
from homeport.job_coordinator.model.ids import ProcessorId
from tests.unit.appmaster.allocation.conftest import Machine

P0 = ProcessorId("0")


def test_an_end_is_recorded_once(machine: Machine) -> None:
    """When it is decided; a later wish for another end leaves nothing."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    decided = machine.decide(ShutdownRequested(diagnostics="why")).records
    assert decided == (WriteJobEnd(JobResult.KILLED, "why"),)
    machine.stale(ShutdownRequested("FAILED"))
