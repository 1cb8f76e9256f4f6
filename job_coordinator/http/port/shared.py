"""Makes an answer once, and gives it to all callers that request it within about a second.

SHELL. Only callers without a token share answers; each caller with a token gets a new one.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

from aiohttp import web

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.callers import Role
from homeport.job_coordinator.http.documents import JSON, Document, document_of
from homeport.job_coordinator.http.guard import caller
from homeport.job_coordinator.http.responses import DocumentSender, takes_gzip

_FRESH_MS: Final = 1_000
_TIMES: Final = 4
"""Keep a slow answer this many times as long as it took, to leave time for other work."""

_KEPT: Final = 64
"""The greatest number of answers to keep: each query of a request has its own."""

T = TypeVar("T")
_MakeBody = Callable[[], bytes | Awaitable[bytes]]


class Shared:
    """Shares results among callers on one event loop; makes a failed one again when next called."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[asyncio.Future[Any], int]] = OrderedDict()
        """{what: (result, end of sharing in ms)}; callers always share a result not yet done."""

    async def get(self, what: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``make``, called now or for an earlier caller."""
        found, until_ms = self._made.get(what, (None, 0))
        if found is None or (found.done() and until_ms <= boot_ms()):
            found = asyncio.ensure_future(self._make(what, make))
            self._made[what] = found, 0
            self._made.move_to_end(what)
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        # A caller that disconnects does not cancel the work: others may wait for it.
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
    """Answers requests, from ``Shared`` where the caller has no token; for one event loop."""

    def __init__(self, sender: DocumentSender) -> None:
        self._sender = sender
        self._shared = Shared()

    def route(self, path: str, make: _MakeBody, content_type: str = JSON) -> web.RouteDef:
        """Return the GET route of a body that is the same for all callers."""

        async def get(request: web.Request) -> web.StreamResponse:
            return await self.answer(request, path, make, content_type)

        return web.get(path, get)

    async def answer(
        self, request: web.Request, what: Hashable, make: _MakeBody, content_type: str = JSON
    ) -> web.StreamResponse:
        """Answer with the body from ``make``; ``what``: a key with all that the body depends on."""
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
