"""The forms of an answer: JSON, an error of one line, a document; and the body of a request.

SHELL.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from homeport.job_coordinator.http.documents import JSON, Document
from homeport.job_coordinator.http.port.turns import end_turn
from homeport.job_coordinator.model.json_values import compact_json, parse_object

_PIECE_BYTES: Final = 32 * 1024
"""Memory of this process that one stalled reader can hold; the rest of a document is shared."""

_STALL_S: Final = 30.0
"""How long a reader may read nothing at all."""

_BODY_S: Final = 30.0
"""How long a request may take until its body has arrived."""

_SENDERS: Final = 4
"""How many readers have their sockets filled before other requests get an answer."""

_SERVER: Final = "homeport"
_GZIP: Final = re.compile(r"\s*(x-)?gzip\s*(;\s*q=(?P<quality>[\d.]+)\s*)?", re.ASCII)


SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer that does not set them itself."""


async def put_security_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Keep browsers from running, framing or embedding the answer; hide the version."""
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = _SERVER


def json_answer(body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return 200 with that JSON."""
    return web.Response(body=body, content_type=JSON, headers=headers)


def error_answer(
    status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return ``{"error": ...}`` with the message as one line."""
    line = " ".join(message.split())
    body = compact_json({"error": line})
    return web.Response(status=status, body=body, content_type=JSON, headers=headers)


def error_without_route(status: HTTPStatus, message: str) -> web.Response:
    """Return the error for a request that reaches no route; it closes the connection."""
    response = error_answer(status, message, {**SECURITY_HEADERS, "Server": _SERVER})
    response.force_close()
    return response


async def request_body(request: web.Request) -> dict[str, Any]:
    """Return the JSON object in the body; WireError where the body is no JSON object."""
    try:
        async with asyncio.timeout(_BODY_S):
            return parse_object(await request.read(), "the body")
    except TimeoutError:
        raise web.HTTPRequestTimeout from None


def takes_gzip(request: web.Request) -> bool:
    """Return whether the caller accepts an answer that is compressed by gzip."""
    for item in ",".join(request.headers.getall("Accept-Encoding", ())).lower().split(","):
        match = _GZIP.fullmatch(item)
        if match is not None:
            return (match["quality"] or "1").strip("0.") != ""
    return False


class DocumentSender:
    """Sends documents as fast as they are read, a little to each reader at a time.

    Small requests get their answers in between. Without turns, a thousand readers of megabytes
    would each get hundreds of kilobytes before the server looks at a check-in.
    """

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_SENDERS)

    async def answer(
        self, request: web.Request, document: Document, *, trusted: bool
    ) -> web.StreamResponse:
        """Send 200 with the document, or 304 if the caller has it already.

        Close the connection of a reader that reads nothing for half a minute.
        """
        headers = {
            "Cache-Control": "private, no-cache" if trusted else "no-cache",
            "Vary": "Authorization, Accept-Encoding",
            "Content-Type": document.content_type,
        }
        response: web.StreamResponse
        if any(known.value in {document.etag.value, "*"} for known in request.if_none_match or ()):
            del headers["Content-Type"]
            response = web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
            response.etag = document.etag
            return response
        if document.gzip:
            headers["Content-Encoding"] = "gzip"
        if document.size <= _PIECE_BYTES:
            response = web.Response(body=b"".join(document.parts), headers=headers)
            response.etag = document.etag
            return response
        response = web.StreamResponse(headers=headers)
        response.content_length = document.size
        response.etag = document.etag
        if request.method != "HEAD":
            await self._send(request, response, document)
        return response

    async def _send(
        self, request: web.Request, response: web.StreamResponse, document: Document
    ) -> None:
        end_turn(request)
        transport = request.transport
        writer = await response.prepare(request)
        if transport is None or writer is None:
            return  # the caller is gone
        # The transport keeps the bytes that the socket does not take at once, and reports from the
        # first one on that it is full.
        transport.set_write_buffer_limits(high=0)
        pieces = _pieces(document)
        try:
            while True:
                async with self._turns:
                    if not await _fill(transport, writer, pieces):
                        return
                async with asyncio.timeout(_STALL_S):
                    await writer.drain()
        except (ConnectionError, TimeoutError):
            transport.abort()


async def _fill(
    transport: asyncio.WriteTransport, writer: AbstractStreamWriter, pieces: Iterator[memoryview]
) -> bool:
    for piece in pieces:
        # A wait here would keep the turn. The abstract writer does not name the argument.
        await writer.write(piece, drain=False)  # type: ignore[call-arg]  # as above
        if transport.get_write_buffer_size():
            return True
    return False


def _pieces(document: Document) -> Iterator[memoryview]:
    for part in document.parts:
        view = memoryview(part)
        for start in range(0, len(view), _PIECE_BYTES):
            yield view[start : start + _PIECE_BYTES]
