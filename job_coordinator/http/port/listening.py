"""A listening socket that counts its connections from the first byte on.

SHELL around ``connections``. This module accepts connections itself, for two reasons. A TLS
handshake that does not end holds a file before asyncio calls a protocol. And a server of asyncio
(CPython 3.11, ``Server._attach``) that closes between two turns loses the connections that it has
just accepted.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.port.connections import FIRST_MS, Connections
from homeport.job_coordinator.http.responses import error_without_route

_BACKLOG: Final = 4096
"""A client that connects while this many wait tries again only a second later."""

_AT_ONCE: Final = 16
_TURNS: Final = 8
"""The listener accepts ``_AT_ONCE`` connections, and the next ones ``_TURNS`` turns of the loop
later: it reads the first requests before it can close one of these connections for another."""

_LOOK_S: Final = 1.0
"""Between two looks for silent connections, and until a full process accepts again."""

_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_OPEN_FILES: Final = 16_384
"""A usual limit of a process is 1024 files, fewer than a large job has containers."""

_SEND_BUFFER_BYTES: Final = 256 * 1024
"""The kernel's buffer for one slow reader; by default it grows to megabytes."""


class Handler(web.RequestHandler):
    """aiohttp's protocol of one connection of a port."""

    __slots__ = ("_listener",)

    def __init__(self, listener: Listener, server: web.Server, **options: Any) -> None:  # noqa: ANN401 - the base's signature
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._listener = listener

    def asked(self) -> None:
        """Note that a whole request has come."""
        self._listener.connections.asked(self)

    def is_known(self) -> None:
        """Note that the connection has shown the job's token."""
        self._listener.connections.is_known(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Free the place of the connection."""
        self._listener.connections.left(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer invalid HTTP in the form of every error, with nothing from the request."""
        super().handle_error(request, status, exc, message)  # its line of the log
        found = HTTPStatus(status)
        return error_without_route(found, found.phrase)


class Listener:
    """One open port; it runs on one event loop.

    ``make`` returns the protocol of a new connection. ``port``: 0 for any free one. ``tls``: None:
    no TLS.

    OSError: the address is not available.
    """

    def __init__(
        self, make: Callable[[Listener], Handler], host: str, port: int, tls: ssl.SSLContext | None
    ) -> None:
        self.connections = Connections[Handler](_allowed_open_files())
        self._make = make
        self._tls = tls
        self._arriving: dict[Handler, asyncio.Task[None]] = {}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)  # noqa: FBT003 - the standard library's signature
        # Accepted sockets inherit it.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._accept)
        self._looking: asyncio.Handle = self._loop.call_later(_LOOK_S, self._look)
        self._resting: asyncio.Handle | None = None

    async def close(self) -> None:
        """Accept no more connections; accepted ones stay open."""
        self._looking.cancel()
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        if self._tls is not None:
            for task in self._arriving.values():
                task.cancel()
        await asyncio.gather(*self._arriving.values(), return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._full(error)
                return
            accepted.setblocking(False)  # noqa: FBT003 - as above
            handler = self._make(self)
            self._close(self.connections.came(handler, address[0], boot_ms()))
            task = self._loop.create_task(self._serve(handler, accepted))
            self._arriving[handler] = task
            task.add_done_callback(partial(self._arrived, handler, accepted))
        self._loop.remove_reader(self._socket)
        self._rest(_TURNS)

    def _rest(self, turns: int) -> None:
        if turns:
            self._resting = self._loop.call_soon(self._rest, turns - 1)
        else:
            self._loop.add_reader(self._socket, self._accept)

    async def _serve(self, handler: Handler, accepted: socket.socket) -> None:
        limit_s = None if self._tls is None else FIRST_MS / 1000
        with suppress(OSError):  # the client uses no TLS, or is gone
            await self._loop.connect_accepted_socket(
                lambda: handler, accepted, ssl=self._tls, ssl_handshake_timeout=limit_s
            )

    def _arrived(self, handler: Handler, accepted: socket.socket, _: asyncio.Task[None]) -> None:
        del self._arriving[handler]
        if handler.transport is None:
            self.connections.left(handler)
            accepted.close()

    def _full(self, error: OSError) -> None:
        """Close a stranger for its file; without one, accept nothing until the next look."""
        if error.errno not in _FULL:
            raise error
        oldest = self.connections.oldest()
        self._close(oldest)
        if oldest is None:
            self._loop.remove_reader(self._socket)

    def _look(self) -> None:
        self._loop.add_reader(self._socket, self._accept)
        for handler in self.connections.late(boot_ms()):
            self._close(handler)
        self._looking = self._loop.call_later(_LOOK_S, self._look)

    def _close(self, handler: Handler | None) -> None:
        if handler is None:
            return
        if handler.transport is not None:
            handler.transport.abort()
        elif handler in self._arriving:
            self._arriving[handler].cancel()


def _allowed_open_files() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
