"""The lease keeper's HTTP server: one port for launchers, one Unix socket for the driver.

SHELL around ``lease_table``. Each request needs the job's token. One event loop runs all handlers,
and none awaits between reading the table and changing it, so a renewal and a revocation cannot
interleave.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import CannotListenError, WireError
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.listening import listen, stop_accepting
from homeport.job_coordinator.http.messages import LeaseAnswer, LeaseGrant, Renewal
from homeport.job_coordinator.http.pinned_tls import scheme
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    incarnations_from_json,
    incarnations_to_json,
)
from homeport.job_coordinator.model.json_values import compact_json, parse_object

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_UNAUTHORIZED = 401
_BAD_REQUEST = 400


class LeaseServer:
    """Serves one attempt's leases between ``start`` and ``stop``."""

    def __init__(
        self,
        table: LeaseTable,
        guard: RenewalGuard,
        *,
        lease_ms: int,
        attempt: int,
        token: str,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``tls``: for the launchers' port; None: plain HTTP."""
        self._table = table
        self._guard = guard
        self._lease_ms = lease_ms
        self._attempt = attempt
        self._token = token.strip().encode()
        self._tls = tls
        self._url = ""
        self._runners: list[web.AppRunner] = []
        self._listener: socket.socket | None = None

    async def start(self, host: str, port: int, socket_path: Path | None) -> str:
        """The port and, with ``socket_path``, the socket are open; returns the URL for launchers.

        Raises:
            CannotListenError: it cannot listen there.
        """
        try:
            public = await self._runner([web.post("/v1/lease", self._renew)])
            self._listener = await listen(public, host, port, self._tls)
            if socket_path is not None:
                await asyncio.to_thread(socket_path.unlink, missing_ok=True)
                local = await self._runner(
                    [
                        web.post("/register", self._register),
                        web.post("/revoked", self._revoked),
                        web.post("/stopped", self._stopped),
                    ]
                )
                await web.UnixSite(local, str(socket_path)).start()
                await asyncio.to_thread(socket_path.chmod, 0o600)
        except OSError as error:
            await self.stop()
            raise CannotListenError(f"the lease keeper cannot listen: {error}") from None
        address = public.addresses[0]
        self._url = f"{scheme(self._tls)}://{address[0]}:{address[1]}/"
        return self._url

    async def stop(self) -> None:
        """The port and the socket are closed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await stop_accepting(listener)
        while self._runners:
            await self._runners.pop().cleanup()

    async def _runner(self, routes: list[web.RouteDef]) -> web.AppRunner:
        app = web.Application(middlewares=[self._guarded])
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        return runner

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        offered = authorization.removeprefix("Bearer ").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(offered, self._token):
            return web.Response(status=_UNAUTHORIZED)
        try:
            return await handler(request)
        except WireError as error:
            body = compact_json({"error": str(error)})
            return web.Response(status=_BAD_REQUEST, body=body)

    async def _renew(self, request: web.Request) -> web.StreamResponse:
        renewal = Renewal.from_json(parse_object(await request.read(), "the body"))
        now_ms = boot_ms()
        self._table.tick(now_ms)
        if renewal.attempt != self._attempt or self._guard.is_outranked:
            answer = LeaseAnswer.NO
        elif not self._guard.may_renew(now_ms):
            answer = LeaseAnswer.LATER
        else:
            answer = self._table.renew(renewal.incarnation, now_ms)
        return web.Response(body=compact_json(LeaseGrant(answer, self._lease_ms).to_json()))

    async def _register(self, request: web.Request) -> web.StreamResponse:
        """Answers with those that are revoked already: they must not be permitted."""
        asked, now_ms = await _incarnations(request), boot_ms()
        return self._report([i for i in asked if not self._table.register(i, now_ms)])

    async def _revoked(self, request: web.Request) -> web.StreamResponse:
        """Revokes those that have run out, registers unknown ones, answers with all revoked."""
        asked, now_ms = await _incarnations(request), boot_ms()
        revoked = self._table.revoked(asked, now_ms)
        return self._report(revoked, self._table.due_ms(asked, now_ms))

    async def _stopped(self, request: web.Request) -> web.StreamResponse:
        """These are never renewed again: their launchers have reported the stop."""
        for incarnation in await _incarnations(request):
            self._table.stopped(incarnation)
        return self._report(())

    def _report(
        self, revoked: tuple[Incarnation, ...] | list[Incarnation], due_ms: int | None = None
    ) -> web.Response:
        said = incarnations_to_json(revoked)
        for item, incarnation in zip(said, revoked, strict=True):
            item["renewed_ms"] = self._table.renewed_ms(incarnation)
        body = {"url": self._url, "revoked": said, "due_ms": due_ms}
        return web.Response(body=compact_json(body))


async def _incarnations(request: web.Request) -> tuple[Incarnation, ...]:
    body = parse_object(await request.read(), "the body")
    return incarnations_from_json(body, "incarnations")
