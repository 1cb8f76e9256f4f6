"""The lease keeper's HTTP server: one port for launchers, one Unix socket for the driver.

SHELL around ``lease_table``. Each request needs the job's token. One event loop runs all handlers.
None of them awaits between reading and changing the table, so that a renewal and a revocation
cannot interleave.
"""

import asyncio
import logging
from pathlib import Path

from aiohttp import web

from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import CannotListenError
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.guard import Guard, Rights
from homeport.job_coordinator.http.messages import LeaseAnswer, LeaseGrant, Renewal
from homeport.job_coordinator.http.pinned_tls import url_at
from homeport.job_coordinator.http.port.port import Port
from homeport.job_coordinator.http.responses import request_body
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    incarnations_from_json,
    incarnations_to_json,
)
from homeport.job_coordinator.model.json_values import compact_json

_log = logging.getLogger("keeper")


class LeaseServer:
    """Serves one attempt's leases between ``start`` and ``stop``."""

    def __init__(
        self,
        table: LeaseTable,
        guard: RenewalGuard,
        *,
        lease_ms: int,
        attempt: int,
        access: ServedAccess | str,
    ) -> None:
        """``access`` is for the launchers' port; the driver's socket keeps its first token."""
        self._table = table
        self._guard = guard
        self._lease_ms = lease_ms
        self._attempt = attempt
        self._access = access if isinstance(access, ServedAccess) else ServedAccess(access)
        self._own = ServedAccess(self._access.token.decode())
        self._url = ""
        self._ports: list[Port] = []

    async def start(self, host: str, port: int, socket_path: Path | None) -> str:
        """Open the port and, with ``socket_path``, the socket; return the URL for launchers.

        CannotListenError: it cannot listen there.
        """
        public = self._port([web.post("/v1/lease", self._renew)], self._access)
        try:
            address = await public.open(host, port, self._access.tls)
            if socket_path is not None:
                await asyncio.to_thread(socket_path.unlink, missing_ok=True)
                local = self._port(
                    [
                        web.post("/register", self._register),
                        web.post("/revoked", self._revoked),
                        web.post("/stopped", self._stopped),
                    ],
                    self._own,
                )
                await local.open_socket(socket_path)
                await asyncio.to_thread(socket_path.chmod, 0o600)
        except OSError as error:
            await self.stop()
            raise CannotListenError(f"the lease keeper cannot listen: {error}") from None
        self._url = url_at(address, self._access.tls)
        return self._url

    async def stop(self) -> None:
        """Close the port and the socket."""
        while self._ports:
            await self._ports.pop().close()

    def _port(self, routes: list[web.RouteDef], access: ServedAccess) -> Port:
        # Each port has its own guard: wrong tokens at one do not count at the other.
        guard = Guard(access, lambda: None, Rights())
        port = Port(routes, guard, _log)
        self._ports.append(port)
        return port

    async def _renew(self, request: web.Request) -> web.StreamResponse:
        renewal = Renewal.from_json(await request_body(request))
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
        """Register these; answer with those that are revoked, and must not be permitted."""
        asked, now_ms = await _incarnations(request), boot_ms()
        return self._report([i for i in asked if not self._table.register(i, now_ms)])

    async def _revoked(self, request: web.Request) -> web.StreamResponse:
        """Revoke those that have run out, register unknown ones, answer with all revoked ones."""
        asked, now_ms = await _incarnations(request), boot_ms()
        revoked = self._table.revoked(asked, now_ms)
        return self._report(revoked, self._table.due_ms(asked, now_ms))

    async def _stopped(self, request: web.Request) -> web.StreamResponse:
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
    body = await request_body(request)
    return incarnations_from_json(body, "incarnations")
