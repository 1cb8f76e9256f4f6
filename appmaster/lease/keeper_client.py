"""The driver's client of the lease keeper: over a local socket, never on the event loop.

The socket is in the AM's private folder, and the driver shows the job's token.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TypeVar

from homeport.config.config import LONG_MAX
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    incarnations_from_json,
    incarnations_to_json,
)
from homeport.job_coordinator.model.json_values import (
    compact_json,
    optional_number,
    parse_object,
    required_field,
)

_T = TypeVar("_T")

SOCKET_NAME = "keeper.sock"
"""Relative to the AM's folder: the whole path would be too long for a socket."""

_TIMEOUT_S = 2.0
_OK = 200

log = logging.getLogger("driver")


@dataclass(frozen=True, slots=True)
class KeeperReport:
    """The keeper's answer.

    Attributes:
        url: where launchers renew.
        revoked: {incarnation that has stopped, and will never be renewed again: when it was renewed
            last, on CLOCK_BOOTTIME; None: never}.
        due_ms: in how many ms the first of the others can run out; None: not known.
    """

    url: str
    revoked: Mapping[Incarnation, int | None]
    due_ms: int | None = None


def report_from_json(body: Mapping[str, Any]) -> KeeperReport:
    """Return the report in ``body``; WireError if a field is missing or wrong."""
    revoked = incarnations_from_json(body, "revoked")
    renewed_ms = [optional_number(item, "renewed_ms") for item in body["revoked"]]
    due_ms = optional_number(body, "due_ms", -LONG_MAX)
    renewals = dict(zip(revoked, renewed_ms, strict=True))
    return KeeperReport(required_field(body, "url", str), renewals, due_ms)


class KeeperLink:
    """The keeper's socket; each call has its own connection.

    Each call raises UnavailableError if there is no answer.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self._path = str(folder / SOCKET_NAME)
        self._token = token

    def register(self, incarnation: Incarnation) -> KeeperReport:
        """Register the incarnation for renewals, unless it is among the revoked ones."""
        return self._ask("register", [incarnation])

    def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
        """Revoke those of ``live`` whose lease has run out; the others may be renewed."""
        return self._ask("revoked", live)

    def stopped(self, incarnation: Incarnation) -> None:
        """Forbid renewals of the incarnation: its launcher has reported the stop."""
        self._ask("stopped", [incarnation])

    def _ask(self, route: str, incarnations: Iterable[Incarnation]) -> KeeperReport:
        body = compact_json({"incarnations": incarnations_to_json(incarnations)})
        connection = _UnixConnection(self._path)
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Connection": "close"}
            connection.request("POST", f"/{route}", body, headers)
            answer = connection.getresponse()
            status, content = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"the lease keeper does not answer: {error!r}") from None
        finally:
            connection.close()
        if status != _OK:
            raise UnavailableError(f"the lease keeper answers {status}")
        try:
            return report_from_json(parse_object(content, "the keeper's answer"))
        except WireError as error:
            raise UnavailableError(f"the lease keeper's answer: {error}") from None


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(self._path)


class KeeperClient:
    """Asks the keeper one request at a time, in a thread.

    ``url``: where launchers renew; None until the keeper has answered. ``due_ms``: the value in its
    last answer. ``fault``: why the last request had no answer; None: it had one.
    """

    def __init__(self, keeper: KeeperLink) -> None:
        self.url: str | None = None
        self.due_ms: int | None = None
        self.fault: str | None = None
        self._keeper = keeper
        self._over: set[Incarnation] = set()
        self._is_closed = False
        self._pool = ThreadPoolExecutor(1, "leases")

    async def revoked(self, live: Iterable[Incarnation]) -> Mapping[Incarnation, int | None]:
        """Return those of ``live`` that have run out, each of them once (safety L1), in order.

        Shape: {incarnation: its last renewal, on CLOCK_BOOTTIME; None: there was none}.
        """
        asked = frozenset(live) - self._over
        report = await self._ask(partial(self._keeper.revoked, asked))
        if report is None:
            return {}
        self.url, self.due_ms = report.url, report.due_ms
        self._over.update(report.revoked)
        return report.revoked

    async def grants(self, incarnation: Incarnation) -> bool:
        """Return whether the keeper allows the permit; before the launcher gets it (safety L3)."""
        report = await self._ask(partial(self._keeper.register, incarnation))
        if report is None:
            return False
        self.url = report.url
        return incarnation not in report.revoked

    async def ended(self, incarnation: Incarnation) -> None:
        """Report the stop of the incarnation to the keeper, if that can be reached."""
        self._over.add(incarnation)
        await self._ask(partial(self._keeper.stopped, incarnation))

    def close(self) -> None:
        """Send no further request; a caller that waits gets no answer, and goes on."""
        self._is_closed = True
        self._pool.shutdown(wait=False)

    async def _ask(self, call: Callable[[], _T]) -> _T | None:
        if self._is_closed:
            return None
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._put, call)
        except UnavailableError as e:
            log.warning("%s", e)
            self.fault = str(e)
            return None
        self.fault = None
        return answer

    def _put(self, call: Callable[[], _T]) -> _T | None:
        # A request that waits at the closing is not cancelled: else a launcher's report of a stop,
        # which may have ended the job, would fail.
        return None if self._is_closed else call()
