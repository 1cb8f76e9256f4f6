"""What active containers measure of themselves, as metrics.

SHELL, as it makes Prometheus' families.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from homeport.job_coordinator.status.container_report import STAGE_BOUNDS_S, ContainerReport
from homeport.job_coordinator.status.figures import FIGURES

_MS_PER_S = 1000


def stage_metric(reports: Iterable[tuple[str, ContainerReport]]) -> Metric:
    """How long each stage takes each time; ``reports``: (processor, its report).

    A stage whose container has other bounds is left out: it is of another version.
    """
    metric = HistogramMetricFamily(
        "homeport_stage_duration_seconds",
        "How long a stage takes each time: sending of a transaction, the others of a batch.",
        labels=("processor", "stage"),
    )
    bounds = [*map(str, STAGE_BOUNDS_S), "+Inf"]
    for processor, report in reports:
        for time in report.stages:
            if len(time.buckets) == len(bounds):
                buckets = list(zip(bounds, accumulate(time.buckets), strict=True))
                metric.add_metric((processor, time.stage), buckets, time.ms / _MS_PER_S)
    return metric


def figure_metrics(reports: Iterable[tuple[str, ContainerReport]]) -> Iterator[Metric]:
    """Each figure as a metric; ``reports``: (processor, its report)."""
    by_name: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in FIGURES}
    for processor, report in reports:
        for sample in report.figures:
            by_name[sample.name].append(((processor, *sample.labels), sample.value))
    for figure in FIGURES.values():
        family = CounterMetricFamily if figure.grows else GaugeMetricFamily
        metric = family(
            f"homeport_{figure.name}", figure.about, labels=("processor", *figure.labels)
        )
        for labels, value in by_name[figure.name]:
            metric.add_metric(labels, value)
        yield metric
