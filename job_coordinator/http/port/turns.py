"""Lets few callers be answered at a time, those of each address in turn.

SHELL. For all but the job's own programs: what these say is looked at as it comes, and however many
others ask, a check-in waits for the answers of a few of them.
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
"""How long a caller waits for its turn; then it gets 503."""


class Turn:
    """The right to be answered now; to end it again changes nothing."""

    def __init__(self, turns: Turns) -> None:
        self._turns: Turns | None = turns

    def end(self) -> None:
        """Let the next one be answered, when the loop has looked at all that has come."""
        turns, self._turns = self._turns, None
        if turns is not None:
            asyncio.get_running_loop().call_soon(turns.pass_on)


_TURN: Final = web.RequestKey("turn", Turn)


def end_turn(request: web.Request) -> None:
    """End its turn: the answer is only to be sent, which may take as long as its reader likes."""
    turn = request.get(_TURN)
    if turn is not None:
        turn.end()


class Turns:
    """To be used on one event loop."""

    def __init__(self) -> None:
        self._free = _AT_ONCE
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """{network: its callers, in order}, the network whose turn is next first."""

    @asynccontextmanager
    async def one(self, request: web.Request) -> AsyncIterator[None]:
        """Wait until the request may be answered.

        Raises:
            UnavailableError: too many others are before it.
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
                self.pass_on()  # it came too late
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
        """Give the turn to the caller that is next, of the address that is next."""
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
