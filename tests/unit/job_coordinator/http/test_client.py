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
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", UnavailableError, "no answer"),
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


class _Counting:
    """A server that answers ``answers`` requests by each connection, and then closes it."""

    def __init__(self, listening: socket.socket, answers: list[int]) -> None:
        self.connections = 0
        self.requests = 0
        self._listening, self._answers = listening, answers
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for answers in self._answers:
            connection, _ = self._listening.accept()
            self.connections += 1
            with connection:
                for _ in range(answers):
                    assert connection.recv(65536)
                    self.requests += 1
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def join(self) -> None:
        """All connections are closed."""
        self._thread.join(30)


def test_a_client_that_holds_its_connection_needs_no_new_one(stranger: socket.socket) -> None:
    """Until it breaks: then the same call is made by another one."""
    server = _Counting(stranger, [3, 2])
    client = CoordinatorClient(f"http://127.0.0.1:{stranger.getsockname()[1]}/", TOKEN, holds=True)
    for _ in range(5):
        assert client.status_body() == {}
    client.close()
    server.join()
    assert (server.connections, server.requests) == (2, 5)


def test_a_client_that_holds_recovers_from_a_server_that_was_away(stranger: socket.socket) -> None:
    """While there is none each call is refused; the next server is found."""
    address = stranger.getsockname()
    server = _Counting(stranger, [1])
    client = CoordinatorClient(f"http://127.0.0.1:{address[1]}/", TOKEN, holds=True)
    assert client.status_body() == {}
    server.join()
    stranger.close()
    for _ in range(2):
        with pytest.raises(UnavailableError, match="no answer"):
            client.status()
    with socket.create_server(address) as back:
        again = _Counting(back, [1])
        assert client.status_body() == {}
        client.close()
        again.join()


def test_a_held_connection_that_is_silent_costs_one_time_out(stranger: socket.socket) -> None:
    """The next call opens another one."""
    url = f"http://127.0.0.1:{stranger.getsockname()[1]}/"
    client = CoordinatorClient(url, TOKEN, timeout_s=0.05, holds=True)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="no answer: timed out"):
            client.status()
    for _ in range(2):
        stranger.accept()[0].close()
