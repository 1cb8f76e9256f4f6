"""An ensemble of three real ZooKeeper servers for a test, which does not outlive it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from homeport.container.host.parent_death import die_with_parent
from homeport.local_cluster.zookeeper import DEADLINE_S, ZooKeeperServer, free_port

_OPTIONS = (
    "-Dreadonlymode.enabled=true",
    # a server that looks for the others asks again each second, not after up to a minute
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
)
LEADER, FOLLOWER, READ_ONLY = "leader", "follower", "read-only"


class Ensemble:
    """Three servers on loopback; one without a quorum is read-only. ``close`` in any case."""

    def __init__(self, folder: Path) -> None:
        self.servers: list[ZooKeeperServer] = []
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

    def join(self, lonely: ZooKeeperServer) -> None:
        """It starts again, and follows the two others."""
        lonely.kill()
        number = self.servers.index(lonely)
        self._settings[number][:] = self._settings[number - 1]
        lonely.start()
        self.until(LEADER, FOLLOWER, FOLLOWER)

    def close(self) -> None:
        """No server is left."""
        for server in self.servers:
            server.kill()

    def _link(self, numbers: Sequence[int]) -> None:
        """These servers meet at new ports of all three when they start next."""
        # The others are heard of at once, as a connection breaks; these limits only bound a start.
        settings = ["initLimit=100", "syncLimit=20"]
        settings += [f"server.{n}=127.0.0.1:{free_port()}:{free_port()}" for n in (1, 2, 3)]
        for number in numbers:
            self._settings[number][:] = settings


def mode(server: ZooKeeperServer) -> str:
    """What the server is in its ensemble; "": it does not serve."""
    try:
        with socket.create_connection(("127.0.0.1", server.port), 1) as connection:
            connection.sendall(b"srvr")
            said = b"".join(iter(partial(connection.recv, 4096), b"")).decode()
    except OSError:
        return ""
    return said.partition("Mode: ")[2].partition("\n")[0]


@contextmanager
def zookeeper_ensemble(folder: Path) -> Iterator[Ensemble]:
    """An ensemble for a block, one of whose servers leads; afterwards it is gone."""
    made = Ensemble(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
