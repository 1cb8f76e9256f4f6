"""What is made for one caller and given to all that ask for the same within about a second.

SHELL. Callers without a token get that; a program of the job, or an operator, gets what is now.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

from aiohttp import web

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.access import Role
from homeport.job_coordinator.http.documents import JSON, Document, document_of
from homeport.job_coordinator.http.guard import caller
from homeport.job_coordinator.http.responses import DocumentSender, takes_gzip

_FRESH_MS: Final = 1_000
_TIMES: Final = 4
"""What takes long to make is kept for this many times as long, so that little else suffers."""

_KEPT: Final = 64
"""Different answers, as of requests with queries."""

T = TypeVar("T")


class Shared:
    """To be used on one event loop. What failed is made again for the next caller."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[asyncio.Future[Any], int]] = OrderedDict()
        """{what: it, and until when it is given}; while it is made, for ever."""

    async def get(self, what: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return what ``make`` has made for this caller, or for an earlier one."""
        found, until_ms = self._made.get(what, (None, 0))
        if found is None or (found.done() and until_ms <= boot_ms()):
            found = asyncio.ensure_future(self._make(what, make))
            self._made[what] = found, 0
            self._made.move_to_end(what)
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        # A caller that goes leaves the work to the others.
        made: T = await asyncio.shield(found)
        return made

    async def _make(self, what: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        since_ms = boot_ms()
        made = await make()
        now_ms = boot_ms()
        entry = self._made.get(what)
        if entry is not None:
            fresh_ms = max(_FRESH_MS, _TIMES * (now_ms - since_ms))
            self._made[what] = entry[0], now_ms + fresh_ms
        return made


class SharedAnswers:
    """To be used on one event loop.

    Args:
        sender: sends them.
    """

    def __init__(self, sender: DocumentSender) -> None:
        self._sender = sender
        self._shared = Shared()

    async def answer(
        self,
        request: web.Request,
        what: Hashable,
        make: Callable[[], bytes | Awaitable[bytes]],
        content_type: str = JSON,
    ) -> web.StreamResponse:
        """Answer with what ``make`` makes; ``what``: its name, with all that decides it."""
        role, is_gzip = caller(request).role, takes_gzip(request)
        is_shared = role is Role.NONE

        async def body() -> bytes:
            made = make()
            return made if isinstance(made, bytes) else await made

        async def document() -> Document:
            found = await (self._shared.get(what, body) if is_shared else body())
            return await document_of(found, gzip=is_gzip, content_type=content_type)

        made = self._shared.get((what, is_gzip), document) if is_shared else document()
        return await self._sender.answer(request, await made, trusted=role is Role.JOB)
