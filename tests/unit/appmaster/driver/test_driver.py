"""The driver's timers, and a step that breaks an invariant: it says what led to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import AllocatorState, initial_state
from homeport.appmaster.allocation.protocol.events import (
    ContainerStopped,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.driver.driver import Timers, checked_step
from homeport.appmaster.report.event_log import EventLog
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import SETTINGS

TIMER = Timer(TimerKind.REQUEST_EXPIRY, RequestId(1))


@pytest.mark.parametrize("delay_ms", [0, -1, -(10**400)], ids=["now", "before", "ever"])
async def test_a_due_timer_ends_at_once(delay_ms: int) -> None:
    """Also what was due before."""
    fired: asyncio.Queue[TimerFired] = asyncio.Queue()
    Timers(fired.put_nowait).set(TIMER, delay_ms)
    assert await fired.get() == TimerFired(TIMER)


@pytest.mark.parametrize("power", [31, 63, 1_300])
async def test_no_delay_is_too_long_for_the_loop(
    power: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in 24 days at the latest; a cancelled one never does."""
    loop = asyncio.get_running_loop()
    call_later, handles = loop.call_later, list[asyncio.TimerHandle]()

    def heard(delay_s: float, callback: Callable[..., None], *rest: Timer) -> object:
        handles.append(call_later(delay_s, callback, *rest))
        return handles[-1]

    monkeypatch.setattr(loop, "call_later", heard)
    timers = Timers(lambda _: None)
    timers.set(TIMER, 2**power)
    assert handles[0].when() <= loop.time() + 2**31 / 1000
    timers.cancel(TIMER)
    assert handles[0].cancelled()


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
    message = str(raised.value)
    assert "the last events of the job:" in message
    assert "Processor 0 is permitted to start on nm1" in message


def test_a_violation_about_one_processor_leaves_the_others_out() -> None:
    """A container that runs without a launcher cannot stop."""
    events = EventLog(lambda: 7)
    state = deployed(events, p1=NM1)
    broken = replace(state, resources=type(state.resources)())
    with pytest.raises(InvariantViolation, match="0@1 runs without a resource") as raised:
        checked_step(broken, ContainerStopped(Incarnation(P0, 1), StopCause.FAILED, 1), events)
    message = str(raised.value)
    assert "the last events of 0:" in message
    assert "Processor 0 is permitted to start on nm1" in message
    assert "Processor 1 is permitted" not in message
