"""The job coordinator's HTTP server: the JobModel, and reports of launchers and containers.

SHELL. It decides nothing: every answer comes from a ``JobCoordinatorBackend``. Every client that
reaches the port can read, with secrets masked. The job's bearer token shows secrets, and every POST
of the job's own programs needs it. ``callers`` has the rights of operators' tokens, ``guard`` the
refusals.

The routes ``/`` and ``/locality`` are as in Samza 1.8.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from aiohttp import web
from msgspec import json, structs
from prometheus_client.core import Metric

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import CannotListenError, UnavailableError
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.actions import ACTION_ROUTE, ActionRoutes, Operators
from homeport.job_coordinator.http.audit import AuditTrail
from homeport.job_coordinator.http.callers import Role
from homeport.job_coordinator.http.dashboard import FILE_ROUTES, Dashboard
from homeport.job_coordinator.http.documents import Document, Form, JobModelDocuments
from homeport.job_coordinator.http.guard import Guard, Rights, caller
from homeport.job_coordinator.http.launcher_routes import (
    PACKAGE_ROUTE,
    SHUTDOWN_ROUTE,
    LauncherBackend,
    LauncherRoutes,
)
from homeport.job_coordinator.http.metrics import CONTENT_TYPE, JobCoordinatorMetrics
from homeport.job_coordinator.http.port.port import NotFoundError, Port
from homeport.job_coordinator.http.port.shared import SharedAnswers
from homeport.job_coordinator.http.query_params import EventsAsked, hosts_asked, version_asked
from homeport.job_coordinator.http.responses import (
    DocumentSender,
    error_answer,
    json_answer,
    takes_gzip,
)
from homeport.job_coordinator.model.codec import encode_locality, encode_processor_locality
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import compact_json, shown
from homeport.job_coordinator.model.wire_form import json_text
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownStatus
from homeport.job_coordinator.ui.snapshot import configuration

_SHUTDOWN_S: Final = 2.0
"""How long requests may still take when the server stops."""

_HEALTH, _METRICS, _PROCESSOR, _EVENTS = "/health", "/metrics", "/v1/processor", "/v1/events"
_AUDIT: Final = "/v1/audit"
_NEVER_REDIRECTED: Final = frozenset({_HEALTH, _METRICS, _PROCESSOR, ""})
"""Routes that each processor answers itself; "": an unknown route."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)

T = TypeVar("T")


class JobCoordinatorBackend(Protocol):
    """The source of the server's answers. It runs on the server's event loop and must not block.

    The answer to UnavailableError is 503, to WireError 400. Any other exception is logged, and its
    answer is 500: a backend that must end the AM attempt for it does so itself, before.
    """

    def job_model(self, version: int | None) -> JobModel | None:
        """Return the JobModel of that version, or the present one; None: there is none."""

    def locality(self) -> Mapping[ProcessorId, Host]:
        """Return {processor_id: host of its last successful start}."""

    def status(self) -> ShownStatus:
        """Return the state of the job; only the ``last_lines`` of failures may have secrets."""


class DecisionSource(Protocol):
    """The allocator's decisions with their reasons, past and possible; errors as above."""

    def events(self, asked: EventsAsked) -> bytes:
        """Return the last events that decided something, as JSON."""

    async def what_if(self, hosts: Collection[Host]) -> ShownOutlook:
        """Return the effects that the loss of these hosts would have; change nothing."""

    async def written(self) -> Mapping[str, CoordinatorStreamMessage] | None:
        """Return {key of the configuration: its newest record}; None: no coordinator stream.

        UnavailableError: Kafka does not answer.
        """

    def metrics(self) -> Iterable[Metric]:
        """Return the allocator's metrics."""


class Peers(Protocol):
    """The other servers of a job in which each processor has one; called as a backend is."""

    def leader_url(self) -> str | None:
        """Return the URL of the server that answers for the job; "": this one; None: unknown."""

    def url_of(self, processor_id: ProcessorId) -> str | None:
        """Return the URL of that processor; "": this server; None: unknown, or not there."""

    async def gather(self) -> None:
        """Refresh the other processors in the status."""

    def own_status(self) -> ShownStatus:
        """Return the status of this processor alone."""


