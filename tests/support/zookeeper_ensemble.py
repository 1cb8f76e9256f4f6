"""Three real ZooKeeper servers that elect a leader."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from homeport.container.host.parent_death import die_with_parent
from local_cluster.zookeeper import ZooKeeperServer

LIMIT_S = 60.0
_READ_ONLY = "-Dreadonlymode.enabled=true"


class Ensemble:
    """The servers, by number. A server without a majority serves what is only read."""

    def __init__(self, folder: Path) -> None:
        with _ports(6) as ports:
            peers = [f"127.0.0.1:{ports[n]}:{ports[n + 3]}" for n in range(3)]
        more = (
            *(f"server.{n + 1}={peer};" for n, peer in enumerate(peers)),
            *("initLimit=20", "syncLimit=5", "4lw.commands.whitelist=srvr"),
        )
        more = tuple(line.rstrip(";") for line in more)
        self.servers = []
        for number in range(3):
            own = folder / str(number + 1)
            (own / "data").mkdir(parents=True)
            (own / "data" / "myid").write_text(f"{number + 1}\n", encoding="ascii")
            first = partial(die_with_parent, os.getpid())
            self.servers.append(ZooKeeperServer(own, None, first, more, (_READ_ONLY,)))

    @property
    def connect(self) -> str:
        """What clients connect to."""
        return ",".join(server.connect for server in self.servers)

    def start(self) -> None:
        """All answer, and one leads."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(ZooKeeperServer.start, self.servers))
        self.leader()

    def leader(self) -> ZooKeeperServer:
        """The server that leads, as soon as one does."""
        deadline = time.monotonic() + LIMIT_S
        pause = threading.Event()
        while time.monotonic() < deadline:
            for server in self.servers:
                if self.mode(server) == "leader":
                    return server
            pause.wait(0.1)
        raise AssertionError([self.mode(server) for server in self.servers])

    @staticmethod
    def mode(server: ZooKeeperServer) -> str:
        """What the server is: leader, follower, read-only; "": it does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", server.port), 2) as link:
                link.sendall(b"srvr")
                link.settimeout(2)
                text = b""
                while chunk := link.recv(4096):
                    text += chunk
        except OSError:
            return ""
        lines = text.decode().splitlines()
        return next((x.removeprefix("Mode: ") for x in lines if x.startswith("Mode: ")), "")

    def close(self) -> None:
        """None is left."""
        for server in self.servers:
            server.kill()


@contextmanager
def ensemble_of_three(folder: Path) -> Iterator[Ensemble]:
    """The servers for a block; afterwards they are gone."""
    made = Ensemble(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()


@contextmanager
def _ports(count: int) -> Iterator[list[int]]:
    """Ports that were free together."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        yield [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
