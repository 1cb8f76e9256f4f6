"""Clients without a token take the connections of a keeper's port; leases are renewed on.

The keeper has 300 files, so that hundreds of connections are too many for it.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from flooded_port import FILES, TOKEN, FloodedKeeper, flooded_keeper, is_closed

from homeport.job_coordinator.access.served_access import make_certificate
from homeport.job_coordinator.http.pinned_tls import CERTIFICATE_FILE_NAME, KEY_FILE_NAME
from homeport.job_coordinator.private_files import private_folder

_TAKEN = FILES + 100
_HALF = b"POST /v1/lease HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_UNFINISHED_HANDSHAKE = bytes.fromhex("16030100c8010000c40303")


def _one(_number: int) -> str:
    return ""


def _many(number: int) -> str:
    return f"127.0.1.{number % 200 + 1}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a submission: with key and certificate."""
    certificate, key = make_certificate("counts_1")
    with private_folder(tmp_path) as own:
        own.write(CERTIFICATE_FILE_NAME, certificate)
        own.write(KEY_FILE_NAME, key)
    return tmp_path


@contextlib.contextmanager
def _taken(
    keeper: FloodedKeeper, sent: bytes, source: Callable[[int], str] = _one
) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(keeper.connected(source(number), sent)) for number in range(_TAKEN)
        ]


@pytest.mark.parametrize("source", [_one, _many], ids=["one address", "many addresses"])
@pytest.mark.parametrize("sent", [b"", _HALF], ids=["nothing", "half a header"])
def test_a_lease_is_renewed_beside_connections_without_a_token(
    tmp_path: Path, sent: bytes, source: Callable[[int], str]
) -> None:
    """By a launcher that holds its connection, and by one that comes for the first time."""
    with flooded_keeper(tmp_path) as keeper, closing(keeper.client(holds=True)) as held:
        assert keeper.is_renewed(held)
        with _taken(keeper, sent, source) as taken:
            for _ in range(5):
                assert keeper.is_renewed(held)
                assert keeper.is_renewed()
            assert not is_closed(taken[-1])
            assert is_closed(taken[0])


def test_a_lease_is_renewed_beside_handshakes_that_do_not_end(folder: Path) -> None:
    """Of TLS: such connections have sent no request, and never will."""
    with flooded_keeper(folder, is_tls=True) as keeper, closing(keeper.client(holds=True)) as held:
        assert keeper.is_renewed(held)
        with _taken(keeper, _UNFINISHED_HANDSHAKE, _many):
            for _ in range(3):
                assert keeper.is_renewed(held)
                assert keeper.is_renewed()


def test_a_lease_is_renewed_by_ipv6(tmp_path: Path) -> None:
    """All addresses of a network of 64 bits count as one."""
    with flooded_keeper(tmp_path, "::1") as keeper:
        assert keeper.url.startswith("http://[::1]:")
        with _taken(keeper, _HALF):
            assert keeper.is_renewed()


def test_what_has_shown_the_token_stays(tmp_path: Path) -> None:
    """However many others come, and however long it says nothing."""
    request = (
        "POST /v1/lease HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n{{}}"
    )
    with flooded_keeper(tmp_path) as keeper, contextlib.ExitStack() as stack:
        known = [
            stack.enter_context(keeper.connected(sent=request.encode())) for _ in range(FILES // 3)
        ]
        for connection in known:
            assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")
        with _taken(keeper, b"", _many):
            assert keeper.is_renewed()
            assert not any(map(is_closed, known))


def test_what_is_no_http_is_one_line_without_what_was_sent(tmp_path: Path) -> None:
    """Of the log; the answer names no version of the server, and reflects nothing."""
    with flooded_keeper(tmp_path) as keeper:
        sent = f"POST / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\x01\r\n\r\n".encode()
        for _ in range(100):
            with keeper.connected(sent=sent) as connection:
                answer = connection.recv(65_536)
        for part in (b"aiohttp", b"Python", b"Bearer"):
            assert part not in answer
        assert b"X-Content-Type-Options: nosniff" in answer
        assert keeper.is_renewed()
        log = keeper.log.read_text(encoding="utf-8")
    assert TOKEN not in log
    assert "Traceback" not in log
    assert len(re.findall("Error handling request", log)) <= 60


def test_a_connection_that_asks_nothing_is_closed(tmp_path: Path) -> None:
    """Whether it sends nothing or half a header; one that has shown the token is not."""
    with flooded_keeper(tmp_path) as keeper, closing(keeper.client(holds=True)) as held:
        assert keeper.is_renewed(held)
        with keeper.connected() as empty, keeper.connected(sent=_HALF) as half:
            for connection in (empty, half):
                connection.settimeout(60)
                assert connection.recv(1) == b""
        assert keeper.is_renewed(held)
