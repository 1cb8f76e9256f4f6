"""A listening socket for thousands at once; closing it loses no connection just accepted.

SHELL. asyncio accepts in one turn of the loop and makes the transport in the next; a server that is
closed between the two drops the transport unclosed (CPython 3.11, ``Server._attach``), and the
client waits for its time-out.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import MutableMapping
from typing import Any, Final

from aiohttp import web

_TURNS = 2
"""Until the server knows of all that were accepted: the transport is made, then announced."""

_BACKLOG: Final = 4096
"""A client that connects while so many wait tries again only a second later."""

_OPEN_FILES: Final = 16_384
"""A usual limit of a process is 1024 files, fewer than a large job has containers."""

_SEND_BUFFER_BYTES: Final = 256 * 1024
"""What the kernel keeps for one slow reader; left to itself it would be megabytes."""


class OneLineLog(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's log of what is no HTTP, or beyond its limits: a line each instead of a traceback.

    Any program that reaches the port can send such; the log must stay readable.
    """

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """The message with what the exception says, if there is one."""
        error = kwargs.pop("exc_info", None)
        # A message is formatted with its arguments later.
        reason = " ".join(str(error or "").split()).replace("%", "%%")
        return f"{msg}: {reason}" if reason else str(msg), kwargs


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
