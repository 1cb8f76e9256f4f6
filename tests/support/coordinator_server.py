"""A job coordinator's server before a small job, and a bare client of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, TypeVar

from homeport.config.config import Config
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import (
    CheckIn,
    Order,
    OrderKind,
    Started,
    Stopped,
    Unfit,
)
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind, StopCause
from homeport.job_coordinator.status.shape import ShownFailure, ShownJob, ShownStatus

LOG_LINE = "KeyError: what a log may hold"
TOKEN = "a-token-of-a-test"  # noqa: S105 - opens a server of this test only
BEARER = {"Authorization": f"Bearer {TOKEN}"}
RUNNING = "container_e05_1700000000000_0001_01_000002"
ONE = Incarnation(ProcessorId("0"), 4)
CHECK_IN = CheckIn(ResourceId(RUNNING), "any_0", 1, Host("h1"), 77, ONE)
ORDER = Order(OrderKind.RUN, 500, 0, ONE, 2, (Incarnation(ProcessorId("0"), 3),))
STARTED = Started(ONE, {"s": {"t": Restored(RestoreKind.FULL, 0, 9, 10)}}, {"restore": 0.5})
STOPPED = Stopped(ONE, StopCause.FINISHED, 0, ("Grüße",))

T = TypeVar("T")


def small_model(**config: str) -> JobModel:
    """One container with one task, and a secret in the configuration."""
    name = TaskName("Partition 0")
    task = TaskModel(name, (SystemStreamPartition("kafka", "in", 0),), 0)
    values = Config({"job.name": "Flüge", "db.password": "pw", **config})
    return JobModel(values, {ProcessorId("0"): ContainerModel(ProcessorId("0"), {name: task})})


class Backend:
    """The job behind the server: two versions of a model, one container, and what was said."""

    def __init__(self) -> None:
        """Version 2 is the present one."""
        self.models: dict[int | None, JobModel] = {1: small_model(old="yes"), 2: small_model()}
        self.models[None] = self.models[2]
        self.localities = {ProcessorId("0"): Host("h1")}
        self.temporary: dict[ProcessorId, ContainerModel] = {}
        self.said: list[object] = []
        self.fault: Exception | None = None
        self.packages: dict[str, bytes] = {}
        self.looked: list[str] = []

    async def package(self, name: str) -> bytes | None:
        """One that the test has put there; each look is counted."""
        self.looked.append(name)
        return self.packages.get(name)

    def temporary_standbys(self) -> Mapping[ProcessorId, ContainerModel]:
        """None, unless set otherwise."""
        return self.temporary

    def job_model(self, version: int | None) -> JobModel | None:
        """One of the two."""
        return self.models.get(version)

    def locality(self) -> Mapping[ProcessorId, Host]:
        """One processor, on h1, unless set otherwise."""
        return self.localities

    def is_running(self, resource_id: ResourceId) -> bool:
        """One resource is in use."""
        return resource_id == RUNNING

    async def check_in(self, message: CheckIn) -> Order:
        """Always the same order, unless a fault is set."""
        if self.fault is not None:
            raise self.fault
        self.said.append(message)
        return ORDER

    async def started(self, message: Started) -> None:
        """Noted."""
        self.said.append(message)

    async def stopped(self, message: Stopped) -> None:
        """Noted."""
        self.said.append(message)

    async def unfit(self, message: Unfit) -> None:
        """Noted."""
        self.said.append(message)

    async def shutdown(self) -> None:
        """Noted."""
        self.said.append("shutdown")

    def status(self) -> ShownStatus:
        """Failures with log lines, and without."""
        return ShownStatus(
            job=ShownJob(name="Flüge", state="Running"),
            failures=(
                ShownFailure(
                    processor_id=ProcessorId("0"),
                    cause="failed",
                    exit_code=1,
                    last_lines=(LOG_LINE,),
                ),
                ShownFailure(cause="no answer"),
            ),
        )


@dataclasses.dataclass
class Served:
    """A server that answers, and how to reach it."""

    backend: Backend
    server: JobCoordinatorServer
    port: int

    @property
    def url(self) -> str:
        """With the slash at its end."""
        return f"http://127.0.0.1:{self.port}/"

    def client(self, token: str | None = TOKEN) -> CoordinatorClient:
        """A client with that token."""
        return CoordinatorClient(self.url, token)

    def call(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (names in lower case) and body of one request, without our client."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content

    def error(self, method: str, path: str, body: bytes | None = None, **headers: str) -> str:
        """``<status> <text of the error>`` of a request that is refused."""
        status, answered, content = self.call(method, path, body, **headers)
        assert answered["content-type"] == "application/json"
        (name,), (text,) = zip(*json.loads(content).items(), strict=True)
        assert name == "error"
        assert "\n" not in text
        return f"{status} {text}"


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work`` on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    def stand_still(self) -> threading.Event:
        """Stop the loop until the event is set."""
        go, stands = threading.Event(), threading.Event()

        def wait() -> None:
            stands.set()
            go.wait(30)

        self.loop.call_soon_threadsafe(wait)
        assert stands.wait(30)
        return go

    def close(self) -> None:
        """The loop and its threads are gone."""
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=30)
        self.loop.close()


@contextmanager
def serving(
    loop: Loop,
    backend: Backend,
    access: str | ServedAccess = TOKEN,
    *more: Any,  # noqa: ANN401 - as the server takes them
    **options: Any,  # noqa: ANN401 - as the server takes them
) -> Iterator[Served]:
    """A server of ``backend`` on a free port, with its launchers unless ``options`` say else."""
    options = {"launchers": backend, **options}
    server = JobCoordinatorServer(backend, access, "127.0.0.1", 0, *more, **options)
    host, port = loop.run(server.start())
    assert host == "127.0.0.1"
    try:
        yield Served(backend, server, port)
    finally:
        loop.run(server.stop())


class Members:
    """The processors of a standalone job, as the one of that name knows them."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.leader: str | None = ""
        self.urls: dict[str, str] = {}
        self.gathered = 0

    def leader_url(self) -> str | None:
        """As the test says; here, unless it says another."""
        return self.leader

    def url_of(self, processor_id: ProcessorId) -> str | None:
        """As the test says."""
        return "" if processor_id == self.name else self.urls.get(processor_id)

    async def gather(self) -> None:
        """It is counted."""
        self.gathered += 1

    def own_status(self) -> ShownStatus:
        """Its name, and little more."""
        return ShownStatus(job=ShownJob(name=self.name, state="member", health="deployed"))
