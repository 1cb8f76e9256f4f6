"""The allocator's timers, held by the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from homeport.appmaster.allocation.protocol.events import Timer, TimerFired
from homeport.config.config import INT_MAX


class Timers:
    """To be used on one event loop; the end of a timer is handed to ``post``."""

    def __init__(self, post: Callable[[TimerFired], None]) -> None:
        self._post = post
        self._handles: dict[Timer, asyncio.TimerHandle] = {}

    def set(self, timer: Timer, delay_ms: int) -> None:
        """It ends in so many ms, and not when it would have before.

        At once where ``delay_ms`` is below 0. The loop reckons in floats, which do not take every
        whole number: what is longer than 24 days ends after these.
        """
        self.cancel(timer)
        loop = asyncio.get_running_loop()
        delay_s = max(0, min(delay_ms, INT_MAX)) / 1000
        self._handles[timer] = loop.call_later(delay_s, self._fire, timer)

    def cancel(self, timer: Timer) -> None:
        """It does not end any more."""
        handle = self._handles.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, timer: Timer) -> None:
        self._handles.pop(timer, None)
        self._post(TimerFired(timer))
