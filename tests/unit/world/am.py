"""AM attempts: the product's driver and lease keeper, whole, in processes of the world.

``Attempt`` is one AM container. Its driver process runs ``application_master.main`` and its keeper
process ``lease_keeper.main``; what they are given instead of the real thing is their pipe to the
supervisor, their sockets and YARN. The supervisor mirrors ``supervisor.Supervisor._look`` and
``Child.look`` around the product's ``Vitals`` and ``is_the_end``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from statuses import body_of_status

from homeport.appmaster.attempt.supervision import BEAT_INTERVAL_MS, EXIT_ENDED, Vitals, is_the_end
from homeport.appmaster.driver.http_backend import DriverBackend
from homeport.appmaster.lease.keeper_client import KeeperLink, KeeperReport, report_from_json
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.programs import application_master, lease_keeper
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import CheckIn, Started, Stopped
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, known_as
from homeport.job_coordinator.model.incarnation import Incarnation, incarnations_to_json
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.status.shape import ShownStatus
from tests.unit.world.clock import Process
from tests.unit.world.stand_ins import Server, WorldLoop
from tests.unit.world.world import World
from tests.unit.world.yarn import Nodes, Yarn

_TICK_MS = 200
_SOCKET_S = 2.0
TOKEN = "token"  # noqa: S105 - no secret


class Attempt:
    """One AM attempt: supervisor, driver and keeper on ``host``. ``starts``: processes so far."""

    def __init__(self, cluster: Cluster, rank: Rank, host: str) -> None:
        self.cluster = cluster
        self.rank = rank
        self.host = host
        self.folder = Path(tempfile.mkdtemp(dir=cluster.folder))
        self.name = f"am{rank.submission}.{rank.attempt}"
        self.yarn = Yarn(cluster.world, cluster.nodes, self)
        self.supervisor = cluster.world.clock.process(f"{self.name}/supervisor", host)
        self.children = [
            _Child(self, "keeper", lease_keeper.main),
            _Child(self, "driver", application_master.main),
        ]
        self.supervisor.at_end.append(self._end_children)
        self.supervisor.spawn(self._supervise)

    @property
    def keeper(self) -> Process:
        """The process of the lease keeper."""
        return self.children[0].require()

    @property
    def driver(self) -> Process:
        """The process of the driver."""
        return self.children[1].require()

    @property
    def url(self) -> str:
        """Where the driver answers."""
        return f"http://{self.host}:{self.children[1].port}/"

    def status(self) -> Mapping[str, Any]:
        """What the driver's page says of the job."""
        server = self.children[1].server
        assert server is not None
        body: Mapping[str, Any] = body_of_status(server.backend.status())
        return body

    def locality(self) -> Mapping[ProcessorId, Host]:
        """Where the driver says that each processor belongs; it says nothing before it serves."""
        server = self.children[1].server
        if server is None or server.backend is None:
            return {}
        localities: Mapping[ProcessorId, Host] = server.backend.locality()
        return localities

    def _supervise(self) -> int:
        """Mirrors ``Supervisor.run``, without its farewell."""
        while True:
            for child in self.children:
                code = child.look()
                if code is None:
                    continue
                if is_the_end(code, has_reported_end=child.has_reported_end):
                    return 0 if code == EXIT_ENDED else 1
            self.cluster.world.clock.sleep(_TICK_MS)

    def _end_children(self) -> None:
        for child in self.children:
            if child.process is not None:
                child.process.kill()


class _Child:
    """One program of the supervisor's, started again and again; mirrors ``supervisor.Child``."""

    def __init__(self, attempt: Attempt, name: str, program: Callable[[], int]) -> None:
        self.attempt = attempt
        self.name = name
        self.process: Process | None = None
        self.port = 0
        self.starts = 0
        self.server: Server | None = None
        self.has_reported_end = False
        self._program = program
        self._clock = attempt.cluster.world.clock
        self._vitals = Vitals.at(self._clock.now_ms)
        self._start_at_ms = 0

    def require(self) -> Process:
        """Its process, which there must be."""
        if self.process is None:
            raise AssertionError(f"the {self.name} of {self.attempt.name} does not run")
        return self.process

    def look(self) -> int | None:
        """Started if it is due, killed if it hangs; the exit code of one that has just ended."""
        now_ms = self._clock.now_ms
        if self.process is None:
            if now_ms >= self._start_at_ms:
                self._start()
            return None
        if not self.process.is_alive:
            code = self.process.exit_code
            self.process = None
            exit_code = code if isinstance(code, int) else -9
            self._start_at_ms = now_ms + self._vitals.died(now_ms, exit_code)
            return exit_code
        if self._vitals.is_hung(now_ms):
            self._clock.announce(f"kills the {self.name}, which does not beat")
            self.process.kill()
        return None

    def beaten(self) -> None:
        """It beats."""
        self._vitals.beaten(self._clock.now_ms)

    def _start(self) -> None:
        self.starts += 1
        self.has_reported_end = False
        name = f"{self.attempt.name}/{self.name}" + (f"#{self.starts}" if self.starts > 1 else "")
        self.process = self._clock.process(name, self.attempt.host)
        self.server = Server(self.process)
        self._vitals.started(self._clock.now_ms)
        self.attempt.cluster.children[self.process] = self
        self.process.spawn(self._program)


