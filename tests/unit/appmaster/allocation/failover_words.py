"""Short words for what a failover of processor 0 writes and orders."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import standby_stop_timer
from homeport.appmaster.allocation.protocol.events import Event, FailoverStep
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    Instruction,
    Record,
    SetTimer,
    WriteFailover,
    WriteLocality,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import SETTINGS, ZERO, Machine, stopped

FIRST, SECOND = ProcessorId("0-0"), ProcessorId("0-1")
MADE_WAY = stopped("0-0", 1, StopCause.ORDERED, 143)
"""The first standby has stopped as ordered."""


def waits() -> tuple[Instruction, ...]:
    """The active waits for the stop of its standby."""
    return (SetTimer(standby_stop_timer(ZERO), SETTINGS.stop_timeout_ms),)


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
