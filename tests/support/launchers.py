"""A launcher as a process, an AM that is a real server, a small program for the container."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from check_history.reading import values_in
from coordinator_server import Backend, Loop
from waiting import until

from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.config import Config
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Stopped, Unfit
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel

TOKEN = "the token"  # noqa: S105 - of this test
FIRST, SECOND = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("0"), 2)
LIMIT_S = 20.0

LEASE_MS = 1500

CHILD = """
import os, signal, sys, threading, time
mode = open("mode").read()
if mode in ("spared", "losing"):
    from homeport.container.host.lease_memory import SpareKind, watch_lease
    memory = watch_lease(os.environ)
def get_ready():
    memory.is_ready = True
    while not os.path.exists(f"lose-{os.getpid()}"):
        time.sleep(0.02)  # looks again: the test makes the file
    memory.is_ready = False
if mode == "losing":
    threading.Thread(target=get_ready, daemon=True).start()
text = sys.stdin.readline().strip()
if not text:
    sys.exit(3)
print("was", sys.argv[sys.argv.index("--ready") + 1])
print("permit", text)
if mode == "spared": print("was near", memory.is_permit_near)
print("environment", os.environ["EXECUTION_ENV_CONTAINER_ID"])
def stop(*_):
    if mode != "deaf":
        print("stopping in order")
        sys.exit(143)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
if mode in ("spared", "losing"):
    memory.want_spare(SpareKind.PLAIN)
if mode == "leased":
    from homeport.container.host.lease_memory import watch_lease
    watch_lease(os.environ)
if mode == "finish":
    from homeport.container.host.lease_memory import watch_lease
    watch_lease(os.environ).is_finished = True
if mode in ("finish", "exits"): os._exit(0)
if mode == "fail": raise ValueError("what went wrong")
while True: time.sleep(60)
"""


class Am(Backend):
    """An AM that answers one fixed order, and remembers the reports it received."""

    def __init__(self) -> None:
        super().__init__()
        self.localities = {}
        self.order = Order(OrderKind.WAIT, 50, 1000)
        self.check_ins: list[CheckIn] = []
        self.reports: list[Stopped] = []
        self.unfit_containers: list[Unfit] = []
        self.url = ""
        self.config: dict[str, str] = {}
        self.asked: list[str] = []
        self.may_send = threading.Event()
        self.may_send.set()
        self._loop = Loop()
        self._server = JobCoordinatorServer(self, TOKEN, "127.0.0.1", 0, launchers=self)
        self.table = LeaseTable(LEASE_MS, boot_ms())
        self.table.register(FIRST, boot_ms())
        self.table.register(SECOND, boot_ms())
        guard = RenewalGuard(1_000_000, boot_ms())
        self.keeper = LeaseServer(self.table, guard, lease_ms=LEASE_MS, attempt=1, access=TOKEN)
        self.lease_url = ""

    def __enter__(self) -> Self:
        host, port = self._loop.run(self._server.start())
        self.url = f"http://{host}:{port}/"
        opened = self.keeper.start("127.0.0.1", 0, None)
        self.lease_url = self._loop.run(opened)
        return self

    def __exit__(self, *_: object) -> None:
        self.may_send.set()
        self.gone()
        self.keeper_gone()
        self._loop.close()
        gc.collect()  # what was cut off is reported here, not in another module's test

    def gone(self) -> None:
        """It answers no more."""
        self._loop.run(self._server.stop())

    def back(self) -> None:
        """It answers again, at the same URL."""
        port = int(self.url.rstrip("/").rpartition(":")[2])
        self._server = JobCoordinatorServer(self, TOKEN, "127.0.0.1", port, launchers=self)
        self._loop.run(self._server.start())

    def keeper_gone(self) -> None:
        """No process renews leases any more."""
        self._loop.run(self.keeper.stop())

    def orders(
        self, kind: OrderKind, incarnation: Incarnation | None = None, package: str | None = None
    ) -> None:
        """What every check-in is answered from now on."""
        version = 7 if incarnation or package else None
        self.order = Order(
            kind, 50, LEASE_MS, incarnation, version, lease_url=self.lease_url, package=package
        )

    def report(self, launcher: Running) -> Stopped:
        """The launcher's first report of an end, once it has come."""
        wait_for(lambda: bool(self.reports), launcher)
        return self.reports[0]

    async def package(self, name: str) -> bytes | None:
        """One that the test has put there, once the test lets it go."""
        self.asked.append(name)
        await asyncio.to_thread(self.may_send.wait, LIMIT_S)
        return self.packages.get(name)

    def job_model(self, version: int | None) -> JobModel | None:
        """One of the configuration of the moment."""
        del version
        processor_id = ProcessorId("0")
        return JobModel(Config(self.config), {processor_id: ContainerModel(processor_id, {})})

    async def check_in(self, message: CheckIn) -> Order:
        """The order of the moment."""
        self.check_ins.append(message)
        return self.order

    async def stopped(self, message: Stopped) -> None:
        """Kept."""
        self.reports.append(message)

    async def unfit(self, message: Unfit) -> None:
        """Kept."""
        self.unfit_containers.append(message)


