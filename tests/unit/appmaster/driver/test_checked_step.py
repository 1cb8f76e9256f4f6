"""A step that breaks an invariant says what led to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import AllocatorState, initial_state
from homeport.appmaster.allocation.protocol.events import (
    ContainerStopped,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
)
from homeport.appmaster.driver.driver import checked_step
from homeport.appmaster.report.event_log import EventLog
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import SETTINGS

P0, P1, NM1, R1 = ProcessorId("0"), ProcessorId("1"), Host("nm1"), ResourceId("r1")


def deployed(events: EventLog, *, p1: Host | None) -> AllocatorState:
    """Processor 0 is permitted to start on nm1, and processor 1 where its home is there."""
    state = initial_state(SETTINGS)
    for event in (
        HostsObserved((NM1,)),
        JobModelPublished(1, {P0: NM1, P1: p1}),
        LauncherCheckedIn(R1, NM1, None, RequestId(1)),
        *([LauncherCheckedIn(ResourceId("r2"), NM1, None, RequestId(2))] if p1 else ()),
    ):
        decision = checked_step(state, event, events)
        events.add(event, decision, decision.instructions)
        state = decision.state
    return state


def test_a_violation_has_the_last_events_of_its_processors() -> None:
    """Those of the others are left out; of an event that names no processor all are shown."""
    events = EventLog(lambda: 7)
    with pytest.raises(InvariantViolation) as raised:
        checked_step(deployed(events, p1=None), JobModelPublished(0, {P0: NM1, P1: None}), events)
    said = str(raised.value)
    assert "the last events of the job:" in said
    assert "Processor 0 is permitted to start on nm1" in said


def test_a_violation_about_one_processor_leaves_the_others_out() -> None:
    """A container that runs without a launcher cannot stop."""
    events = EventLog(lambda: 7)
    state = deployed(events, p1=NM1)
    broken = replace(state, resources=type(state.resources)())
    with pytest.raises(InvariantViolation, match="0@1 runs without a resource") as raised:
        checked_step(broken, ContainerStopped(Incarnation(P0, 1), StopCause.FAILED, 1), events)
    said = str(raised.value)
    assert "the last events of 0:" in said
    assert "Processor 0 is permitted to start on nm1" in said
    assert "Processor 1 is permitted" not in said
