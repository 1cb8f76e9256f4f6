"""The allocator's timers, on a running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from homeport.appmaster.allocation.job_state.state import expiry_timer
from homeport.appmaster.allocation.protocol.events import Timer, TimerFired
from homeport.appmaster.driver.driver import Timers
from homeport.job_coordinator.model.ids import RequestId

TIMER = expiry_timer(RequestId(1))


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
