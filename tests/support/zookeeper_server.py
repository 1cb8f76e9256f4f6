"""A real ZooKeeper server as a process of a test's own, from the jars of the local cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homeport.container.host.parent_death import die_with_parent
from local_cluster.jars import default_cache, ensure_jars
from local_cluster.preflight import find_java

DEADLINE_S = 60.0
TICK_MS = 300
_TRIES = 5
_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
_OPTIONS = (
    *("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Dzookeeper.admin.enableServer=false", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
)


class ZooKeeperServer:
    """One server with its data in ``folder``; a session lasts two ticks at least."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def connect(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """It answers; on the same port as before, if it ran before."""
        for _ in range(_TRIES):
            self.port = self.port or _free_port()
            if self._is_up():
                return
            self.port = 0  # another process was faster
        raise AssertionError((self._folder / "zookeeper.log").read_text(encoding="utf-8"))

    def signal(self, number: signal.Signals) -> None:
        """The server gets the signal."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """It is gone; its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)
            self._process = None

    def _is_up(self) -> bool:
        jars = ensure_jars(default_cache(), "zookeeper")
        java = find_java() / "bin" / "java"
        settings = self._folder / "zoo.cfg"
        settings.write_text(
            f"tickTime={TICK_MS}\ndataDir={self._folder / 'data'}\nmaxClientCnxns=0\n"
            "maxSessionTimeout=60000\n"
            f"clientPort={self.port}\nclientPortAddress=127.0.0.1\n",
            encoding="utf-8",
        )
        parent = os.getpid()
        with (self._folder / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(java), *_OPTIONS, "-cp", f"{jars}/*", _MAIN, str(settings)],
                stdout=log,
                stderr=log,
                preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 - two system calls
            )
        deadline = time.monotonic() + DEADLINE_S
        pause = threading.Event()
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return True
            except OSError:
                pause.wait(0.05)
        self.kill()
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[ZooKeeperServer]:
    """A server for a block; afterwards it is gone."""
    server = ZooKeeperServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
