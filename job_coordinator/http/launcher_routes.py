"""The routes of launchers and stream containers of a job on YARN; a standalone job has neither.

SHELL. It decides nothing: every answer comes from a ``LauncherBackend``.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from aiohttp import ETag, web

from homeport.config.errors import WireError
from homeport.job_coordinator.http.audit import AuditTrail, Change
from homeport.job_coordinator.http.documents import Document
from homeport.job_coordinator.http.guard import caller
from homeport.job_coordinator.http.messages import CheckIn, Order, Started, Stopped, Unfit
from homeport.job_coordinator.http.responses import (
    DocumentSender,
    error_answer,
    json_answer,
    request_body,
)
from homeport.job_coordinator.model.ids import ProcessorId, ResourceId
from homeport.job_coordinator.model.job_model import ContainerModel
from homeport.job_coordinator.model.job_package import is_package_name
from homeport.job_coordinator.model.json_values import compact_json, shown

SHUTDOWN_ROUTE: Final = "/v1/shutdown"
PACKAGE_ROUTE: Final = "/v1/packages/{name}"
_ZIP: Final = "application/zip"
_RESOURCE_ID = re.compile(r"container_(e\d+_)?\d+_\d+_\d+_\d+", re.ASCII)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_T = TypeVar("_T", Started, Stopped, Unfit)


class LauncherBackend(Protocol):
    """The answers of a job on YARN to its launchers. Errors as of a ``JobCoordinatorBackend``."""

    def temporary_standbys(self) -> Mapping[ProcessorId, ContainerModel]:
        """Return {processor_id: the standby of a warm move}; no JobModel has these."""

    async def package(self, name: str) -> bytes | None:
        """Return the running job's zip with that sha256; None: there is none."""

    def is_running(self, resource_id: ResourceId) -> bool:
        """Return whether a stream container that this AM permitted runs there."""

    async def check_in(self, message: CheckIn) -> Order:
        """Return the launcher's next order."""

    async def started(self, message: Started) -> None:
        """Note that a stream container has started."""

    async def stopped(self, message: Stopped) -> None:
        """Note that a stream container has ended."""

    async def unfit(self, message: Unfit) -> None:
        """Note that a YARN container cannot start a launcher."""

    async def shutdown(self) -> None:
        """Order the orderly end of the job; return at once."""


class LauncherRoutes:
    """Serves the routes; runs on the server's event loop.

    ``backend``: None: the job is standalone. ``audit`` takes each order to end the job.
    """

    def __init__(
        self, backend: LauncherBackend | None, audit: AuditTrail, sender: DocumentSender
    ) -> None:
        self._backend = backend
        self._audit = audit
        self._sender = sender
        self._reading = asyncio.Lock()
        self._last_package: Document | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return what the server adds to its own."""
        return [
            web.get("/containerHeartbeat", self._get_heartbeat),
            web.post("/v1/check-in", self._post_check_in),
            web.post("/v1/started", self._report(Started, lambda to, m: to.started(m))),
            web.post("/v1/stopped", self._report(Stopped, lambda to, m: to.stopped(m))),
            web.post("/v1/unfit", self._report(Unfit, lambda to, m: to.unfit(m))),
            web.post(SHUTDOWN_ROUTE, self._post_shutdown),
            web.get(PACKAGE_ROUTE, self._get_package),
        ]

    def _of_yarn(self, request: web.Request) -> LauncherBackend:
        if self._backend is None:
            raise WireError(
                f"{request.path} has no meaning for a standalone job: its user places processors"
            )
        return self._backend

    async def _post_check_in(self, request: web.Request) -> web.StreamResponse:
        backend = self._of_yarn(request)
        order = await backend.check_in(CheckIn.from_json(await request_body(request)))
        return json_answer(compact_json(order.to_json()))

    async def _post_shutdown(self, request: web.Request) -> web.StreamResponse:
        backend, by = self._of_yarn(request), caller(request)
        self._audit.add(Change(by.name, by.address, "http", "the job", "runs", "is to end"))
        await backend.shutdown()
        return json_answer(b"{}")

    def _report(
        self, kind: type[_T], take: Callable[[LauncherBackend, _T], Awaitable[None]]
    ) -> _Handler:
        async def post(request: web.Request) -> web.StreamResponse:
            backend = self._of_yarn(request)
            await take(backend, kind.from_json(await request_body(request)))
            return json_answer(b"{}")

        return post

    async def _get_heartbeat(self, request: web.Request) -> web.StreamResponse:
        resource_id = request.query.get("executionContainerId", "")
        if _RESOURCE_ID.fullmatch(resource_id) is None:
            raise WireError(
                f"executionContainerId is not the id of a YARN container: {shown(resource_id)}"
            )
        backend = self._backend
        alive = backend is not None and backend.is_running(ResourceId(resource_id))
        return json_answer(compact_json({"alive": alive}))

    async def _get_package(self, request: web.Request) -> web.StreamResponse:
        """Send a package of the job's code; the guard requires the job's own token."""
        name = request.match_info["name"]
        document = await self._package(name) if is_package_name(name) else None
        if document is None:
            return error_answer(HTTPStatus.NOT_FOUND, f"there is no package {shown(name)}")
        return await self._sender.answer(request, document, trusted=True)

    async def _package(self, name: str) -> Document | None:
        """Return the package; keep the last one, as many launchers may request it at once."""
        async with self._reading:
            last = self._last_package
            if last is not None and last.etag.value == name:
                return last
            data = None if self._backend is None else await self._backend.package(name)
            if data is None:
                return None
            self._last_package = Document((data,), ETag(name), gzip=False, content_type=_ZIP)
            return self._last_package
