"""An ensemble of three real ZooKeeper servers for a test, which does not outlive it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from zookeeper_process import DEADLINE_S, ZooKeeperServer, free_port

from homeport.job_coordinator.parent_death import die_with_parent

_OPTIONS = (
    "-Dreadonlymode.enabled=true",
    # a server that looks for the others asks again each second, not after up to a minute
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
)
_LISTENS_S = 3.0
"""A server that was elected listens to the others by then."""
_POLL_S = 0.02
LEADER, FOLLOWER, READ_ONLY = "leader", "follower", "read-only"


class Link:
    """How one server reaches another, if that leads; ``close`` in any case.

    When it is cut nothing comes through any more, and both ends stay connected.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._is_open = threading.Event()
        self._is_open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Nothing comes through."""
        self._is_open.clear()

    def close(self) -> None:
        """No connection is left."""
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._is_open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed, or the other end does not listen
            while True:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        """Connect it to the other end, which may begin to listen a moment later.

        A server that connects by itself is refused until then, and tries again. One that gets a
        connection which then ends gives its leader up, and a new one is found after ``initLimit``.
        """
        deadline = time.monotonic() + _LISTENS_S
        while (far := self._reached()) is None:
            if time.monotonic() > deadline:
                near.close()
                return
            time.sleep(_POLL_S)  # a server that listens gives no sign of it
        self._sockets.append(far)
        for ends in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _reached(self) -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            return None

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._is_open.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Ensemble:
    """Three servers on loopback; one without a quorum is read-only. ``close`` in any case.

    ``sync_limit``: so many ticks a server that follows goes on without a word of its leader.
    """

    def __init__(self, folder: Path, sync_limit: int = 20) -> None:
        self.servers: list[ZooKeeperServer] = []
        self._sync_limit = sync_limit
        self._ports: dict[int, tuple[int, int]] = {}
        self._links: dict[tuple[int, int], Link] = {}
        self._made: list[Link] = []
        self._settings: list[list[str]] = [[], [], []]
        self._link(range(3))
        first = partial(die_with_parent, os.getpid())
        for number, settings in enumerate(self._settings, start=1):
            own = folder / f"zookeeper-{number}"
            (own / "data").mkdir(parents=True)
            (own / "data" / "myid").write_text(f"{number}\n", encoding="utf-8")
            self.servers.append(ZooKeeperServer(own, None, first, settings, _OPTIONS))

    def start(self) -> None:
        """One leads and two follow."""
        for server in self.servers:
            server.start()
        self.until(LEADER, FOLLOWER, FOLLOWER)

    @property
    def connect(self) -> str:
        """What clients connect to: any of the three."""
        return ",".join(server.connect for server in self.servers)

    @property
    def leader(self) -> ZooKeeperServer:
        """The server that leads."""
        (found,) = [server for server in self.servers if mode(server) == LEADER]
        return found

    def until(self, *modes: str) -> None:
        """So many servers have these modes; the others have none."""
        deadline = time.monotonic() + DEADLINE_S
        pause = threading.Event()
        while (found := sorted(filter(None, map(mode, self.servers)))) != sorted(modes):
            logs = "\n".join(server.log.read_text("utf-8")[-4000:] for server in self.servers)
            assert time.monotonic() < deadline, f"{found}\n{logs}"
            pause.wait(0.05)

    def part_from(self, lonely: ZooKeeperServer) -> None:
        """The two others go on together, and none of them and ``lonely`` reach each other.

        They start again, and meet at ports that ``lonely`` does not know; it loses its quorum.
        """
        others = [server for server in self.servers if server is not lonely]
        for server in others:
            server.kill()
        self._link([self.servers.index(server) for server in others])
        for server in others:
            server.start()
        self.until(LEADER, FOLLOWER, READ_ONLY)

    def cut_off(self, lonely: ZooKeeperServer) -> None:
        """A server that follows, and its leader, hear nothing of each other from now on.

        Neither knows it before its limit is over; the server goes on to answer its clients.
        """
        self._links[self.servers.index(lonely), self.servers.index(self.leader)].cut()

    def join(self, lonely: ZooKeeperServer) -> None:
        """It starts again, and follows the two others."""
        lonely.kill()
        number = self.servers.index(lonely)
        self._set(number)
        lonely.start()
        self.until(LEADER, FOLLOWER, FOLLOWER)

    def close(self) -> None:
        """No server is left."""
        for server in self.servers:
            server.kill()
        for link in self._made:
            link.close()

    def _link(self, numbers: Sequence[int]) -> None:
        # The others are heard of at once, as a connection breaks; these limits only bound a start.
        self._ports = {n: (free_port(), free_port()) for n in range(3)}
        for number in numbers:
            self._set(number)

    def _set(self, number: int) -> None:
        lines = ["initLimit=100", f"syncLimit={self._sync_limit}"]
        for other, (port, election) in self._ports.items():
            there = port
            if other != number:
                link = Link(port)
                self._made.append(link)
                self._links[number, other] = link
                there = link.port
            lines.append(f"server.{other + 1}=127.0.0.1:{there}:{election}")
        self._settings[number][:] = lines


def mode(server: ZooKeeperServer) -> str:
    """What the server is in its ensemble; "": it does not serve."""
    try:
        with socket.create_connection(("127.0.0.1", server.port), 1) as connection:
            connection.sendall(b"srvr")
            found = b"".join(iter(partial(connection.recv, 4096), b"")).decode()
    except OSError:
        return ""
    return found.partition("Mode: ")[2].partition("\n")[0]


@contextmanager
def zookeeper_ensemble(folder: Path, sync_limit: int = 20) -> Iterator[Ensemble]:
    """An ensemble for a block, one of whose servers leads; afterwards it is gone."""
    made = Ensemble(folder, sync_limit)
    try:
        made.start()
        yield made
    finally:
        made.close()
