"""``GET /metrics``: the state of the job coordinator in numbers, in Prometheus' text form.

SHELL. They are those of ``GET /v1/status``, read at each request, the requests that the server has
answered, and what others count. Each series that was shown once is shown for as long as the server
lives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from homeport.job_coordinator.http.container_metrics import figure_metrics, stage_metric
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import Phase, ShownContainer, ShownStatus

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_MS_PER_S: Final = 1000

_STORE_LABELS: Final = ("processor", "store", "task")
_OF_STORES: Final = (
    ("restoring", "records", "restore_records", "Read so far by a restore under way."),
    ("restoring", "bytes", "restore_bytes", "Read so far by a restore under way."),
    ("restoring", "remaining", "restore_remaining_records", "At most that many are to be read."),
    ("restoring", "records_per_s", "restore_records_per_second", "How fast a restore reads."),
    ("restoring", "seconds_left", "restore_remaining_seconds", "At the rate of late."),
    ("restoring", "merging", "restore_merging_files", "Merged before the store is used."),
    ("lags", "records", "standby_lag_records", "Committed, and not in the standby's store."),
    ("lags", "seconds", "standby_lag_seconds", "How long the standby's store is behind."),
    ("adjuncts", "records", "adjunct_records", "Records that the adjunct store has taken."),
    ("adjuncts", "bytes", "adjunct_bytes", "What the adjunct store takes on the disk."),
    ("adjuncts", "lag", "adjunct_lag_records", "Offsets up to the end of its stream."),
    (
        "adjuncts",
        "remaining",
        "adjunct_bootstrap_remaining_records",
        "Offsets that other inputs wait for; absent where none waits.",
    ),
    (
        "adjuncts",
        "seconds_left",
        "adjunct_bootstrap_remaining_seconds",
        "How long other inputs wait, at the rate so far.",
    ),
    ("adjuncts", "age_seconds", "adjunct_age_seconds", "Since its newest record, or its version."),
    ("adjuncts", "version", "adjunct_version", "The version that tasks see."),
    ("adjuncts", "late", "adjunct_late_versions", "Versions that have had no end for too long."),
)
"""(list of a container's report, field of its items, metric, what it is)."""

_STANDBY_STATES: Final = {True: "caught_up", False: "behind", None: "unknown"}
_Reports = Sequence[tuple[ProcessorId, ContainerReport]]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})


class JobCoordinatorMetrics(Collector):
    """The numbers of one server.

    Args:
        status: of the job now.
        others: what other parts of the AM count; None: nothing.
    """

    def __init__(
        self,
        status: Callable[[], ShownStatus],
        others: Callable[[], Iterable[Metric]] | None = None,
    ) -> None:
        self._status = status
        self._others = others
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._phases: set[str] = set()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def answered(self, method: str, route: str, code: int) -> None:
        """One more request has its answer. ``route``: as it is declared, not as requested.

        A method that HTTP does not have counts as ``other``: each label is a series, for ever.
        """
        self._requests[method if method in _METHODS else "other", route, code] += 1

    def text(self) -> bytes:
        """All numbers as they are now."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Prometheus' protocol: each metric with its samples."""
        status = self._status()
        yield _gauge(
            "job_model_version",
            "Version of the JobModel in force; absent before the first.",
            status.job.model_version,
        )
        containers = status.containers
        reports = [(c.processor_id, c.report) for c in containers if c.report is not None]
        yield self._containers(containers)
        yield from _phases(containers)
        yield from _work(containers)
        yield _standbys(containers)
        yield from _reports(reports)
        yield stage_metric(reports)
        yield from figure_metrics(reports)
        yield _adjuncts(reports)
        yield _dropped(reports)
        yield _refusals(status)
        yield _upgrade(status)
        yield from _stream(status)
        requests = CounterMetricFamily(
            "homeport_http_requests", "Requests answered.", labels=("method", "route", "code")
        )
        for (method, route, code), count in sorted(self._requests.items()):
            requests.add_metric((method, route, str(code)), count)
        yield requests
        if self._others is not None:
            yield from self._others()

    def _containers(self, containers: Sequence[ShownContainer]) -> Metric:
        present = Counter(container.phase.value for container in containers)
        self._phases |= present.keys()
        metric = GaugeMetricFamily(
            "homeport_containers", "Containers of the job, by phase.", labels=("phase",)
        )
        for phase in sorted(self._phases):
            metric.add_metric((phase,), present[phase])
        return metric


def _phases(containers: Sequence[ShownContainer]) -> Iterator[Metric]:
    """Of each container whether it runs, and since when it is in its phase."""
    running = GaugeMetricFamily(
        "homeport_container_running",
        "1 where the container runs, 0 where it is on its way; absent once it has finished.",
        labels=("processor", "role"),
    )
    since = GaugeMetricFamily(
        "homeport_container_phase_start_time_seconds",
        "When the container came into its phase, in seconds since 1970.",
        labels=("processor", "role", "phase"),
    )
    for container in containers:
        labels, phase = (container.processor_id, container.role), container.phase
        if phase is not Phase.FINISHED:
            running.add_metric(labels, int(phase is Phase.RUNNING))
        since.add_metric((*labels, phase.value), (container.since_ms or 0) / _MS_PER_S)
    yield running
    yield since