class Heartbeat:
    """``heartbeat.Heartbeat`` without its pipe."""

    def __init__(self, child: _Child) -> None:
        self._child = child
        self.port = child.port or None
        self.starts = child.starts

    def await_turn(self) -> None:
        """It is."""

    def start(self) -> None:
        """The supervisor hears that the process lives."""
        self._child.require().spawn(self._beat)

    def send_port(self, port: int) -> None:
        """The next process will be given ``port``."""
        self._child.port = port

    def report_ended(self) -> None:
        """The supervisor takes exit code 0 for the end."""
        self._child.has_reported_end = True

    def log_cause(self, cause: str) -> None:
        """The world does not use it."""

    def _beat(self) -> None:
        while True:
            self._child.beaten()
            self._child.attempt.cluster.world.clock.sleep(BEAT_INTERVAL_MS)


class Cluster:
    """The job's applications, attempts and hosts. To be used in an entered world."""

    def __init__(self, world: World, hosts: Iterable[str] = ("a", "b", "c")) -> None:
        self.world = world
        self.hosts = {Host(host): True for host in hosts}
        self.nodes = Nodes(self.hosts)
        self.attempts: list[Attempt] = []
        self.children: dict[Process, _Child] = {}
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self._ports = iter(range(40001, 50000))
        world.at_end.append(self._folder.cleanup)
        self._install()
        world.deploy()

    def attempt(self, submission: int = 1, attempt: int = 1, host: str = "am") -> Attempt:
        """A new AM attempt begins; whatever runs already runs on."""
        rank = Rank(submission, f"application_1_{submission:04}", attempt)
        self.attempts.append(Attempt(self, rank, host))
        return self.attempts[-1]

    def lose_node_manager(self, host: str) -> None:
        """The NodeManager of that host is gone: its containers run on unharmed."""
        self.hosts[Host(host)] = False

    def _child(self) -> _Child:
        current = self.world.clock.current
        if current is None:
            raise AssertionError("only processes of an attempt run this")
        return self.children[current.process]

    def _container(self, *_: object) -> Any:  # noqa: ANN401 - stands for an AmContainer
        attempt = self._child().attempt
        submission = SimpleNamespace(
            config=self.world.config,
            number=attempt.rank.submission,
            submitted=Submitted(self.world.config, self.world.config),
        )
        names = SimpleNamespace(address=lambda host: host, with_known_address=lambda url: url)
        return SimpleNamespace(
            environment={"LOGGED_STORE_BASE_DIR": str(attempt.folder)},
            folder=attempt.folder,
            submission=submission,
            token=TOKEN,
            tls=None,
            certificate=None,
            served=lambda *_: ServedAccess(TOKEN),
            names=names,
            application_id=attempt.rank.application,
            attempt=attempt.rank.attempt,
            rank=attempt.rank,
            host=Host(attempt.host),
            host_named=known_as,
        )

    def _install(self) -> None:
        """What the AM's programs are given instead of pipes, sockets, files and YARN."""
        world = self.world
        patch = world.patch
        container = SimpleNamespace(read=self._container)
        for program in (application_master, lease_keeper):
            patch.setattr(program, "AmContainer", container)
            patch.setattr(program, "Heartbeat", lambda _: Heartbeat(self._child()))
            patch.setattr(program, "asyncio", _Asyncio(self))
        manager = SimpleNamespace(
            url="http://rm", setting=lambda _: None, require_reachable=lambda: None
        )
        rest = SimpleNamespace(from_folder=lambda _: manager)
        for program in (application_master, lease_keeper):
            patch.setattr(program, "ResourceManagerRest", rest)
        patch.setattr(application_master, "connect", lambda *_: None)
        patch.setattr(application_master, "report_failure", lambda *_: None)
        patch.setattr(
            application_master,
            "SkeinResourceManager",
            lambda *_: self._child().attempt.yarn.manager(),
        )
        patch.setattr(application_master, "JobCoordinatorServer", self._coordinator_server)
        patch.setattr(LeaseServer, "start", _bound(self._start_lease_server))
        patch.setattr(LeaseServer, "stop", _stop)
        patch.setattr(KeeperLink, "_ask", _bound(self._ask_keeper))
        patch.setattr(CoordinatorClient, "_call", _bound(self._call))

    # -- the driver's HTTP server, and the keeper's two doors

    def _coordinator_server(
        self,
        backend: DriverBackend,
        _token: str,
        host: str,
        port: int | None,
        *_: object,
        **__: object,
    ) -> CoordinatorServer:
        child = self._child()
        port = port or next(self._ports)
        return CoordinatorServer(self.world, child, backend, host, port)

    async def _start_lease_server(
        self, server: LeaseServer, host: str, port: int, _socket: Path | None
    ) -> str:
        child = self._child()
        url = server._url = f"http://{host}:{port or next(self._ports)}/"
        if child.server is not None:
            child.server.backend = LeaseDoors(server)
            self.world.links.servers[url] = child.server
            self.world.links.servers[f"socket of {child.attempt.name}"] = child.server
        return url

    def _ask_keeper(
        self, _link: KeeperLink, route: str, incarnations: Iterable[Incarnation]
    ) -> KeeperReport:
        body = compact_json({"incarnations": incarnations_to_json(incarnations)})
        url = f"socket of {self._child().attempt.name}"
        answer = self.world.links.call(
            url, f"ask the keeper: {route}", lambda b: b.answer("POST", route, body), _SOCKET_S
        )
        return report_from_json(parse_object(answer, "the keeper's answer"))

    def _call(
        self, client: CoordinatorClient, method: str, route: str, body: bytes | None = None
    ) -> bytes:
        answer = self.world.links.call(
            client.url,
            route or "get the model",
            lambda backend: backend.answer(method, route, body or b""),
            client._timeout_s,
        )
        if not isinstance(answer, bytes):
            raise WireError(f"{route}: refused")
        return answer


