"""The spans that a transaction becomes, by OpenTelemetry's own provider."""

from __future__ import annotations

import builtins
import time
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.container.reporting.otlp_traces import OtlpTraces, traces_of
from homeport.container.reporting.traces import NO_TRACES

ENDPOINT = {"task.traces.otlp.endpoint": "http://127.0.0.1:9/v1/traces"}


class Traced:
    """Traces whose clock stands at 100 s, and the spans that they made."""

    def __init__(self, every: int = 1) -> None:
        provider = TracerProvider()
        self.exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.traces = OtlpTraces(provider, every, lambda: 100.0)

    def transaction(self, rows: int = 3) -> None:
        """One of one batch, sent and committed."""
        self.traces.batch((100.0, 100.5), (100.5, 101.0), (101.0, 102.0), rows)
        self.traces.ended()
        self.traces.committed((102.0, 102.25))

    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self.exporter.get_finished_spans())


def lasted_s(span: ReadableSpan) -> float:
    """From its start to its end."""
    return ((span.end_time or 0) - (span.start_time or 0)) / 1e9


def test_a_transaction_is_one_trace_of_its_stages() -> None:
    """Each stage is a child with its own times; the root has the rows and covers all."""
    traced = Traced()
    traced.traces.batch((100.0, 100.5), None, (101.0, 102.0), 3)
    traced.traces.batch((101.0, 101.25), (101.25, 101.5), (102.0, 104.0), 4)
    traced.traces.ended()
    traced.traces.batch((103.0, 104.0), None, (104.0, 105.0), 9)  # of the next one
    traced.traces.committed((104.0, 104.5))
    *children, root = traced.spans()
    assert root.name == "transaction"
    assert lasted_s(root) == 4.5
    assert dict(root.attributes or {}) == {"homeport.rows": 7, "homeport.batches": 2}
    assert [(child.name, lasted_s(child)) for child in children] == [
        ("fetch", 0.5),
        ("tasks", 1.0),
        ("fetch", 0.25),
        ("pipeline", 0.25),
        ("tasks", 2.0),
        ("commit", 0.5),
    ]
    assert {child.parent.span_id for child in children if child.parent} == {root.context.span_id}
    assert {child.context.trace_id for child in children} == {root.context.trace_id}


def test_what_is_not_committed_leaves_no_trace() -> None:
    """A dropped transaction, and one without rows that commits positions alone."""
    traced = Traced()
    traced.traces.batch((100.0, 100.5), None, (101.0, 102.0), 3)
    traced.traces.dropped()
    traced.traces.ended()
    traced.traces.committed((102.0, 102.5))
    traced.traces.committed((102.0, 102.5))
    assert traced.spans() == []


def test_one_of_several_is_traced() -> None:
    """Every third one."""
    traced = Traced(every=3)
    for rows in range(7):
        traced.transaction(rows)
    roots = [span for span in traced.spans() if span.name == "transaction"]
    assert [(root.attributes or {})["homeport.rows"] for root in roots] == [2, 5]


def test_the_times_are_those_of_the_calendar() -> None:
    """The loop's clock is monotonic: its offset is taken once."""
    traced = Traced()
    traced.transaction()
    starts = {span.name: span.start_time or 0 for span in traced.spans()}
    assert starts["transaction"] == starts["fetch"]
    assert abs(starts["fetch"] / 1e9 - time.time()) < 60


def test_nothing_is_traced_without_an_address() -> None:
    """And OpenTelemetry is not even imported."""
    assert traces_of(Config({}), {}) is NO_TRACES
    NO_TRACES.batch((0, 1), None, (1, 2), 3)
    NO_TRACES.ended()
    NO_TRACES.committed((1, 2))
    NO_TRACES.dropped()
    NO_TRACES.close()


def test_without_opentelemetry_the_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with what to install."""
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as __import__
        if name.startswith("opentelemetry"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)  # type: ignore[arg-type]  # handed on as they are

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ConfigError, match=r"install homeport\[traces\] there"):
        traces_of(Config(ENDPOINT), {})


def test_a_collector_that_is_away_is_waited_for_briefly() -> None:
    """The container ends all the same; its log says that traces are missing."""
    made = traces_of(Config(ENDPOINT), {"service.name": "job"})
    made.batch((100.0, 100.5), None, (101.0, 102.0), 3)
    made.ended()
    made.committed((102.0, 102.5))
    made.close()
