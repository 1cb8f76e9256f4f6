"""What is said to the lease keeper's doors: an answer, or 400 in one line; never 500."""

from __future__ import annotations

import asyncio
import json
import stat
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_bodies import bodies

from homeport.appmaster.lease import lease_server
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import CannotListenError
from homeport.job_coordinator.access.job_access import ACCESS_ROUTE, JobSecret
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.http.messages import LeaseAnswer, Renewal
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

TOKEN = "a-token-of-a-test"  # noqa: S105 - opens a server of this test only
PAGE = Path(__file__).parents[4] / "docs" / "security-roles.md"
ONE = Incarnation(ProcessorId("0"), 1)
LIST = {"incarnations": [{"processor_id": "0", "epoch": 1}]}
Ask = Callable[[str, bytes], Coroutine[Any, Any, tuple[int, bytes]]]


def _with_keeper(story: Callable[[Ask, str], Coroutine[Any, Any, None]]) -> None:
    """The story with both doors of a keeper open; it asks by route and body."""

    async def play() -> None:
        table, guard = LeaseTable(1000, 0), RenewalGuard(1000, 0)
        keeper = LeaseServer(table, guard, lease_ms=1000, attempt=1, access=TOKEN)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "k"
            url = await keeper.start("127.0.0.1", 0, path)
            local = aiohttp.UnixConnector(path=str(path))
            async with (
                aiohttp.ClientSession() as public,
                aiohttp.ClientSession(connector=local) as private,
            ):

                async def ask(route: str, body: bytes) -> tuple[int, bytes]:
                    session = public if route == "v1/lease" else private
                    headers = {"Authorization": f"Bearer {TOKEN}"}
                    async with session.post(url + route, data=body, headers=headers) as answer:
                        return answer.status, await answer.read()

                await story(ask, url)
            await keeper.stop()

    asyncio.run(play())


def test_each_request_to_the_port_has_a_row() -> None:
    """And a row is what the port answers: the second table of docs/security-roles.md."""
    cells = (line.strip("|").split("|") for line in PAGE.read_text(encoding="utf-8").splitlines())
    rows = {row[0].strip(" `"): [c.strip() for c in row[1:]] for row in cells if len(row) == 3}
    bodies_of = {"POST /v1/lease": Renewal(1, ONE).to_json(), f"GET {ACCESS_ROUTE}": None}
    assert {*bodies_of} == {name for name in rows if " /" in name}

    async def play() -> None:
        access = ServedAccess(TOKEN, JobSecret(b"secret"))
        keeper = LeaseServer(
            LeaseTable(1000, 0), RenewalGuard(1000, 0), lease_ms=1000, attempt=1, access=access
        )
        url = await keeper.start("127.0.0.1", 0, None)
        router = keeper._ports[0]._runner.app.router
        routes = {f"{r.method} {r.resource and r.resource.canonical}" for r in router.routes()}
        assert {name for name in routes if not name.startswith("HEAD")} == {*bodies_of}
        async with aiohttp.ClientSession() as session:
            for name, body in bodies_of.items():
                method, _, path = name.partition(" /")
                for may, token in zip(rows[name], (None, TOKEN), strict=True):
                    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                    asked = f"{url}{path}?nonce={'0' * 32}"
                    async with session.request(method, asked, json=body, headers=headers) as answer:
                        assert answer.status == (200 if may == "yes" else 401), (name, token)
        await keeper.stop()

    asyncio.run(play())


@pytest.mark.search
@settings(max_examples=20)
@given(st.lists(bodies(Renewal(1, ONE).to_json()), max_size=15), st.lists(bodies(LIST), max_size=9))
def test_a_request_is_accepted_or_refused_in_one_line(
    leases: list[bytes], lists: list[bytes]
) -> None:
    """Of launchers and of the driver."""

    async def story(ask: Ask, _: str) -> None:
        sent = [("v1/lease", body) for body in leases]
        sent += [(r, body) for body in lists for r in ("register", "revoked", "stopped")]
        for route, body in sent:
            status, content = await ask(route, body)
            assert status in {200, 400}
            if status == 400:
                assert "\n" not in json.loads(content)["error"]

    _with_keeper(story)


def test_only_a_client_with_the_token_is_heard() -> None:
    """At both doors; a message that is no renewal gets its reason, and the keeper goes on."""

    async def story(ask: Ask, url: str) -> None:
        body = json.dumps(Renewal(1, ONE).to_json()).encode()
        async with aiohttp.ClientSession() as session:
            for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": TOKEN}):
                async with session.post(f"{url}v1/lease", data=body, headers=headers) as answer:
                    assert answer.status == 401
                    assert "bearer token" in (await answer.json())["error"]
                    assert answer.headers["Server"] == "homeport"
                    assert answer.headers["X-Frame-Options"] == "DENY"
        assert (await ask("v1/lease", b"{}"))[0] == 400
        assert (await ask("v1/lease", body))[0] == 200

    _with_keeper(story)


def test_a_guesser_at_the_keeper_has_to_wait() -> None:
    """The launchers beside it have not."""

    async def story(ask: Ask, url: str) -> None:
        async with aiohttp.ClientSession() as session:
            statuses = []
            for number in range(12):
                headers = {"Authorization": f"Bearer guess{number}"}
                async with session.post(f"{url}v1/lease", headers=headers) as answer:
                    statuses.append(answer.status)
        assert statuses == [401] * 10 + [429] * 2
        body = json.dumps(Renewal(1, ONE).to_json()).encode()
        assert (await ask("v1/lease", body))[0] == 200

    _with_keeper(story)


def test_an_empty_token_opens_no_keeper() -> None:
    """Everyone would hold it."""
    table, guard = LeaseTable(1000, 0), RenewalGuard(1000, 0)
    with pytest.raises(ValueError, match="token is empty"):
        LeaseServer(table, guard, lease_ms=1000, attempt=1, access="")


def test_a_token_that_is_no_text_is_refused() -> None:
    """As any other that is wrong."""

    async def story(_: Ask, url: str) -> None:
        address = urlsplit(url)
        for token in (b"x", b"\xe4", "ä".encode()):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            head = b"POST /v1/lease HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"
            writer.write(head + b"Authorization: Bearer " + token + b"\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
            writer.close()

    _with_keeper(story)


# --- what the keeper's two doors answer; their handlers without the sockets before them


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