class CoordinatorServer:
    """``JobCoordinatorServer`` without its socket."""

    def __init__(
        self, world: World, child: _Child, backend: DriverBackend, host: str, port: int
    ) -> None:
        self._world = world
        self._child = child
        self._backend = backend
        self._address = host, port

    def known_as(self, name: str) -> None:
        """Ignore ``name``: calls of this world have no header."""

    async def start(self) -> tuple[str, int]:
        """It answers."""
        server = self._child.server
        if server is not None:
            server.backend = self
            self._world.links.servers[f"http://{self._address[0]}:{self._address[1]}/"] = server
        return self._address

    async def stop(self) -> None:
        """Nothing: its process ends with it."""

    def status(self) -> ShownStatus:
        """The backend's."""
        return self._backend.status()

    def locality(self) -> Mapping[ProcessorId, Host]:
        """The backend's."""
        return self._backend.locality()

    async def answer(self, _method: str, route: str, body: bytes) -> bytes:
        """What the backend says, as bytes; mirrors ``server.JobCoordinatorServer``."""
        backend = self._backend
        if route == "v1/check-in":
            message = CheckIn.from_json(parse_object(body, "the body"))
            return compact_json((await backend.check_in(message)).to_json())
        if route == "v1/started":
            await backend.started(Started.from_json(parse_object(body, "the body")))
        elif route == "v1/stopped":
            await backend.stopped(Stopped.from_json(parse_object(body, "the body")))
        elif route == "v1/shutdown":
            await backend.shutdown()
        elif route == "config":
            model = backend.job_model(None)
            return compact_json(dict(model.config) if model else {})
        else:
            version = int(route.partition("=")[2]) if "=" in route else None
            model = backend.job_model(version)
            if model is None:
                raise UnavailableError("no such version")
            if route.startswith("v1/processors/"):
                own = ProcessorId(unquote(route.split("/")[2]))
                model = JobModel(model.config, {own: model.containers[own]})
            return encode_job_model(model, mask_secrets=False)
        return b"{}"


class LeaseDoors:
    """The product's handlers of both doors, without the sockets before them."""

    def __init__(self, server: LeaseServer) -> None:
        self._server = server

    async def answer(self, _method: str, route: str, body: bytes) -> bytes:
        """What the lease server answers to this route."""
        server = self._server
        handlers = {
            "v1/lease": server._renew,
            "register": server._register,
            "revoked": server._revoked,
            "stopped": server._stopped,
        }
        request: Any = _Body(body)
        response = await handlers[route](request)
        assert isinstance(response, web.Response)
        assert isinstance(response.body, bytes)
        return response.body


class _Body:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self) -> bytes:
        return self._body


async def _stop(_server: LeaseServer) -> None:
    pass


class _Asyncio:
    """The module ``asyncio`` as the AM's programs see it: ``run`` takes the world's loop."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        return getattr(asyncio, name)

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - as asyncio.run
        """``main`` to its end."""
        child = self._cluster._child()
        server = child.server
        if server is None:
            raise AssertionError("a child has a server")
        loop = WorldLoop(self._cluster.world.clock, server)
        try:
            return loop.run_until_complete(main)
        finally:
            loop.close_all()


def _bound(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function, as a class needs it to call it with its instance first."""
    return lambda *arguments: method(*arguments)  # noqa: PLW0108 - a method would not be bound
