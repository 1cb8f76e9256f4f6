"""The network between launchers, containers and the AM: servers, and lost messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from homeport.config.errors import HomeportError, UnavailableError
from tests.unit.world.clock import Clock, Process


@dataclass
class Request:
    """One message on its way, and what became of it."""

    words: str
    handle: Callable[[], Any]
    is_done: bool = False
    answer: Any = None
    error: HomeportError | None = None


@dataclass
class Server:
    """The server of one address: the process that listens, and what waits there for it."""

    process: Process
    inbox: deque[Request] = field(default_factory=deque)
    backend: Any = None


@dataclass
class Links:
    """The network between launchers, containers and the AM.

    ``cut``: pairs (from, to) of hosts or processes, by name, "*" for all, between which messages
    are lost, one way.
    """

    clock: Clock
    servers: dict[str, Server] = field(default_factory=dict)
    cut: set[tuple[str, str]] = field(default_factory=set)

    def isolate(self, name: str) -> None:
        """Nothing comes from there and nothing gets there."""
        self.cut |= {(name, "*"), ("*", name)}

    def mend(self) -> None:
        """Every message arrives again."""
        self.cut.clear()

    def call(self, url: str, words: str, act: Callable[[Any], Any], timeout_s: float) -> Any:  # noqa: ANN401 - any answer
        """What ``act`` on the server's backend leads to.

        A request that is not answered in time may still be carried out, later.

        Raises:
            UnavailableError: no process listens there, or no answer came in time.
        """
        clock = self.clock
        here = clock.current.process if clock.current else None
        clock.point(words)
        clock.sleep(1)
        end_ms = clock.now_ms + timeout_s * 1000
        server = self.servers.get(url)
        if server is None or not server.process.is_alive:
            raise UnavailableError(f"{words}: no process listens at {url}")
        if not self._passes(here, server.process):
            clock.sleep(timeout_s * 1000)
            raise UnavailableError(f"{words}: {url} is not reached")
        request = Request(words, lambda: act(server.backend))
        server.inbox.append(request)
        clock.wait_for(
            lambda: request.is_done or not server.process.is_alive, end_ms - clock.now_ms
        )
        if request.is_done and not self._passes(server.process, here):
            clock.sleep(max(0, end_ms - clock.now_ms))
            raise UnavailableError(f"{words}: the answer is lost")
        if not request.is_done:
            raise UnavailableError(f"{words}: {url} does not answer")
        clock.sleep(1)
        clock.point(f"{words} answered")
        if request.error is not None:
            raise request.error
        return request.answer

    def _passes(self, source: Process | None, target: Process | None) -> bool:
        sources, targets = _names(source), _names(target)
        return not any(a in sources and b in targets for a, b in self.cut)


def _names(process: Process | None) -> set[str]:
    return {"*"} if process is None else {"*", process.name, process.host}
