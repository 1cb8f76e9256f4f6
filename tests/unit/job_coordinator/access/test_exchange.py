"""The exchange of the job's own token and certificate, with real servers on the loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from threading import Thread
from typing import ClassVar
from urllib.request import urlopen

import pytest
from coordinator_server import CHECK_IN, ORDER, TOKEN, Backend, Loop, small_model

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import NoRightError, UnavailableError, WireError
from homeport.job_coordinator.access.job_access import JobSecret, ShownAccess, require_nonce
from homeport.job_coordinator.access.served_access import ServedAccess, make_certificate
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.pinned_tls import (
    CERTIFICATE_FILE_NAME,
    KEY_FILE_NAME,
    SECRET_FILE_NAME,
    secret_beside,
    server_context,
)
from homeport.job_coordinator.http.port.connections import LIMIT
from homeport.job_coordinator.http.server import JobCoordinatorServer

SECRET = JobSecret(bytes(range(32)))
KEY = keys.JOB_COORDINATOR_ACCESS_GENERATION.name
NONCE = "0123456789abcdef" * 2


def certified(folder: Path) -> tuple[str, SSLContext | None]:
    """A new certificate, and the server's side of it, from files in the folder."""
    certificate, key = make_certificate("counts_1")
    (folder / CERTIFICATE_FILE_NAME).write_bytes(certificate)
    (folder / KEY_FILE_NAME).write_bytes(key)
    return certificate.decode(), server_context(folder)


class Exchanged:
    """A server whose job's configuration a test changes."""

    def __init__(self, loop: Loop, access: ServedAccess) -> None:
        self.backend = Backend()
        self.server = JobCoordinatorServer(
            self.backend, access, "127.0.0.1", 0, launchers=self.backend
        )
        self.port = loop.run(self.server.start())[1]
        self.url = f"{'http' if access.tls is None else 'https'}://127.0.0.1:{self.port}/"

    def exchange(self, generation: int) -> None:
        """The configuration in force has it."""
        self.backend.models[None] = small_model(**{KEY: str(generation)})


@pytest.fixture
def plain(loop: Loop) -> Iterator[Exchanged]:
    """One that speaks http."""
    exchanged = Exchanged(loop, ServedAccess(TOKEN, SECRET))
    yield exchanged
    loop.run(exchanged.server.stop())


def test_a_client_with_the_secret_goes_on(plain: Exchanged) -> None:
    """Whatever generations it has missed; the former token is refused, also while others go on."""
    client = CoordinatorClient(plain.url, TOKEN, secret=SECRET)
    assert client.check_in(CHECK_IN) == ORDER
    for generation in (1, 5):
        plain.exchange(generation)
        assert client.check_in(CHECK_IN) == ORDER
        assert client.at(plain.url, 5.0).check_in(CHECK_IN) == ORDER
        assert client.access(SECRET) == ShownAccess(generation)
    for token in (TOKEN, SECRET.token(1)):
        with pytest.raises(WireError, match="401"):
            CoordinatorClient(plain.url, token).check_in(CHECK_IN)
    assert CoordinatorClient(plain.url, SECRET.token(5)).check_in(CHECK_IN) == ORDER


def test_a_program_that_begins_later_goes_on_too(plain: Exchanged) -> None:
    """YARN gives it the submission's token; one without the secret is refused."""
    plain.exchange(3)
    begun = CoordinatorClient(plain.url, TOKEN, secret=SECRET)
    assert begun.check_in(CHECK_IN) == ORDER
    with pytest.raises(WireError, match="401"):
        CoordinatorClient(plain.url, TOKEN).check_in(CHECK_IN)
    with pytest.raises(WireError, match="401"):
        CoordinatorClient(plain.url, TOKEN, secret=JobSecret(b"another")).check_in(CHECK_IN)


def test_the_former_token_is_not_counted_as_wrong(plain: Exchanged) -> None:
    """Else a host with many launchers would be shut out by their first requests."""
    plain.exchange(3)
    for token in (TOKEN, SECRET.token(1), SECRET.token(2)):
        for _ in range(LIMIT):
            with pytest.raises(NoRightError, match=r"401 the job's token has been exchanged"):
                CoordinatorClient(plain.url, token).check_in(CHECK_IN)
    with pytest.raises(NoRightError, match="401 the bearer token is not this job's"):
        CoordinatorClient(plain.url, "wrong").check_in(CHECK_IN)


def test_a_submission_without_a_secret_keeps_its_token(loop: Loop) -> None:
    """One of an earlier release: the key has no effect, and the route refuses in one line."""
    exchanged = Exchanged(loop, ServedAccess(TOKEN))
    exchanged.exchange(4)
    try:
        client = CoordinatorClient(exchanged.url, TOKEN, secret=SECRET)
        assert client.check_in(CHECK_IN) == ORDER
        with pytest.raises(WireError, match="not exchanged while it runs"):
            client.access(SECRET)
    finally:
        loop.run(exchanged.server.stop())


