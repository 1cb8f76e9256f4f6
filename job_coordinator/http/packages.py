"""``GET /v1/packages/<sha256>``: a package of the job's code, for its launchers alone.

SHELL. The code of a job is for no reader of its pages: the guard asks for the job's own token. Many
launchers may need one at once, so the package that was last sent is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from aiohttp import ETag, web

from homeport.job_coordinator.http.documents import Document
from homeport.job_coordinator.http.responses import DocumentSender, error_answer
from homeport.job_coordinator.model.job_package import is_package_name
from homeport.job_coordinator.model.json_values import shown

PACKAGE_ROUTE: Final = "/v1/packages/{name}"
_ZIP: Final = "application/zip"


class PackageRoutes:
    """To be used on the server's event loop.

    Args:
        read: the zip with that sha256; None where it is not there.
        sender: of the server.
    """

    def __init__(
        self, read: Callable[[str], Awaitable[bytes | None]], sender: DocumentSender
    ) -> None:
        self._read = read
        self._sender = sender
        self._lock = asyncio.Lock()
        self._last: Document | None = None

    def routes(self) -> list[web.RouteDef]:
        """What the server adds to its own."""
        return [web.get(PACKAGE_ROUTE, self._get)]

    async def _get(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        document = await self._document(name) if is_package_name(name) else None
        if document is None:
            return error_answer(HTTPStatus.NOT_FOUND, f"there is no package {shown(name)}")
        return await self._sender.answer(request, document, trusted=True)

    async def _document(self, name: str) -> Document | None:
        async with self._lock:
            last = self._last
            if last is not None and last.etag.value == name:
                return last
            data = await self._read(name)
            if data is None:
                return None
            self._last = Document((data,), ETag(name), gzip=False, content_type=_ZIP)
            return self._last
