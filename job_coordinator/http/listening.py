"""A listening socket for thousands at once; closing it loses no connection just accepted.

SHELL. asyncio accepts in one turn of the loop and makes the transport in the next; a server that is
closed between the two drops the transport unclosed (CPython 3.11, ``Server._attach``), and the
client waits for its time-out.
"""

from __future__ import annotations

import asyncio
import logging
import re
import resource
import socket
import ssl
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.responses import SECURITY_HEADERS, error_answer

_TURNS = 2
"""Until the server knows of all that were accepted: the transport is made, then announced."""

_BACKLOG: Final = 4096
"""A client that connects while so many wait tries again only a second later."""

_OPEN_FILES: Final = 16_384
"""A usual limit of a process is 1024 files, fewer than a large job has containers."""

_SEND_BUFFER_BYTES: Final = 256 * 1024
"""What the kernel keeps for one slow reader; left to itself it would be megabytes."""


_LINES: Final = 60
_MINUTE_MS: Final = 60_000
_QUOTE: Final = re.compile(r"""\bb?['"]""")
"""How aiohttp begins to quote what was sent; the names of headers that it quotes go too."""


class OneLineLog(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's log of what is no HTTP, or beyond its limits: a line each instead of a traceback.

    Any program that reaches the port can send such; the log must stay readable. So a line has none
    of what was sent, which may be a token with one character too many, and there are at most
    ``_LINES`` a minute.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._since_ms: int | None = None
        self._lines = 0

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - the base's signature
        """Logged, unless there were too many within the minute; the last one says so."""
        now_ms = boot_ms()
        if self._since_ms is None or now_ms - self._since_ms >= _MINUTE_MS:
            self._since_ms, self._lines = now_ms, 0
        self._lines += 1
        if self._lines <= _LINES:
            super().log(level, msg, *args, **kwargs)
        if self._lines == _LINES:
            self.logger.warning("further requests that are no HTTP are not logged for a minute")

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """The message with what the exception says, if there is one."""
        error = kwargs.pop("exc_info", None)
        # A message is formatted with its arguments later.
        reason = _QUOTE.split(" ".join(str(error or "").split()), maxsplit=1)[0]
        reason = reason.rstrip(" :").replace("%", "%%")
        return f"{msg}: {reason}" if reason else str(msg), kwargs


def refuse_odd_expectations(runner: web.AppRunner) -> None:
    """A request that expects anything but ``100-continue`` gets 417; the runner is set up.

    aiohttp (3.14) answers these before any middleware, and fails at a value that is not UTF-8.
    """
    server = runner.server
    if not isinstance(server, web.Server):
        raise TypeError("the runner is not set up")
    inner = server.request_handler

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        expected = request.headers.get("Expect", "100-continue")
        if expected.lower() != "100-continue":
            text = "no expectation but 100-continue is met"
            return error_answer(HTTPStatus.EXPECTATION_FAILED, text, SECURITY_HEADERS)
        return await inner(request)

    server.request_handler = handle


async def listen(
    runner: web.AppRunner, host: str, port: int, tls: ssl.SSLContext | None = None
) -> socket.socket:
    """The runner serves at that address, with TLS if it is given; OSError where it cannot be had.

    The process may have as many connections open as its hard limit allows, up to 16,384.
    """
    _allow_open_files()
    listener = socket.create_server((host, port), backlog=_BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 - the standard library's signature
    # What is accepted inherits it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    await web.SockSite(runner, listener, backlog=_BACKLOG, ssl_context=tls).start()
    return listener


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def stop_accepting(listener: socket.socket) -> None:
    """No connection is accepted any more; the runner knows all of them and can be cleaned up."""
    asyncio.get_running_loop().remove_reader(listener)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
