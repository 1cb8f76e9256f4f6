"""What the driver learns of the keeper: answers that take their time, and none at all."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from threading import Event

import pytest

from homeport.appmaster.lease import keeper_client
from homeport.appmaster.lease.keeper_client import (
    SOCKET_NAME,
    KeeperClient,
    KeeperLink,
    KeeperReport,
)
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

FIRST, SECOND = (Incarnation(ProcessorId(name), 1) for name in "01")


class SlowKeeper(KeeperLink):
    """Answers once ``may_answer`` is set; ``is_asked`` as soon as a question is there."""

    def __init__(self) -> None:
        super().__init__(Path(), "")
        self.is_asked, self.may_answer = Event(), Event()
        self.stated: list[Incarnation] = []

    def register(self, incarnation: Incarnation) -> KeeperReport:
        """No incarnation is revoked."""
        return self.revoked([incarnation])

    def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
        """None of them."""
        del live
        self._answer()
        return KeeperReport("http://keeper/", {})

    def stopped(self, incarnation: Incarnation) -> None:
        """Remembered."""
        self._answer()
        self.stated.append(incarnation)

    def _answer(self) -> None:
        self.is_asked.set()
        self.may_answer.wait()


def test_closing_cancels_no_waiting_caller() -> None:
    """A launcher whose report of a stop ends the job gets its answer: what it reported is known."""
    keeper = SlowKeeper()

    async def story() -> None:
        desk = KeeperClient(keeper)
        asked = asyncio.ensure_future(desk.revoked([FIRST]))
        await asyncio.to_thread(keeper.is_asked.wait)
        in_line = asyncio.ensure_future(desk.ended(FIRST))
        await asyncio.sleep(0)  # it stands in line
        desk.close()
        late = asyncio.ensure_future(desk.ended(SECOND))
        keeper.may_answer.set()
        assert await asked == {}
        await asyncio.gather(in_line, late)
        assert not await desk.grants(SECOND)

    asyncio.run(story())
    assert keeper.stated == []  # no request follows


def test_an_incarnation_known_to_have_stopped_is_not_requested() -> None:
    """Nor a revoked one: each is reported once, and no request repeats what is known."""
    asked: list[frozenset[Incarnation]] = []

    class Keeper(SlowKeeper):
        def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
            asked.append(frozenset(live))
            return KeeperReport("http://keeper/", dict.fromkeys(asked[-1] & {SECOND}))

    async def story() -> None:
        keeper = Keeper()
        keeper.may_answer.set()
        desk = KeeperClient(keeper)
        await desk.ended(FIRST)
        assert list(await desk.revoked([FIRST, SECOND])) == [SECOND]
        assert await desk.revoked([FIRST, SECOND]) == {}
        desk.close()

    asyncio.run(story())
    assert asked == [frozenset({SECOND}), frozenset()]


def test_the_address_for_launchers_is_that_of_the_last_answer() -> None:
    """There is none before; the keeper hears of each stop; no thread is left after the closing."""
    keeper = SlowKeeper()
    keeper.may_answer.set()

    async def story() -> None:
        desk = KeeperClient(keeper)
        assert (desk.url, desk.due_ms) == (None, None)
        assert await desk.grants(FIRST)
        assert desk.url == "http://keeper/"
        await desk.ended(FIRST)
        desk.close()

    asyncio.run(story())
    assert keeper.stated == [FIRST]
    for thread in threading.enumerate():
        if thread.name.startswith("leases"):
            thread.join(timeout=10)
            assert not thread.is_alive()


def test_a_keeper_that_is_away_revokes_nothing_and_grants_nothing() -> None:
    """Only its answer is evidence (safety L1); a permit waits until it knows of it (safety L3)."""

    class AbsentKeeper(SlowKeeper):
        is_back = False

        def _answer(self) -> None:
            if not self.is_back:
                raise UnavailableError("the lease keeper does not answer")

    async def story() -> None:
        keeper = AbsentKeeper()
        desk = KeeperClient(keeper)
        assert desk.fault is None
        assert await desk.revoked([FIRST]) == {}
        assert not await desk.grants(FIRST)
        await desk.ended(FIRST)
        assert (desk.url, desk.due_ms) == (None, None)
        faults = [desk.fault]
        keeper.is_back = True
        assert await desk.grants(FIRST)
        assert [*faults, desk.fault] == ["the lease keeper does not answer", None]
        desk.close()

    asyncio.run(story())


# --- the driver's connection to a keeper: its answers, and each way in which there is none


TOKEN = "a-token-of-a-test"  # noqa: S105 - opens a server of this test only


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The AM's, by the short name that a socket needs."""
    monkeypatch.chdir(tmp_path)
    return Path()


def with_keeper(folder: Path, story: Callable[[], None]) -> str:
    """The story beside a keeper whose socket is in the folder. Returns the launchers' address."""

    async def play() -> str:
        table, guard = LeaseTable(600_000, 0), RenewalGuard(600_000, 0)
        keeper = LeaseServer(table, guard, lease_ms=600_000, attempt=1, access=TOKEN)
        url = await keeper.start("127.0.0.1", 0, folder / SOCKET_NAME)
        try:
            await asyncio.to_thread(story)
        finally:
            await keeper.stop()
        return url

    return asyncio.run(play())


def test_what_has_stopped_is_revoked_and_the_rest_is_not(folder: Path) -> None:
    """Each answer has the launchers' address; one never renewed has no time of a renewal."""
    found: list[KeeperReport] = []

    def story() -> None:
        link = KeeperLink(folder, TOKEN)
        found.append(link.register(FIRST))
        link.stopped(FIRST)
        found.append(link.revoked([FIRST, SECOND]))

    url = with_keeper(folder, story)
    registered, asked = found
    assert registered == KeeperReport(url, {})
    assert (asked.url, asked.revoked) == (url, {FIRST: None})
    assert asked.due_ms is not None


def test_a_keeper_that_refuses_the_token_has_not_answered(folder: Path) -> None:
    """Its status is named."""

    def story() -> None:
        with pytest.raises(UnavailableError, match="the lease keeper answers 401"):
            KeeperLink(folder, "another").register(FIRST)

    with_keeper(folder, story)


def test_a_keeper_that_is_not_there_has_not_answered(folder: Path) -> None:
    """As before its first start, and after its end."""
    with pytest.raises(UnavailableError, match="the lease keeper does not answer"):
        KeeperLink(folder, TOKEN).register(FIRST)


class _Stranger(BaseHTTPRequestHandler):
    """Sends an answer that no keeper gives."""

    def do_POST(self) -> None:
        """A list, where a report is an object."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def stranger(folder: Path) -> Iterator[None]:
    """A server that is no keeper."""
    with UnixStreamServer(str(folder / SOCKET_NAME), _Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("stranger")
def test_what_is_no_report_is_no_answer(folder: Path) -> None:
    """Nothing is taken for revoked or granted by it."""
    with pytest.raises(UnavailableError, match="the lease keeper's answer: "):
        KeeperLink(folder, TOKEN).register(FIRST)


def test_a_keeper_that_stands_still_has_not_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the connection, and nothing comes: the request has an end of its own."""
    monkeypatch.setattr(keeper_client, "_TIMEOUT_S", 0.01)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(SOCKET_NAME)
        silent.listen()
        with pytest.raises(UnavailableError, match="does not answer: TimeoutError"):
            KeeperLink(folder, TOKEN).register(FIRST)