def test_certificates_are_exchanged_too(loop: Loop, tmp_path: Path) -> None:
    """A client that trusts the former one takes the new one by its proof, not another server's."""
    certificate, tls = certified(tmp_path)
    new = list[str]()
    exchanged = Exchanged(loop, ServedAccess(TOKEN, SECRET, tls, certificate, new.append))
    client = CoordinatorClient(exchanged.url, TOKEN, certificate=certificate, secret=SECRET)
    stranger = CoordinatorClient(exchanged.url, None, certificate=certificate)
    impostor = Exchanged(loop, ServedAccess("x", JobSecret(b"another"), server_context(tmp_path)))
    try:
        assert client.check_in(CHECK_IN) == ORDER
        exchanged.exchange(1)
        assert client.check_in(CHECK_IN) == ORDER
        assert client.access(SECRET).certificate == new[0] != certificate
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY"):
            stranger.status()
        assert CoordinatorClient(exchanged.url, None, certificate=new[0]).status_body()
        impostor.exchange(2)
        with pytest.raises(WireError, match="does not have the secret of this submission"):
            client.at(impostor.url, 5.0).access(SECRET)
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY"):
            client.at(impostor.url, 5.0).check_in(CHECK_IN)
        assert not impostor.backend.said
    finally:
        loop.run(exchanged.server.stop())
        loop.run(impostor.server.stop())


def test_an_exchange_needs_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A full disk would end the keeper, and all containers with it."""
    certificate, tls = certified(tmp_path)
    access = ServedAccess(TOKEN, SECRET, tls, certificate)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    access.exchange(1)
    assert access.token == SECRET.token(1).encode()
    assert access.certificate not in {None, certificate}


def test_a_generation_only_rises() -> None:
    """A record that names a former one gives no former token back."""
    access = ServedAccess(TOKEN, SECRET)
    access.exchange(3)
    for former in (2, 1, 0):
        access.exchange(former)
        assert access.token == SECRET.token(3).encode()


class Relay(BaseHTTPRequestHandler):
    """Passes each question on to the AM, and keeps the tokens that come."""

    am = ""
    tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        """What the AM answers to it."""
        with urlopen(f"{self.am}{self.path[1:]}") as answer:  # noqa: S310 - the server of this test
            body = answer.read()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """A change has the token."""
        self.tokens.append(self.headers["Authorization"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


@pytest.fixture
def relay(plain: Exchanged) -> Iterator[str]:
    """The URL of a server that another program has written into the coordinator stream."""
    Relay.am, Relay.tokens = plain.url, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_server_that_has_no_secret_gets_no_token(plain: Exchanged, relay: str) -> None:
    """Nor does one that passes the question on to the AM."""
    CoordinatorClient(plain.url, TOKEN).require_proof(SECRET)
    with pytest.raises(WireError, match="does not have the secret"):
        CoordinatorClient(plain.url, TOKEN).require_proof(JobSecret(b"another"))
    with pytest.raises(WireError, match="it answers for the server at "):
        CoordinatorClient(relay, TOKEN).require_proof(SECRET)


def test_a_server_with_another_certificate_gets_no_token(loop: Loop, tmp_path: Path) -> None:
    """The stream may name its certificate too: only the proven one is trusted."""
    folders = (tmp_path / "am", tmp_path / "other")
    for folder in folders:
        folder.mkdir()
    (own, _), (other, others) = map(certified, folders)
    # One that passes the question on shows what the AM shows, with a key of its own.
    passing = ServedAccess(TOKEN, SECRET, others, own)
    http = ServedAccess(TOKEN, SECRET, others, None)
    servers = [Exchanged(loop, access) for access in (passing, http)]
    try:
        client = CoordinatorClient(servers[0].url, TOKEN, certificate=other)
        client.require_proof(SECRET)
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY"):
            client.shutdown()
        with pytest.raises(WireError, match="it answers for a server without https"):
            CoordinatorClient(servers[1].url, TOKEN, certificate=other).require_proof(SECRET)
    finally:
        for server in servers:
            loop.run(server.server.stop())


def test_a_proof_is_of_one_question_and_one_answer() -> None:
    """What was heard before, or is changed on its way, proves nothing."""
    access = ServedAccess(TOKEN, SECRET)
    access.exchange(2)
    body = json.loads(json.dumps(access.answer(NONCE, "h:1")))
    assert SECRET.proven(NONCE, body) == ShownAccess(2)
    for nonce, changed in (
        (NONCE[::-1], body),
        (NONCE, body | {"generation": 1}),
        (NONCE, body | {"certificate": "x"}),
        (NONCE, body | {"proof": ""}),
        (NONCE, body | {"address": "h:2"}),
    ):
        with pytest.raises(WireError, match="does not have the secret"):
            SECRET.proven(nonce, changed)
    with pytest.raises(WireError):
        SECRET.proven(NONCE, {"generation": 2})


@pytest.mark.parametrize("nonce", [None, "", "x" * 32, NONCE.upper(), NONCE + "0", "٣" * 32])
def test_a_nonce_is_32_hexadecimal_digits(nonce: str | None) -> None:
    """No other text is put into what the secret answers for."""
    with pytest.raises(WireError, match="nonce must be 32 hexadecimal digits"):
        require_nonce(nonce)


def test_tokens_differ_by_generation_and_secret() -> None:
    """None shows another, nor the secret, whose text is in no log."""
    tokens = {SECRET.token(n) for n in range(1, 50)} | {JobSecret(b"other").token(1)}
    assert len(tokens) == 50
    assert all(len(token) == 43 and token.isascii() for token in tokens)
    assert repr(SECRET) == "JobSecret()"


def test_the_secret_comes_beside_the_token(tmp_path: Path) -> None:
    """A container of an earlier release's submission has none."""
    token = tmp_path / "homeport-token"
    assert secret_beside(token) is None
    (tmp_path / SECRET_FILE_NAME).write_bytes(SECRET.value)
    assert secret_beside(token) == replace(SECRET)
