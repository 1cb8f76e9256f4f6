"""What the keeper's two doors answer; their handlers without the sockets before them."""

from __future__ import annotations

import asyncio
import json
import stat
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from homeport.appmaster.lease import lease_server
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import CannotListenError
from homeport.job_coordinator.http.messages import LeaseAnswer, Renewal
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

TOKEN = "secret"  # noqa: S105 - of this test only
LEASE_MS, MARGIN_MS, ISOLATION_MS = 1000, 200, 4000
ATTEMPT = 2
FIRST, SECOND = (Incarnation(ProcessorId(name), 1) for name in "01")

Handler = Callable[[Any], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """A request as far as the handlers look at it."""

    body: bytes

    async def read(self) -> bytes:
        """The whole body."""
        return self.body


@dataclass
class Doors:
    """A server whose clock says ``now_ms``; its guard read the stream at the beginning."""

    now_ms: int = 0
    guard: RenewalGuard = field(default_factory=lambda: RenewalGuard(ISOLATION_MS, 0))

    def __post_init__(self) -> None:
        table = LeaseTable(LEASE_MS, 0)
        self.server = LeaseServer(
            table, self.guard, lease_ms=LEASE_MS, attempt=ATTEMPT, access=f"{TOKEN}\n"
        )

    def renew(self, incarnation: Incarnation, attempt: int = ATTEMPT) -> LeaseAnswer:
        """What a launcher's renewal is answered."""
        stated = self._stated(self.server._renew, Renewal(attempt, incarnation).to_json())
        assert stated["lease_ms"] == LEASE_MS
        return LeaseAnswer(stated["lease"])

    def ask(self, route: str, *incarnations: Incarnation) -> dict[str, Any]:
        """The answer to the driver: the revoked incarnations, and when the next can be."""
        listed = [{"processor_id": i.processor_id, "epoch": i.epoch} for i in incarnations]
        handler: Handler = getattr(self.server, f"_{route}")
        return self._stated(handler, {"incarnations": listed})

    def _stated(self, handler: Handler, body: object) -> dict[str, Any]:
        response = asyncio.run(_answered(handler, Asked(json.dumps(body).encode())))
        assert isinstance(response, web.Response)
        assert isinstance(response.body, bytes)
        found: dict[str, Any] = json.loads(response.body)
        return found


async def _answered(handler: Handler, asked: Asked) -> web.StreamResponse:
    return await handler(asked)


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> Doors:
    """With 0@1 registered at the beginning."""
    made = Doors()
    monkeypatch.setattr(lease_server, "boot_ms", lambda: made.now_ms)
    assert made.ask("register", FIRST)["revoked"] == []
    return made


def test_a_registered_incarnation_is_renewed(doors: Doors) -> None:
    """One that the keeper does not know yet is to ask again (safety L3)."""
    assert doors.renew(FIRST) is LeaseAnswer.GRANTED
    assert doors.renew(SECOND) is LeaseAnswer.LATER


def test_a_launcher_of_another_attempt_is_refused(doors: Doors) -> None:
    """Its own attempt's keeper may be gone; this one has not permitted what it runs."""
    assert doors.renew(FIRST, ATTEMPT - 1) is LeaseAnswer.NO


def test_an_outranked_keeper_refuses_all(doors: Doors) -> None:
    """Safety L2: a higher rank was seen, so no container of this attempt may run on."""
    doors.guard.is_outranked = True
    assert doors.renew(FIRST) is LeaseAnswer.NO


def test_a_keeper_that_has_not_heard_kafka_puts_all_off(doors: Doors) -> None:
    """Safety L2: until G after its last answered look, and not from then on."""
    doors.now_ms = ISOLATION_MS - 1
    assert doors.renew(FIRST) is LeaseAnswer.GRANTED
    doors.now_ms = ISOLATION_MS
    assert doors.renew(FIRST) is LeaseAnswer.LATER


def test_a_keeper_that_hears_renewals_was_not_late(doors: Doors) -> None:
    """A driver that polls late finds which leases have run out; no grace is due (safety L4)."""
    doors.ask("register", SECOND)
    for now_ms in range(0, 2 * LEASE_MS, 100):
        doors.now_ms = now_ms
        assert doors.renew(SECOND) is LeaseAnswer.GRANTED
    stated = doors.ask("revoked", FIRST, SECOND)
    assert stated["revoked"] == [{"processor_id": "0", "epoch": 1, "renewed_ms": None}]
    assert stated["due_ms"] == LEASE_MS + MARGIN_MS


def test_the_driver_receives_the_incarnations_revoked_before(doors: Doors) -> None:
    """Also when it registers them once more: they are not permitted again (safety L1)."""
    assert doors.renew(FIRST) is LeaseAnswer.GRANTED
    for now_ms in range(0, LEASE_MS + MARGIN_MS + 1, 100):
        doors.now_ms = now_ms
        doors.ask("revoked")
    expected = [{"processor_id": "0", "epoch": 1, "renewed_ms": 0}]
    assert doors.ask("revoked", FIRST)["revoked"] == expected
    assert doors.ask("register", FIRST)["revoked"] == expected
    assert doors.renew(FIRST) is LeaseAnswer.NO


def test_an_incarnation_that_has_stopped_is_renewed_no_more(doors: Doors) -> None:
    """The driver has it from the launcher that waited for it."""
    assert doors.ask("stopped", FIRST)["revoked"] == []
    assert doors.renew(FIRST) is LeaseAnswer.NO


def _server() -> LeaseServer:
    guard = RenewalGuard(ISOLATION_MS, 0)
    return LeaseServer(
        LeaseTable(LEASE_MS, 0), guard, lease_ms=LEASE_MS, attempt=ATTEMPT, access=TOKEN
    )


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_driver_s_door_is_its_user_s_alone() -> None:
    """Whatever an earlier keeper left at its place; both doors are closed at the end."""

    async def story(path: Path) -> None:
        server = _server()
        url = await server.start("127.0.0.1", 0, path)
        assert _mode(path) == 0o600
        await server.stop()
        again = _server()
        port = int(url.rstrip("/").rpartition(":")[2])
        assert await again.start("127.0.0.1", port, None) == url
        await again.stop()

    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) / "k"
        left.write_text("left behind", encoding="ascii")
        asyncio.run(story(left))


def test_a_keeper_that_cannot_listen_leaves_nothing_open() -> None:
    """It says so in one line; its process ends, and the next one tries again."""

    async def story(path: Path) -> None:
        server, other = _server(), _server()
        url = await other.start("127.0.0.1", 0, None)
        taken = int(url.rstrip("/").rpartition(":")[2])
        for port, place, why in ((0, path, "No such file"), (taken, None, "in use")):
            with pytest.raises(CannotListenError, match=f"the lease keeper cannot listen: .*{why}"):
                await server.start("127.0.0.1", port, place)
            assert server._ports == []
        await other.stop()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder) / "no such folder" / "k"))