class Running:
    """A launcher in a folder of its own, as YARN would start it."""

    def __init__(self, folder: Path, am: Am, mode: str, **environment: str) -> None:
        (folder / "homeport-token").write_text(TOKEN)
        (folder / "mode").write_text(mode)
        package = folder / "__package" / "homeport_child"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__main__.py").write_text(CHILD)
        self.folder = folder
        code = (
            "import os, sys; from homeport.container.launcher import launcher as l\n"
            "real = l.Launcher.__init__\n"
            "command = (sys.executable, '-m', 'homeport_child')\n"
            "l.Launcher.__init__ = lambda s, a, b, c, **kept: real(s, a, b, c, command, **kept)\n"
            "sys.exit(l.main())\n"
        )
        log = os.open(folder / "launcher.log", os.O_WRONLY | os.O_CREAT, 0o644)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                "SAMZA_COORDINATOR_URL": am.url,
                "CONTAINER_ID": "container_1700000000000_0001_01_000002",
                "SKEIN_CONTAINER_ID": "h-0_0",
                "NM_HOST": "NM1",
                "LOG_DIRS": str(folder / "logs"),
                "LOGGED_STORE_BASE_DIR": str(folder / "state"),
                "HOMEPORT_HISTORY_DIR": "job-1/.history",
                "HOMEPORT_CHECK_IN_INTERVAL_MS": "50",
                "HOMEPORT_LOST_MS": "3000",
                "HOMEPORT_SHUTDOWN_MS": "1000",
                "HOMEPORT_MEMORY_MB": "1024",
                **environment,
            },
        )
        os.close(log)

    @property
    def child_log(self) -> str:
        """What the child has written."""
        path = self.folder / "logs" / "container-0-1.log"
        return path.read_text() if path.exists() else ""

    def child_pid(self, am: Am) -> int:
        """The pid of the child, once it is ready."""
        wait_for(lambda: "ready" in self.child_log, self)
        wait_for(lambda: am.check_ins[-1].running is not None, self)
        return am.check_ins[-1].pid

    def spare_pid(self, pid: int = 0) -> int:
        """The pid of the spare, once it waits; of another one than ``pid``."""
        log = self.folder / "launcher.log"

        def found() -> int:
            stated = re.findall(r"spare pid (\d+) waits", log.read_text())
            return int(stated[-1]) if stated else 0

        wait_for(lambda: found() not in {0, pid}, self)
        return found()

    def events(self) -> list[str]:
        """The names of the launcher's history, in order."""
        files = sorted((self.folder / "state" / "job-1" / ".history").glob("launcher-*.jsonl"))
        return [line["event"] for file in files for line in values_in(file)]


Launch = Callable[..., Running]
"""Starts one, of a mode of ``CHILD``."""
Ready = Callable[..., tuple[Running, int]]
"""The same, and its child is ready: its pid."""


def wait_for(condition: Callable[[], bool], launcher: Running) -> None:
    """Returns when ``condition`` holds; fails with the launcher's log at the limit."""
    until(condition, (launcher.folder / "launcher.log").read_text, LIMIT_S)
