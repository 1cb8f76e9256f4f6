"""A ZooKeeper server as a process of its own, from the jars of the local cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from homeport.local_cluster.daemons import zookeeper_command, zookeeper_settings
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.jars import default_cache, ensure_jars
from homeport.local_cluster.preflight import find_java

DEADLINE_S = 60.0
TICK_MS = 300
_TRIES = 5


class ZooKeeperServer:
    """One server; a session lasts two ticks at least.

    Args:
        folder: of its settings, data and log.
        environment: laid over this process's own.
        first: what the new process calls before it becomes the server.
        more: further lines of its settings.
        options: further ones of its JVM.
        has_tls: clients reach it by TLS alone, as ``more`` says.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        first: Callable[[], None] | None = None,
        more: Sequence[str] = (),
        options: Sequence[str] = (),
        *,
        has_tls: bool = False,
    ) -> None:
        self._folder = folder
        self._environment = {**os.environ, **(environment or {})}
        self._first = first
        self._more, self._options = more, options
        self._prefix = "secureClientPort" if has_tls else "clientPort"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def connect(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """It answers; on the same port as before, if it ran before.

        ClusterError: it does not come up; the message has its log.
        """
        for _ in range(_TRIES):
            self.port = self.port or free_port()
            if self._is_up():
                return
            self.port = 0  # another process was faster
        text = self.log.read_text(encoding="utf-8", errors="replace")
        raise ClusterError(f"ZooKeeper does not come up; log: {self.log}\n{text}")

    @property
    def log(self) -> Path:
        """What it writes."""
        return self._folder / "zookeeper.log"

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
        text = zookeeper_settings(
            self._folder / "data", "127.0.0.1", self.port, TICK_MS, self._prefix
        )
        settings.write_text(text + "".join(f"{line}\n" for line in self._more), encoding="utf-8")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                zookeeper_command(str(java), jars, settings, self._options),
                stdout=log,
                stderr=log,
                env=self._environment,
                process_group=0,
                preexec_fn=self._first,  # noqa: PLW1509 - as its caller answers for
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


def free_port() -> int:
    """A port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