class JobCoordinatorServer:
    """Serves one job on the running event loop, between ``start`` and ``stop``."""

    def __init__(
        self,
        backend: JobCoordinatorBackend,
        access: ServedAccess | str,
        host: str,
        port: int,
        decisions: DecisionSource | None = None,
        peers: Peers | None = None,
        operators: Operators | None = None,
        launchers: LauncherBackend | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            backend: gives the answers.
            access: the job's bearer token, or the token with its certificate and later generations.
            host: address to listen on.
            port: port to listen on; 0 for any free one.
            decisions: gives the answers about decisions; None: there are none.
            peers: one of them answers for the job, and the others redirect to it; None: this server
                answers.
            operators: their actions, and the trail of changes; None: they have no actions, and
                changes are in the log alone.
            launchers: gives the answers to launchers; None: the job is standalone.
        """
        self._backend = backend
        may = operators or Operators(None, AuditTrail(lambda _: None))
        self._audit = may.audit
        self._actions = ActionRoutes(may.actions, may.audit)
        rights = Rights(
            changing={SHUTDOWN_ROUTE: Role.OPERATE, ACTION_ROUTE: Role.OPERATE},
            reading={PACKAGE_ROUTE: Role.JOB, _AUDIT: Role.READ},
            public=FILE_ROUTES,
        )
        served = access if isinstance(access, ServedAccess) else ServedAccess(access)
        self._guard = Guard(served, self._config, rights, [host])
        self._host = host
        self._at = port
        self._port: Port | None = None
        self._documents = JobModelDocuments()
        self._sender = DocumentSender()
        self._answers = SharedAnswers(self._sender)
        self._launchers = launchers
        self._decisions = decisions
        self._tls = served.tls
        self._peers = peers
        self._own_status = backend.status if peers is None else peers.own_status
        self._dashboard = Dashboard(self._look, self._answers, self._size)
        self._metrics = JobCoordinatorMetrics(
            self._own_status, None if decisions is None else decisions.metrics
        )

    def known_as(self, name: str) -> None:
        """Note a name of this host, beside the machine's own names."""
        self._guard.learned([name])

    async def start(self) -> tuple[str, int]:
        """Start the server; return the address and port that it listens on.

        CannotListenError: it cannot listen there.
        """
        self._guard.learned(await asyncio.to_thread(_own_names))
        port = Port(
            self._routes(),
            self._guard,
            _log,
            before=[self._count],
            behind=[self._redirect],
            shutdown_s=_SHUTDOWN_S,
        )
        try:
            address = await port.open(self._host, self._at, self._tls)
        except OSError as error:
            raise CannotListenError(
                f"cannot listen on {self._host}:{self._at}: {error.strerror or error}; "
                f"{keys.JOB_COORDINATOR_URL_PORT.name}=0 takes any free port"
            ) from None
        self._port = port
        self._dashboard.start()
        return address

    async def stop(self) -> None:
        """Close the port when its requests have ended; a second stop changes nothing."""
        port, self._port = self._port, None
        await self._dashboard.stop()
        if port is not None:
            await port.close()

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._get_job_model),
            web.get("/locality", self._get_locality),
            web.get("/config", self._get_config),
            self._answers.route(_METRICS, self._metrics.text, CONTENT_TYPE),
            self._answers.route(_HEALTH, self._health),
            web.get(_PROCESSOR, self._get_processor),
            web.get("/v1/status", self._get_status),
            web.get(_EVENTS, self._get_events),
            web.get("/v1/what-if", self._get_what_if),
            self._answers.route(_AUDIT, self._audit.to_json),
            web.get("/v1/processors/{processor_id:[^/]+}/model", self._get_part),
            self._answers.route("/ui/configuration", self._configuration),
            *self._dashboard.routes(),
            *self._actions.routes(),
            *LauncherRoutes(self._launchers, self._audit, self._sender).routes(),
        ]

    @web.middleware
    async def _count(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        response = await handler(request)
        resource = request.match_info.route.resource
        route = "unknown" if resource is None else resource.canonical
        self._metrics.answered(request.method, route, response.status)
        return response

    @web.middleware
    async def _redirect(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        route = "" if resource is None else resource.canonical
        if self._peers is None or route in _NEVER_REDIRECTED:
            return await handler(request)
        url: str | None = ""
        if route != _EVENTS:
            url = self._peers.leader_url()
        elif "processor" in request.query:
            url = self._peers.url_of(ProcessorId(request.query["processor"]))
        if url is None:
            raise UnavailableError("the processor that would answer is not known now; ask again")
        if not url:
            return await handler(request)
        location = url.rstrip("/") + request.path_qs
        return error_answer(
            HTTPStatus.TEMPORARY_REDIRECT, f"answered at {url}", {"Location": location}
        )

    def _config(self) -> Config | None:
        model = self._backend.job_model(None)
        return None if model is None else model.config

    async def _get_job_model(self, request: web.Request) -> web.StreamResponse:
        model = self._model(version_asked(request.query))
        return await self._document(request, self._documents.of(model).whole(_form(request)))

    async def _get_part(self, request: web.Request) -> web.StreamResponse:
        processor_id = ProcessorId(request.match_info["processor_id"])
        model = self._model(version_asked(request.query))
        if processor_id not in model.containers:
            added = {} if self._launchers is None else self._launchers.temporary_standbys()
            if processor_id not in added:
                raise NotFoundError(f"the JobModel has no processor {shown(processor_id)}")
            model = replace(model, containers={**model.containers, **added})
        part = self._documents.of(model).part(processor_id, _form(request))
        return await self._document(request, part)

    async def _get_config(self, request: web.Request) -> web.StreamResponse:
        model = self._model(None)
        return await self._document(request, self._documents.of(model).config(_form(request)))

    async def _document(
        self, request: web.Request, making: Awaitable[Document]
    ) -> web.StreamResponse:
        return await self._sender.answer(request, await making, trusted=_sees_secrets(request))

    async def _get_locality(self, request: web.Request) -> web.StreamResponse:
        # Samza's rule: a query with one parameter, of any name, is for one processor.
        if len(set(request.query)) != 1:
            return await self._answers.answer(request, "locality", self._all_locality)
        localities = self._backend.locality()
        id_ = request.query.get("processorId")
        processor_id = None if id_ is None else ProcessorId(id_)
        host = None if processor_id is None else localities.get(processor_id)
        return json_answer(encode_processor_locality(processor_id, host))

    async def _look(self) -> ShownStatus:
        if self._size() is None:
            raise UnavailableError("another processor answers for the job")
        if self._peers is not None:
            await self._peers.gather()
        return self._backend.status()

    def _size(self) -> int | None:
        if self._peers is not None and self._peers.leader_url() != "":
            return None
        model = self._backend.job_model(None)
        return 0 if model is None else len(model.containers)

    async def _configuration(self) -> bytes:
        config = self._model(None).config
        written = None if self._decisions is None else await self._decisions.written()
        return compact_json(configuration(config, written))

    async def _get_status(self, request: web.Request) -> web.StreamResponse:
        async def status() -> bytes:
            if self._peers is not None:
                await self._peers.gather()
            return _status_for(request, self._backend.status())

        return await self._answers.answer(request, "status", status)

    def _all_locality(self) -> bytes:
        return encode_locality(self._backend.locality())

    async def _get_events(self, request: web.Request) -> web.StreamResponse:
        query, decisions = EventsAsked.from_query(request.query), self._decision_source()
        return await self._answers.answer(request, query, lambda: decisions.events(query))

    async def _get_what_if(self, request: web.Request) -> web.StreamResponse:
        hosts, decisions = hosts_asked(request.query.getall("host", ())), self._decision_source()

        async def what_if() -> bytes:
            return json_text(await decisions.what_if(hosts)).encode()

        return await self._answers.answer(request, ("what-if", hosts), what_if)

    def _decision_source(self) -> DecisionSource:
        if self._decisions is None:
            raise NotFoundError("decisions are not served here")
        return self._decisions

    def _health(self) -> bytes:
        job = self._own_status().job
        return compact_json({"state": job.state, "health": job.health})

    async def _get_processor(self, request: web.Request) -> web.StreamResponse:
        if self._peers is None:
            raise NotFoundError("no processor is served here")
        return await self._answers.answer(
            request, "processor", lambda: _status_for(request, self._own_status())
        )

    def _model(self, version: int | None) -> JobModel:
        model = self._backend.job_model(version)
        if model is None and version is None:
            raise UnavailableError("there is no JobModel yet; ask again")
        if model is None:
            raise NotFoundError(f"there is no JobModel of version {version}")
        return model


def _own_names() -> tuple[str, str]:
    """Return this machine's names; this may take a request to its resolver."""
    return socket.gethostname(), socket.getfqdn()


def _status_for(request: web.Request, status: ShownStatus) -> bytes:
    if caller(request).role < Role.READ:
        failures = tuple(structs.replace(f, last_lines=None) for f in status.failures)
        status = structs.replace(status, failures=failures)
    return json.encode(status)


def _form(request: web.Request) -> Form:
    return Form(mask_secrets=not _sees_secrets(request), gzip=takes_gzip(request))


def _sees_secrets(request: web.Request) -> bool:
    return caller(request).role is Role.JOB
