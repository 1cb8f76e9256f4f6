"""Launchers without processes: their check-ins, reports and lease renewals, on one event loop.

Each speaks real HTTP, on a new connection each time as a launcher does, waits as long as the AM
says, and gives its child up when its lease has run out. A child is a name only: it starts at once
and never ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.allocator.adoption_am import CANCELS_NAME, GRANTS_NAME
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.http.messages import (
    CheckIn,
    LeaseAnswer,
    LeaseGrant,
    Order,
    OrderKind,
    Renewal,
    Started,
    Stopped,
)
from homeport.job_coordinator.model.ids import Host, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.model.outcomes import StopCause

ATTEMPT, FIRST_PID = 1, 1000
_PATIENCE_S = 5.0
_LEASE_PARTS = 5
_FIRST_POLL_MS = 500
_LOOK_S = 0.1
_RETRY_S = 1.0


@dataclass
class Tally:
    """What befell the launchers. ``answers``: (when it came, seconds it took) of each check-in."""

    permits: int = 0
    stops: int = 0
    started: int = 0
    unanswered: int = 0
    answers: list[tuple[float, float]] = field(default_factory=list)

    def quantile(self, part: float, since: float, until: float) -> float:
        """Of the seconds that check-ins took whose answers came in that time."""
        found = sorted(seconds for at, seconds in self.answers if since <= at < until)
        return found[min(int(part * len(found)), len(found) - 1)] if found else float("nan")

    def rate(self, since: float, until: float) -> float:
        """Check-ins answered a second in that time."""
        return sum(since <= at < until for at, _ in self.answers) / (until - since)


class Launchers:
    """Plays every launcher that is granted in ``folder``, while ``run`` runs."""

    def __init__(self, folder: Path, token: str) -> None:
        self.tally = Tally()
        self._folder = folder
        self._token = token
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Runs without end: a granted launcher lives, a cancelled launcher does not."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for grant in map(json.loads, _whole_lines(self._folder / GRANTS_NAME)):
                        if grant["request"] not in self._tasks:
                            launcher = _Launcher(grant, self._token, self.tally)
                            self._tasks[grant["request"]] = group.create_task(launcher.live())
                    for request in map(int, _whole_lines(self._folder / CANCELS_NAME)):
                        if request in self._tasks:
                            self._tasks[request].cancel()
                    await asyncio.sleep(_LOOK_S)
        finally:
            for task in self._tasks.values():
                task.cancel()


class _Launcher:
    def __init__(self, grant: dict[str, Any], token: str, tally: Tally) -> None:
        self._resource_id = ResourceId(grant["resource"])
        self._skein_id = str(grant["skein_id"])
        self._host = Host(grant["host"])
        self._pid = FIRST_PID + int(grant["request"])
        self._url, self._token, self._tally = str(grant["url"]), token, tally
        self._running: Incarnation | None = None
        self._holding: asyncio.Task[None] | None = None
        self._reports: list[Stopped] = []

    async def live(self) -> None:
        """Polls until it is ordered to exit."""
        next_ms, kind = _FIRST_POLL_MS, OrderKind.WAIT
        try:
            while kind is not OrderKind.EXIT:
                with contextlib.suppress(UnavailableError, WireError):
                    await self._deliver()
                    order = await self._check_in()
                    next_ms, kind = order.next_ms, order.kind
                    await self._obey(order)
                await asyncio.sleep(next_ms / 1000)
        finally:
            self._let_go()

    async def _check_in(self) -> Order:
        began = time.monotonic()
        message = CheckIn(
            self._resource_id, self._skein_id, ATTEMPT, self._host, self._pid, self._running
        )
        try:
            answer = await self._call(self._url, "v1/check-in", message.to_json())
        except UnavailableError:
            self._tally.unanswered += 1
            raise
        now = time.monotonic()
        self._tally.answers.append((now, now - began))
        return Order.from_json(answer)

    async def _obey(self, order: Order) -> None:
        incarnation = order.incarnation
        if order.kind in {OrderKind.STOP, OrderKind.EXIT} and self._running is not None:
            self._stopped(self._running, StopCause.ORDERED)
            await self._deliver()
        if order.kind is not OrderKind.RUN or incarnation is None or order.lease_url is None:
            return
        if self._running is None:
            sent = time.monotonic()
            if await self._renewal(order.lease_url, incarnation) is LeaseAnswer.GRANTED:
                self._running = incarnation
                self._tally.permits += 1
                until = sent + order.lease_ms / 1000
                holding = self._hold(order.lease_url, incarnation, order.lease_ms / 1000, until)
                self._holding = asyncio.create_task(holding)

    async def _hold(self, url: str, incarnation: Incarnation, lease_s: float, until: float) -> None:
        """Reports that the child has started, and renews its lease until the lease is lost."""
        telling = asyncio.create_task(self._tell_start(Started(incarnation)))
        try:
            await self._renew(url, incarnation, lease_s, until)
        finally:
            telling.cancel()
        self._holding = None
        self._stopped(incarnation, StopCause.LEASE_LOST)

    async def _tell_start(self, report: Started) -> None:
        while True:
            with contextlib.suppress(UnavailableError):
                await self._call(self._url, "v1/started", report.to_json())
                self._tally.started += 1
                return
            await asyncio.sleep(_RETRY_S)

    async def _renew(
        self, url: str, incarnation: Incarnation, lease_s: float, until: float
    ) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(min(lease_s / _LEASE_PARTS, max(0.0, until - time.monotonic())))
            sent, answer = time.monotonic(), LeaseAnswer.LATER
            with contextlib.suppress(UnavailableError, WireError):
                answer = await self._renewal(url, incarnation)
            if answer is LeaseAnswer.NO:
                break
            if answer is LeaseAnswer.GRANTED and time.monotonic() < until:
                until = sent + lease_s

    async def _renewal(self, url: str, incarnation: Incarnation) -> LeaseAnswer:
        body = Renewal(ATTEMPT, incarnation).to_json()
        return LeaseGrant.from_json(await self._call(url, "v1/lease", body)).answer

    def _stopped(self, incarnation: Incarnation, cause: StopCause) -> None:
        self._let_go()
        self._running = None
        self._tally.stops += 1
        self._reports.append(Stopped(incarnation, cause, 1))

    def _let_go(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None

    async def _deliver(self) -> None:
        while self._reports:
            report = self._reports[0]
            await self._call(self._url, "v1/stopped", report.to_json())
            self._reports.remove(report)

    async def _call(self, url: str, route: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer; UnavailableError where there is none in time, or one that is not good."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                parts = urlsplit(url)
                request = post(parts.netloc, self._token, route, body)
                answer = await exchange(parts.hostname, parts.port, request)
        except (OSError, TimeoutError) as error:
            raise UnavailableError(f"no answer: {error!r}") from None
        head, _, content = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise UnavailableError(f"the answer is {head[:30]!r}")
        return parse_object(content, "the answer")


def post(netloc: str, token: str, route: str, body: dict[str, Any]) -> bytes:
    """Return a request with a body of JSON, after which the server closes the connection."""
    content = compact_json(body)
    head = (
        f"POST /{route} HTTP/1.1\r\nHost: {netloc}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + content


async def exchange(host: str | None, port: int | None, request: bytes) -> bytes:
    """Return the answer to ``request``, on a connection of its own."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


def _whole_lines(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    yield from text.rpartition("\n")[0].splitlines()
