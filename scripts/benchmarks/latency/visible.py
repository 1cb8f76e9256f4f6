"""Section visible: at 20 and 1,000 records a second, with and without a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.commit.runs import broker
from benchmarks.latency.runs import container
from benchmarks.report import Row, at_most, figure

TITLE = "from a record's send until a read_committed reader has it, exactly-once, one container"
_PIPELINE = {"task.pipeline.class": "benchmarks.latency.tasks:parse"}
_FIXED = {"task.transaction.idle.ms": "-1", "task.batch.linger.ms": "0"}
_WARM_S, _WINDOW_S = 10.0, 15.0
_RATES = (20, 1_000)


def rows() -> Iterator[Row]:
    """By default, with transactions that end early and batches that fill; and with neither."""
    with broker() as servers:
        for what, keys, limits in (
            ("task alone", {}, (20.0, 50.0)),
            ("pipeline", _PIPELINE, (60.0, 150.0)),
        ):
            yield from _measured(servers, what, keys, limits)
            yield from _measured(servers, f"{what}, neither early nor filled", keys | _FIXED, None)


def _measured(
    servers: str, what: str, keys: Mapping[str, str], limits: tuple[float, float] | None
) -> Iterator[Row]:
    with container(servers, keys) as running:
        running.window(100, _WARM_S)
        for rate in _RATES:
            found = running.window(rate, _WINDOW_S)
            for name, ms, number in (("p50", found.p50_ms, 0), ("p99", found.p99_ms, 1)):
                title = f"{what}: {rate:,}/s, {name}"
                if limits is None:
                    yield figure(title, ms, "ms")
                else:
                    yield at_most(title, ms, limits[number], "ms")
            yield figure(f"{what}: {rate:,}/s, CPU of the container", found.cpu, "%")
            yield figure(f"{what}: {rate:,}/s, the machine is busy", found.machine, "%")
