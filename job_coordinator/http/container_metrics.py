"""What active containers measure of themselves, as metrics.

SHELL, as it makes Prometheus' families. The shapes are those of ``containers[].report``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from homeport.job_coordinator.http.container_report import STAGE_BOUNDS_S
from homeport.job_coordinator.http.figures import FIGURES

_MS_PER_S = 1000


def stage_metric(reports: Iterable[tuple[str, Mapping[str, Any]]]) -> Metric:
    """How long each stage takes each time; ``reports``: (processor, its report in JSON).

    A stage whose container has other bounds is left out: it is of another version.
    """
    metric = HistogramMetricFamily(
        "homeport_stage_duration_seconds",
        "How long a stage takes each time: sending of a transaction, the others of a batch.",
        labels=("processor", "stage"),
    )
    bounds = [*map(str, STAGE_BOUNDS_S), "+Inf"]
    for processor, report in reports:
        for time in report.get("stages") or ():
            counts = time.get("buckets")
            if counts and len(counts) == len(bounds):
                buckets = list(zip(bounds, accumulate(counts), strict=True))
                metric.add_metric((processor, time["stage"]), buckets, time["ms"] / _MS_PER_S)
    return metric


def figure_metrics(reports: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Metric]:
    """Each figure as a metric; ``reports``: (processor, its report in JSON)."""
    by_name: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in FIGURES}
    for processor, report in reports:
        for name, labels, value in report.get("figures") or ():
            by_name[name].append(((processor, *labels), value))
    for figure in FIGURES.values():
        family = CounterMetricFamily if figure.grows else GaugeMetricFamily
        metric = family(
            f"homeport_{figure.name}", figure.about, labels=("processor", *figure.labels)
        )
        for labels, value in by_name[figure.name]:
            metric.add_metric(labels, value)
        yield metric
