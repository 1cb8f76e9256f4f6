"""A listening socket that is taken away without losing whom it has just accepted.

SHELL. asyncio accepts in one turn of the loop and makes the transport in the next; a server that is
closed between the two drops the transport unclosed (CPython 3.11, ``Server._attach``), and whoever
was connecting waits for its time-out.
"""

from __future__ import annotations

import asyncio
import socket

from aiohttp import web

_TURNS = 2
"""Until the server knows of all that were accepted: the transport is made, then announced."""


async def listen(runner: web.AppRunner, host: str, port: int) -> socket.socket:
    """The runner serves at that address; OSError where it cannot be had."""
    listener = socket.create_server((host, port))
    listener.setblocking(False)  # noqa: FBT003 - the standard library's signature
    await web.SockSite(runner, listener).start()
    return listener


async def stop_accepting(listener: socket.socket) -> None:
    """Nobody is accepted any more, and the runner knows all that were: it can be cleaned up."""
    asyncio.get_running_loop().remove_reader(listener)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
