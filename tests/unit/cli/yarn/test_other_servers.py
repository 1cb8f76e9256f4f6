"""A server that is not the job's AM, at the address that the coordinator stream names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
from jobs_at_hand import application_of, job_at_hand
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.job.job_view import PLACED_BY_USER, require_on_yarn, running_job
from homeport.cli.yarn.job import order_shutdown
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import LOCAL
from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.client_files import application_secret
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.epochs import AmEpoch, Rank, am_epoch_message

APPLICATION = "application_1_0001"
FILE = Config({"job.name": "j", "job.id": "1", "job.default.system": "kafka"})
JOB: dict[str, object] = {"name": "j", "id": "1", "application": APPLICATION, "model_version": 1}


class _Other(BaseHTTPRequestHandler):
    tokens: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.tokens.extend(self.headers.get_all("Authorization", []))
        proof = {"generation": 0, "certificate": None, "address": "h:1", "proof": "00"}
        body = json.dumps(proof if "access" in self.path else {"job": JOB}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the base's names

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryCoordinatorStream]:
    """A stream that names such a server; token and secret of its application are here."""
    kept = tmp_path / "tokens"
    kept.mkdir()
    (kept / APPLICATION).write_text("the-token-of-the-job")
    (kept / f"{APPLICATION}.secret").write_bytes(b"secret")
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("HOMEPORT_TOKEN_FILE", raising=False)
    monkeypatch.setattr(_Other, "tokens", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), _Other) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        named = InMemoryCoordinatorStream()
        epoch = am_epoch_message(AmEpoch(Rank(1, APPLICATION, 1), ()))
        named.write([wire.set_config(keys.YARN_AM_TRACKING_URL.name, url), epoch])
        named.catch_up()
        yield named
        server.shutdown()
        thread.join()


RUNNING = replace(application_of(FILE), application_id=APPLICATION)


def test_the_order_to_end_shows_it_no_token(stream: InMemoryCoordinatorStream) -> None:
    """The token of the job opens all; a program that may write the stream has not got it yet."""
    with pytest.raises(WireError, match="does not have the secret of this submission"):
        order_shutdown(job_at_hand(FILE, stream), RUNNING)
    assert _Other.tokens == []


def test_tools_show_it_no_operators_token(
    stream: InMemoryCoordinatorStream,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They go on without it, and say so; where the secret is not known nothing can be proven."""
    (tmp_path / "ada").write_text("the-token-of-ada\n")
    monkeypatch.setenv("HOMEPORT_TOKEN_FILE", str(tmp_path / "ada"))
    assert running_job(FILE, stream) is not None
    assert _Other.tokens == []
    assert "note: without the token: the server does not have the secret" in capsys.readouterr().err
    (tmp_path / "tokens" / f"{APPLICATION}.secret").unlink()
    assert running_job(FILE, stream) is not None
    assert _Other.tokens == ["Bearer the-token-of-ada"]


def test_a_job_of_run_local_is_found_without_a_token(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It gives none, and the stream alone names its server, which may be that of another job."""
    (tmp_path / "ada").write_text("the-token-of-ada\n")
    monkeypatch.setenv("HOMEPORT_TOKEN_FILE", str(tmp_path / "ada"))
    stream.write([wire.set_config(keys.JOB_COORDINATOR_FACTORY.name, LOCAL)])
    stream.catch_up()
    found = running_job(FILE, stream)
    assert found is not None
    assert str(found) == f"the running job, homeport run-local at {found.client.url}"
    with pytest.raises(ConfigError, match="= 'local': homeport move has no meaning"):
        require_on_yarn(FILE, stream, "move", PLACED_BY_USER)
    for other in (("name", "k"), ("id", "2"), ("model_version", None)):
        with monkeypatch.context() as patch:
            patch.setitem(JOB, *other)
            assert running_job(FILE, stream) is None
    assert _Other.tokens == []


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"two\nlines", b"a b", "é".encode()])
def test_a_file_without_a_token_is_one_line(
    content: bytes | None,
    stream: InMemoryCoordinatorStream,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Whatever it has instead; no request is sent."""
    path = tmp_path / "given"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("HOMEPORT_TOKEN_FILE", str(path))
    with pytest.raises(ConfigError, match=r"^HOMEPORT_TOKEN_FILE = .*no token"):
        order_shutdown(job_at_hand(FILE, stream), RUNNING)
    with pytest.raises(ConfigError, match=r"^HOMEPORT_TOKEN_FILE = .*no token"):
        running_job(FILE, stream)
    assert _Other.tokens == []


@pytest.mark.parametrize("name", ["../other", "/etc/other", "", "application_1_1/../../other"])
def test_an_application_that_is_none_names_no_file(name: str, tmp_path: Path) -> None:
    """Its id may come from the stream, or from a server."""
    (tmp_path / "tokens" / "application_1_1").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "tokens"):
        (folder / "other.secret").write_bytes(b"x")
    assert application_secret({"HOMEPORT_CACHE_DIR": str(tmp_path)}, name) is None
