"""The driver's side of the keeper: what it asks, and never on the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from homeport.appmaster.lease.keeper_link import KeeperLink
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.incarnation import Incarnation

_T = TypeVar("_T")

log = logging.getLogger("driver")


class KeeperClient:
    """One request at a time; the next request tries a keeper that was away again.

    ``url``: where launchers renew; None until the keeper has answered. ``due_ms``: as of the last
    answer, when the next lease can run out. ``fault``: why the last request had no answer; None: it
    had one.
    """

    def __init__(self, keeper: KeeperLink) -> None:
        self.url: str | None = None
        self.due_ms: int | None = None
        self.fault: str | None = None
        self._keeper = keeper
        self._over: set[Incarnation] = set()
        self._is_closed = False
        self._pool = ThreadPoolExecutor(1, "leases")

    async def revoked(self, live: Iterable[Incarnation]) -> Mapping[Incarnation, int | None]:
        """Those of ``live`` that have run out, each returned once (safety L1), in order.

        {incarnation: when the keeper renewed it last, on CLOCK_BOOTTIME; None: it never did}
        """
        asked = frozenset(live) - self._over
        report = await self._ask(partial(self._keeper.revoked, asked))
        if report is None:
            return {}
        self.url, self.due_ms = report.url, report.due_ms
        self._over.update(report.revoked)
        return {incarnation: report.renewed_ms.get(incarnation) for incarnation in report.revoked}

    async def grants(self, incarnation: Incarnation) -> bool:
        """Whether the keeper knows of a permit, as it must before the launcher does (safety L3)."""
        report = await self._ask(partial(self._keeper.register, incarnation))
        if report is None:
            return False
        self.url = report.url
        return incarnation not in report.revoked

    async def ended(self, incarnation: Incarnation) -> None:
        """The keeper knows that the incarnation has stopped, if it can be reached."""
        self._over.add(incarnation)
        await self._ask(partial(self._keeper.stopped, incarnation))

    def close(self) -> None:
        """No further request is sent; a caller that waits for an answer gets none, and goes on."""
        self._is_closed = True
        self._pool.shutdown(wait=False)

    async def _ask(self, call: Callable[[], _T]) -> _T | None:
        if self._is_closed:
            return None
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._put, call)
        except UnavailableError as e:
            log.warning("%s", e)
            self.fault = str(e)
            return None
        self.fault = None
        return answer

    def _put(self, call: Callable[[], _T]) -> _T | None:
        # What was in line at the closing is not cancelled: a launcher's report of its stop, which
        # may be what ended the job, would fail on the way.
        return None if self._is_closed else call()