def _work(containers: Sequence[ShownContainer]) -> Iterator[Metric]:
    """What active containers report of their input."""
    records = CounterMetricFamily(
        "homeport_records_processed",
        "Records of the input in committed transactions, since the container began.",
        labels=("processor",),
    )
    lag = GaugeMetricFamily(
        "homeport_input_lag_records",
        "Offsets from what the container has read to the heads of its input.",
        labels=("processor",),
    )
    lost = CounterMetricFamily(
        "homeport_input_lost_offsets",
        "Offsets of the input that Kafka had deleted before they were read, since it began.",
        labels=("processor",),
    )
    stages = CounterMetricFamily(
        "homeport_stage_seconds",
        "How long each stage of the container has worked, side by side, since it began.",
        labels=("processor", "stage"),
    )
    for container in containers:
        report, name = container.report or ContainerReport(), container.processor_id
        for time in report.stages:
            stages.add_metric((name, time.stage), time.ms / _MS_PER_S)
        reported = ((records, report.processed), (lag, report.input_lag), (lost, report.input_lost))
        for metric, value in reported:
            if value is not None:
                metric.add_metric((name,), value)
    yield records
    yield lag
    yield lost
    yield stages


def _standbys(containers: Sequence[ShownContainer]) -> Metric:
    """Of standalone processors, which keep standbys beside their tasks."""
    metric = GaugeMetricFamily(
        "homeport_standbys",
        "Standbys that the processor keeps: caught_up, behind, or unknown as in a restore.",
        labels=("processor", "state"),
    )
    for container in containers:
        if container.standbys:
            present = Counter(_STANDBY_STATES[each.is_caught_up] for each in container.standbys)
            for state in _STANDBY_STATES.values():
                metric.add_metric((container.processor_id, state), present[state])
    return metric


def _refusals(status: ShownStatus) -> Metric:
    metric = CounterMetricFamily(
        "homeport_stores_refused",
        "Stores on a host that were restored in full, not used, by kind, since this driver began.",
        labels=("reason",),
    )
    for reason, count in status.stores_refused.items():
        metric.add_metric((reason,), count)
    return metric


def _reports(reports: _Reports) -> Iterator[Metric]:
    """What containers report of single stores, while they report it."""
    for group, name, metric_name, about in _OF_STORES:
        metric = GaugeMetricFamily(f"homeport_{metric_name}", about, labels=_STORE_LABELS)
        for processor, report in reports:
            for item in getattr(report, group):
                value = getattr(item, name)
                if value is not None:
                    metric.add_metric((processor, item.store, item.task), value)
        yield metric


def _adjuncts(reports: _Reports) -> Metric:
    metric = GaugeMetricFamily(
        "homeport_adjunct_store_info",
        "1 for each adjunct store: what fills it, and whether the container has it whole.",
        labels=(*_STORE_LABELS, "input", "kind"),
    )
    for processor, report in reports:
        for item in report.adjuncts:
            metric.add_metric((processor, item.store, item.task, item.input, item.kind), 1)
    return metric


def _dropped(reports: _Reports) -> Metric:
    metric = CounterMetricFamily(
        "homeport_dropped_values",
        "Values that were too large for a store that skips such, since its container began.",
        labels=_STORE_LABELS,
    )
    for processor, report in reports:
        for item in report.dropped:
            metric.add_metric((processor, item.store, item.task), item.count)
    return metric


def _upgrade(status: ShownStatus) -> Metric:
    metric = GaugeMetricFamily(
        "homeport_upgrade_processors",
        "Processors that the last upgrade has given its package; absent where there was none.",
        labels=("phase",),
    )
    if status.upgrade is not None:
        metric.add_metric((status.upgrade.phase,), len(status.upgrade.given))
    return metric


def _stream(status: ShownStatus) -> Iterator[Metric]:
    fault = status.coordinator_stream
    yield _gauge(
        "coordinator_stream_reachable",
        "1 where the last reading and writing of the coordinator stream went well.",
        None if fault is None else int(fault == "ok"),
    )
    age_ms = status.coordinator_stream_age_ms
    yield _gauge(
        "coordinator_stream_age_seconds",
        "Since the coordinator stream was last read to its head.",
        None if age_ms is None else age_ms / _MS_PER_S,
    )
    damaged = CounterMetricFamily(
        "homeport_coordinator_stream_damaged_records",
        "Records skipped because their bytes are damaged, since this driver began.",
    )
    if status.coordinator_stream_damaged is not None:
        damaged.add_metric((), status.coordinator_stream_damaged)
    yield damaged


def _gauge(name: str, about: str, value: float | None) -> Metric:
    metric = GaugeMetricFamily(f"homeport_{name}", about)
    if value is not None:
        metric.add_metric((), value)
    return metric
