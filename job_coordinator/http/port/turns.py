"""Answers a few requests at a time, from each network in turn.

SHELL. The job's own programs need no turn: the server handles their requests as they come. So a
check-in waits only for the few answers that are being made, however many other callers wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.port.connections import network_of

_AT_ONCE: Final = 4
_WAIT_S: Final = 30.0
"""How long a caller waits for its turn before it gets 503."""


class Turn:
    """The right to an answer now; a second ``end`` changes nothing."""

    def __init__(self, turns: Turns) -> None:
        self._turns: Turns | None = turns

    def end(self) -> None:
        """Pass the turn on once the event loop has run all callbacks that are ready now."""
        turns, self._turns = self._turns, None
        if turns is not None:
            asyncio.get_running_loop().call_soon(turns.pass_on)


_TURN: Final = web.RequestKey("turn", Turn)


def end_turn(request: web.Request) -> None:
    """End the request's turn: its answer is ready, and a slow reader needs no turn."""
    turn = request.get(_TURN)
    if turn is not None:
        turn.end()


class Turns:
    """The turns of one port; runs on one event loop."""

    def __init__(self) -> None:
        self._free = _AT_ONCE
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """{network: its callers, in order}, in the order of the networks' turns."""

    @asynccontextmanager
    async def one(self, request: web.Request) -> AsyncIterator[None]:
        """Wait for the request's turn, and hold it for the block.

        UnavailableError: too many other callers come before it.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(network_of(request.remote or ""))
        turn = request[_TURN] = Turn(self)
        try:
            yield
        finally:
            turn.end()

    async def _wait(self, network: str) -> None:
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, deque()).append(mine)
        try:
            async with asyncio.timeout(_WAIT_S):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                self.pass_on()  # this caller leaves as its turn comes
            elif network in self._waiting:
                with suppress(ValueError):
                    self._waiting[network].remove(mine)
            if isinstance(error, TimeoutError):
                raise UnavailableError(
                    f"too many requests without the job's token: no turn within {_WAIT_S:.0f} s; "
                    "ask again later"
                ) from None
            raise

    def pass_on(self) -> None:
        """Give the turn to the first caller of the next network, or keep it if no caller waits."""
        while self._waiting:
            network, callers = self._waiting.popitem(last=False)
            while callers:
                caller = callers.popleft()
                if not caller.done():
                    caller.set_result(None)
                    if callers:
                        self._waiting[network] = callers
                    return
        self._free += 1
