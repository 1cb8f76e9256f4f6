"""Traces of a container's transactions, sent by OpenTelemetry's protocol (``task.traces.*``).

One trace for each traced transaction: ``transaction``, and below it ``fetch``, ``pipeline`` and
``tasks`` of each micro-batch, and ``commit``. A transaction that is not committed leaves none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.container.reporting.traces import NO_TRACES, Span, Traces

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_LOG = logging.getLogger(__name__)

_NS_PER_S = 1_000_000_000
_LAST_MS = 2000
"""How long the end of a container may wait for a collector that does not answer."""


def traces_of(config: Config, resource: Mapping[str, str | int]) -> Traces:
    """Return the configured traces; ``resource``: the attributes of every trace.

    ConfigError: traces are wanted, and OpenTelemetry is not in the job's environment.
    """
    endpoint = keys.TASK_TRACES_ENDPOINT.read(config)
    if endpoint is None:
        return NO_TRACES
    return OtlpTraces(_provider(endpoint, resource), keys.TASK_TRACES_EVERY.read(config))


def _provider(endpoint: str, resource: Mapping[str, str | int]) -> TracerProvider:
    try:
        # Not for a container that traces nothing: these imports take a tenth of a second.
        from opentelemetry.exporter.otlp.proto.http import trace_exporter  # noqa: PLC0415 - as said
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - as said above
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as said above
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as said above
    except ImportError as error:
        rule = f"traces need OpenTelemetry in the job's environment ({error})"
        remedy = "install homeport[traces] there, or remove the key"
        raise ConfigError(keys.TASK_TRACES_ENDPOINT.name, endpoint, rule, remedy) from None
    provider = TracerProvider(resource=Resource.create(dict(resource)), shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(trace_exporter.OTLPSpanExporter(endpoint=endpoint))
    )
    return provider


_Batches = list[tuple[Span, Span | None, Span, int]]


class OtlpTraces(Traces):
    """Sends every ``every``-th committed transaction. One thread calls it; another one sends."""

    def __init__(
        self, provider: TracerProvider, every: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("homeport")
        self._every = every
        self._offset_ns = time.time_ns() - round(clock() * _NS_PER_S)
        self._count = 0
        self._open: _Batches = []
        self._on_its_way: _Batches = []

    def batch(self, fetched: Span, piped: Span | None, tasked: Span, rows: int) -> None:
        """Keep it until its transaction is committed."""
        self._open.append((fetched, piped, tasked, rows))

    def ended(self) -> None:
        """As of ``Traces``."""
        self._on_its_way, self._open = self._open, []

    def committed(self, sent: Span) -> None:
        """Send its spans to the collector, if it is its turn."""
        batches, self._on_its_way = self._on_its_way, []
        self._count += 1
        if not batches or self._count % self._every:
            return
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415 - as ``_provider``

        rows = sum(rows for *_, rows in batches)
        root = self._tracer.start_span(
            "transaction",
            start_time=self._ns(min(fetched[0] for fetched, *_ in batches)),
            attributes={"homeport.rows": rows, "homeport.batches": len(batches)},
        )
        context = set_span_in_context(root)

        def child(name: str, span: Span, **attributes: int) -> None:
            given = {f"homeport.{key}": value for key, value in attributes.items()}
            made = self._tracer.start_span(name, context, start_time=self._ns(span[0]))
            made.set_attributes(given)
            made.end(self._ns(span[1]))

        for fetched, piped, tasked, own in batches:
            child("fetch", fetched, rows=own)
            if piped is not None:
                child("pipeline", piped, rows=own)
            child("tasks", tasked, rows=own)
        child("commit", sent)
        root.end(self._ns(sent[1]))

    def dropped(self) -> None:
        """As of ``Traces``."""
        self._open, self._on_its_way = [], []

    def close(self) -> None:
        """Send what is left, for two seconds at most."""
        if not self._provider.force_flush(_LAST_MS):
            _LOG.warning("the last traces were not sent within %d ms", _LAST_MS)

    def _ns(self, at_s: float) -> int:
        return round(at_s * _NS_PER_S) + self._offset_ns
