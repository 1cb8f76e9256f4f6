"""Many callers at once, and callers that do not read, do not finish or do not say anything."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
from pathlib import Path

import pytest
from coordinator_server import CHECK_IN, ORDER, TOKEN, Loop, Served, small_model

from homeport.job_coordinator.http import documents
from homeport.job_coordinator.http import responses as answers
from homeport.job_coordinator.http.documents import Form, JobModelDocuments
from homeport.job_coordinator.http.port import listening
from homeport.job_coordinator.model.codec import encode_containers, encode_job_model
from homeport.job_coordinator.model.job_model import JobModel

LARGE = "x" * 8_000_000
PLAIN = Form(mask_secrets=True, gzip=False)


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _asked(
    served: Served, request: str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
) -> socket.socket:
    """A connection on which that has been sent."""
    connection = socket.create_connection(("127.0.0.1", served.port), timeout=30)
    connection.sendall(request.encode())
    return connection


def _rest(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 20):
            parts.append(part)
    connection.close()
    return b"".join(parts)


async def _nobody_connected(served: Served) -> None:
    """The server has no connection any more."""
    port = served.server._port
    assert port is not None
    runner = port._runner
    async with asyncio.timeout(30):
        while runner.server is not None and runner.server.connections:  # noqa: ASYNC110 - it sends no signal
            await asyncio.sleep(0.01)


def test_callers_that_come_at_once_are_all_served(loop: Loop, served: Served) -> None:
    """Hundreds connect before the first is accepted: none has to try again, all are answered."""
    go = loop.stand_still()
    connections = [_asked(served) for _ in range(300)]
    go.set()
    for connection in connections:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 OK\r\n")
        connection.close()


def test_slow_readers_hold_no_copy_of_the_model(served: Served) -> None:
    """Forty that take the first bytes of 8 MB and no more: a fraction of a copy each, no turn."""
    served.backend.models[None] = small_model(large=LARGE)
    assert len(served.call("GET", "/")[2]) > len(LARGE)
    before = _resident_bytes()
    readers = [_asked(served, "GET / HTTP/1.0\r\n\r\n") for _ in range(40)]
    heads = [reader.recv(15) for reader in readers]
    assert served.client().check_in(CHECK_IN) == ORDER
    assert len(served.call("GET", "/")[2]) > len(LARGE), "they do not keep others from reading"
    assert _resident_bytes() - before < 10 * len(LARGE)
    plain = encode_job_model(served.backend.models[None], mask_secrets=True)
    for head, reader in zip(heads, readers, strict=True):
        assert (head + _rest(reader)).endswith(plain)


def test_a_reader_that_takes_nothing_is_cut_off(
    loop: Loop, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not hold its connection for ever; others are served."""
    monkeypatch.setattr(answers, "_STALL_S", 0.05)
    served.backend.models[None] = small_model(large=LARGE)
    reader = _asked(served)
    reader.recv(15)
    loop.run(_nobody_connected(served))
    assert served.call("GET", "/v1/status")[0] == 200
    assert len(_rest(reader)) < len(LARGE)


def test_a_body_that_does_not_come_is_not_waited_for(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """408 in one line."""
    monkeypatch.setattr(answers, "_BODY_S", 0.05)
    head = f"POST /v1/check-in HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    connection = _asked(served, f"{head}Content-Length: 100\r\n\r\n{{")
    answer = connection.recv(65_536)
    connection.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    body = answer.partition(b"\r\n\r\n")[2] or b"{}"
    assert json.loads(body) == {"error": "Request Timeout: POST /v1/check-in"}


def test_a_process_of_few_files_takes_more_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server raises its limit of open files as far as it may."""
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))

    def allowed(soft: int, hard: int) -> int:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        return listening._allowed_open_files()

    most = resource.RLIM_INFINITY
    assert [allowed(1024, hard) for hard in (4096, 1 << 20, most)] == [4096, 16_384, 16_384]
    assert set_to == [(4096, 4096), (16_384, 1 << 20), (16_384, most)]
    assert [allowed(n, n) for n in (1 << 20, most)] == [16_384, 16_384]
    assert len(set_to) == 3


def test_a_model_is_encoded_once_for_all_requests(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked by many at the same time, masked and not, compressed and not."""
    encoded: list[JobModel] = []

    def counted(model: JobModel) -> bytes:
        encoded.append(model)
        return encode_containers(model)

    monkeypatch.setattr(documents, "encode_containers", counted)

    async def ask() -> None:
        model, made = small_model(), JobModelDocuments()
        forms = [Form(mask_secrets=m, gzip=g) for m in (True, False) for g in (True, False)]
        found = await asyncio.gather(*(made.of(model).whole(form) for form in forms * 20))
        assert len({document.etag for document in found}) == 2
        assert encoded == [model]

    loop.run(ask())


def test_a_failed_document_is_made_again(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the making fails the waiting requests, and the next one tries again."""

    def fail(_model: JobModel) -> bytes:
        raise MemoryError

    async def ask() -> None:
        model, made = small_model(), JobModelDocuments()
        monkeypatch.setattr(documents, "encode_containers", fail)
        with pytest.raises(MemoryError):
            await made.of(model).whole(PLAIN)
        monkeypatch.setattr(documents, "encode_containers", encode_containers)
        document = await made.of(model).whole(PLAIN)
        assert b"".join(document.parts) == encode_job_model(model, mask_secrets=True)

    loop.run(ask())


def test_few_models_are_kept(loop: Loop) -> None:
    """Old versions are dropped, the one with constant requests is not."""

    async def ask() -> None:
        present, made = small_model(), JobModelDocuments()
        for n in range(10):
            await made.of(small_model(n=str(n))).whole(PLAIN)
            await made.of(present).whole(PLAIN)
        kept = [entry.model for entry in made._made.values()]
        assert len(kept) == 3
        assert kept[-1] is present

    loop.run(ask())
