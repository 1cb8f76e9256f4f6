"""The driver's connection to a keeper: its answers, and each way in which there is none."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer

import pytest

from homeport.appmaster.lease import keeper_link
from homeport.appmaster.lease.keeper_link import SOCKET_NAME, KeeperLink, KeeperReport
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

TOKEN = "a-token-of-a-test"  # noqa: S105 - opens a server of this test only
FIRST, SECOND = (Incarnation(ProcessorId(name), 1) for name in "01")


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
    assert registered == KeeperReport(url, ())
    assert (asked.url, asked.revoked, asked.renewed_ms) == (url, (FIRST,), {})
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
    monkeypatch.setattr(keeper_link, "_TIMEOUT_S", 0.01)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(SOCKET_NAME)
        silent.listen()
        with pytest.raises(UnavailableError, match="does not answer: TimeoutError"):
            KeeperLink(folder, TOKEN).register(FIRST)
