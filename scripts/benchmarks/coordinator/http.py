"""Section http: a thousand clients at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from benchmarks import cpu_time, processes
from benchmarks.coordinator.callers import Calls, call_at_once, hold_at_once
from benchmarks.coordinator.model_server import TOKEN
from benchmarks.report import Row, at_least, at_most, figure
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.model.ids import ProcessorId

_SERVER = "coordinator.model_server.serve"
_CLIENTS = 1000
_LARGE_BYTES = 8_000_000
_PATIENCE_S = 120.0
_WHOLE, _PART = "/?version=1", "/v1/processors/{}/model?version=1"


@dataclass(frozen=True, slots=True)
class _Round:
    """What a thousand calls led to in the server: CPU seconds, and MB above what it had before."""

    calls: Calls
    cpu_s: float
    growth_mb: float


def rows() -> Iterator[Row]:
    """A configuration of 100 keys, then one of 8 MB."""
    with processes.serving(_SERVER, _CLIENTS, 10, 0) as (pid, port):
        whole = _round(pid, port, _WHOLE, gzip=True)
        yield from _rows_of("whole, gzip", whole, limit_s=2)
        with _asking(port) as waits:
            plain = _round(pid, port, _WHOLE, gzip=False)
        yield from _rows_of("whole, plain", plain)
        yield figure("status asked again and again meanwhile: longest", max(waits), "s")
        yield from _rows_of("own part, gzip", part := _round(pid, port, _PART, gzip=True))
        yield from _comparison(port, whole, plain, part)
    with processes.serving(_SERVER, _CLIENTS, 10, _LARGE_BYTES) as (pid, port):
        large = _round(pid, port, _WHOLE, gzip=True)
        yield from _rows_of("8 MB configuration, whole, gzip", large)
        own = _round(pid, port, _PART, gzip=True)
        yield from _rows_of("8 MB configuration, own part, gzip", own)
    with processes.serving(_SERVER, _CLIENTS, 10, _LARGE_BYTES) as (pid, port):
        yield at_most("growth before 1,000 that stop reading 9 MB", _held_mb(pid, port), 100, "MB")


@contextmanager
def _asking(port: int) -> Iterator[list[float]]:
    client, over, waits = CoordinatorClient(_url(port), TOKEN, _PATIENCE_S), Event(), [0.0]

    def ask() -> None:
        while not over.is_set():
            began = time.perf_counter()
            client.status_body()
            waits.append(time.perf_counter() - began)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield waits
        finally:
            over.set()
        asking.result()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def _requests(path: str, *, gzip: bool) -> list[bytes]:
    head = (
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Accept-Encoding: {'gzip' if gzip else 'identity'}\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n"
    )
    return [head.format(path.format(number)).encode() for number in range(_CLIENTS)]


def _round(pid: int, port: int, path: str, *, gzip: bool) -> _Round:
    before, cpu = processes.resident_mb(pid), cpu_time.cpu_s(pid)
    processes.forget_peak(pid)
    calls = call_at_once(port, _requests(path, gzip=gzip))
    growth_mb = max(0.0, processes.peak_mb(pid) - before)
    return _Round(calls, cpu_time.cpu_s(pid) - cpu, growth_mb)


def _rows_of(name: str, done: _Round, *, limit_s: float | None = None) -> Iterator[Row]:
    calls = done.calls
    p50, p99, longest = (calls.quantile(part) for part in (0.5, 0.99, 1))
    yield at_least(f"{name}: served", len(calls.seconds), _CLIENTS, "")
    yield at_most(f"{name}: p99", p99, limit_s, "s")
    yield Row(f"{name}: p50, longest", f"{p50:.3g} s, {longest:.3g} s")
    sent = f"{calls.received / 1e6:,.1f} MB, {done.cpu_s:.2f} s"
    yield Row(f"{name}: sent, the server's CPU", sent)
    yield at_most(f"{name}: growth of the server", done.growth_mb, 100, "MB")


def _comparison(port: int, whole: _Round, plain: _Round, part: _Round) -> Iterator[Row]:
    client = CoordinatorClient(_url(port), TOKEN)
    whole_ms = _cpu_ms(lambda: client.job_model(1), times=5)
    part_ms = _cpu_ms(lambda: client.processor_model(ProcessorId("7"), 1), times=50)
    yield figure("CPU of a container that fetches and reads the whole", whole_ms, "ms")
    yield figure("CPU of a container that fetches and reads its part", part_ms, "ms")
    yield at_least(
        "the part, cheaper in CPU of server and container",
        (whole.cpu_s + _CLIENTS * whole_ms / 1000) / (part.cpu_s + _CLIENTS * part_ms / 1000),
        10,
        "x",
    )
    sent = part.calls.received
    yield at_least("the part, cheaper in bytes, both gzip", whole.calls.received / sent, 10, "x")
    yield figure("the part, cheaper in CPU of the server, both gzip", whole.cpu_s / part.cpu_s, "x")
    yield figure("... against the plain whole", plain.cpu_s / part.cpu_s, "x")


def _cpu_ms(work: Callable[[], object], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times * 1000


def _held_mb(pid: int, port: int) -> float:
    """Growth of the server while its clients do not read; the bodies are made before."""
    requests = _requests(_WHOLE, gzip=False)
    call_at_once(port, requests[:1])
    before = processes.resident_mb(pid)
    processes.forget_peak(pid)
    hold_at_once(port, requests)
    return processes.peak_mb(pid) - before


SECTIONS = {
    "http": ("1,000 clients at once fetch a JobModel of 1,000 containers, 10,000 tasks", rows)
}
