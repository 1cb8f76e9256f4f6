"""The page of all metrics: each family that ``/metrics`` can serve, and the alerts that read it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from prometheus_client.core import Metric

from homeport.appmaster.allocation.job_state.state import initial_state
from homeport.appmaster.driver.driver_settings import allocator_settings
from homeport.appmaster.report.allocator_metrics import AllocatorMetrics
from homeport.config.config import Config
from homeport.container.standalone.processor_page import leader_metrics
from homeport.job_coordinator.http.metrics import JobCoordinatorMetrics
from homeport.job_coordinator.status.shape import ShownStatus, ShownTakenOver

PAGE = "docs/metrics-table.md"
_ALERTS = Path(__file__).resolve().parents[2] / "docker" / "observability" / "alerts.yaml"
_SERIES = re.compile(r"\b(?:homeport|samza)_\w+")
_PACKAGE = re.compile(r"^org\.apache\.samza\.(?:\w+\.)*\w+ ")
"""Samza's group, which the metric's name has too."""
_SUFFIX = re.compile(r"_(?:total|bucket|sum|count)$")
_HEAD = """\
<!-- Written by scripts/pages --write from the collectors of /metrics. -->

# All metrics

What `/metrics` serves, in Prometheus' text form. [Metrics and recoveries](metrics.md) explains it;
the alerts are those of [Dashboards](dashboards.md). A histogram has `_bucket`, `_sum` and `_count`.
A metric whose facts are not known has no series.
"""

_ON_YARN = "A job on YARN"
_STANDALONE = "A standalone job, by the processor that leads"
_BOTH = "Every job"


def families() -> Mapping[str, list[Metric]]:
    """{where they are served: the families, each without a sample that matters}."""
    settings = allocator_settings(Config({"job.name": "any", "job.default.system": "kafka"}))
    return {
        _BOTH: list(JobCoordinatorMetrics(ShownStatus).collect()),
        _ON_YARN: list(AllocatorMetrics().collect(initial_state(settings))),
        _STANDALONE: list(leader_metrics(ShownTakenOver())),
    }


def page() -> str:
    """The page's text."""
    alerts = _alerts()
    lines = [_HEAD]
    for place, found in families().items():
        lines += [f"## {place}", "", "| metric | type | labels | meaning | alerts |"]
        lines.append("| --- | --- | --- | --- | --- |")
        lines += [_row(family, alerts) for family in found]
        lines.append("")
    return "\n".join(lines)


def _row(family: Metric, alerts: Mapping[str, list[str]]) -> str:
    name = family.name + ("_total" if family.type == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ()))
    fired = ", ".join(f"`{alert}`" for alert in alerts.get(family.name, ()))
    about = _PACKAGE.sub("", family.documentation).replace("|", "\\|")
    return f"| `{name}` | {family.type} | {labels} | {about} | {fired} |"


def _alerts() -> Mapping[str, list[str]]:
    """{name of a family: the alerts whose expressions read it}, in the rules' order."""
    found: dict[str, list[str]] = defaultdict(list)
    for rule in _rules():
        for series in sorted(set(_SERIES.findall(rule["expr"]))):
            found[_SUFFIX.sub("", series)].append(rule["alert"])
    return found


def _rules() -> Iterator[Mapping[str, str]]:
    for group in yaml.safe_load(_ALERTS.read_text(encoding="utf-8"))["groups"]:
        yield from group["rules"]
