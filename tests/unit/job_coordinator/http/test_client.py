"""The client, and addresses without the job coordinator's server: empty, dead, foreign."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from homeport.config.errors import ConfigError, UnavailableError, WireError
from homeport.job_coordinator.http.client import CoordinatorClient

TOKEN = "a-token-of-a-test"  # noqa: S105 - opens nothing


def test_an_am_that_is_gone_is_unavailable() -> None:
    """Nothing listens: one error that names the URL."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(UnavailableError, match=rf"GET http://127\.0\.0\.1:{port}/v1/status: no "):
        CoordinatorClient(f"http://127.0.0.1:{port}/", TOKEN).status()


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """A socket that listens and is no server of ours."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def _answer(listening: socket.socket, data: bytes) -> threading.Thread:
    def run() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(data)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_an_am_that_does_not_answer_is_unavailable(stranger: socket.socket) -> None:
    """A frozen AM costs the time-out and no more."""
    url = f"http://127.0.0.1:{stranger.getsockname()[1]}/"
    with pytest.raises(UnavailableError, match="no answer: timed out"):
        CoordinatorClient(url, TOKEN, timeout_s=0.05).status()


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (b"", UnavailableError, "no answer"),
        (b"SSH-2.0-OpenSSH\r\n", UnavailableError, "no answer"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{",
            UnavailableError,
            "no answer",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", WireError, "is not JSON"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 6\r\n\r\n<html>", WireError, "404"),
        (b"HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", WireError, "302"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", UnavailableError, "502"),
    ],
)
def test_a_stranger_on_the_port_is_not_believed(
    stranger: socket.socket, answer: bytes, error: type[Exception], text: str
) -> None:
    """Silence, noise, half an answer and other programs' answers are errors of the two kinds."""
    thread = _answer(stranger, answer)
    client = CoordinatorClient(f"http://127.0.0.1:{stranger.getsockname()[1]}/", None)
    with pytest.raises(error, match=text):
        client.status()
    thread.join(timeout=30)


@pytest.mark.parametrize(
    "url", ["", "h:1", "ftp://h:1/", "https://", "http://", "http://h:x/", "http://h:1/?a=b"]
)
def test_a_url_of_another_form_is_refused(url: str) -> None:
    """The message names the variable and the form."""
    with pytest.raises(ConfigError, match=r"SAMZA_COORDINATOR_URL.*http://host:port/"):
        CoordinatorClient(url, None)
