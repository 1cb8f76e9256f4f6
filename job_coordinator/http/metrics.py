"""``GET /metrics``: the state of the job in Prometheus' text form.

SHELL. The numbers are those of ``GET /v1/status``, read at each request, the count of answered
requests, and the counts of other parts. A series that was shown once is shown for as long as the
server lives.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from homeport.job_coordinator.status.container_report import STAGE_BOUNDS_S, ContainerReport
from homeport.job_coordinator.status.figures import FIGURES
from homeport.job_coordinator.status.own_metrics import COUNTER, PREFIX
from homeport.job_coordinator.status.shape import Phase, ShownStatus

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_MS_PER_S: Final = 1000
_STANDBY_STATES: Final = {True: "caught_up", False: "behind", None: "unknown"}
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})

_Samples = Iterable[tuple[tuple[str, ...], float | None]]
_Source = Callable[[ShownStatus], _Samples]


def family(
    name: str, about: str, samples: _Samples, labels: tuple[str, ...] = (), *, grows: bool = False
) -> Metric:
    """Return a counter if it ``grows``, else a gauge, of the samples that have a value."""
    metric = (CounterMetricFamily if grows else GaugeMetricFamily)(name, about, labels=labels)
    for values, value in samples:
        if value is not None:
            metric.add_metric(values, value)
    return metric


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, ``homeport_<name>``, with the source of its samples (labels, value or None)."""

    name: str
    about: str
    samples: _Source
    labels: tuple[str, ...] = ()
    grows: bool = False

    def metric(self, status: ShownStatus) -> Metric:
        """Return the metric with the samples that have a value."""
        samples = self.samples(status)
        return family(f"homeport_{self.name}", self.about, samples, self.labels, grows=self.grows)


def _job(value: Callable[[ShownStatus], float | None]) -> _Source:
    return lambda status: [((), value(status))]


def _reports(status: ShownStatus) -> Iterator[tuple[str, ContainerReport]]:
    return ((c.processor_id, c.report) for c in status.containers if c.report is not None)


def _work(value: Callable[[ContainerReport], float | None]) -> _Source:
    return lambda status: (((name,), value(report)) for name, report in _reports(status))


def _items(group: str, field: str) -> _Source:
    """Return the source of ``field`` of each item in the list ``group`` of the reports."""
    return lambda status: (
        ((name, item.store, item.task), getattr(item, field))
        for name, report in _reports(status)
        for item in getattr(report, group)
    )


def _running(status: ShownStatus) -> _Samples:
    for c in status.containers:
        if c.phase is not Phase.FINISHED:
            yield (c.processor_id, c.role), int(c.phase is Phase.RUNNING)


def _phase_starts(status: ShownStatus) -> _Samples:
    for c in status.containers:
        yield (c.processor_id, c.role, c.phase.value), (c.since_ms or 0) / _MS_PER_S


def _stages(status: ShownStatus) -> _Samples:
    for name, report in _reports(status):
        for time in report.stages:
            yield (name, time.stage), time.ms / _MS_PER_S


def _standbys(status: ShownStatus) -> _Samples:
    for c in status.containers:
        present = Counter(_STANDBY_STATES[each.is_caught_up] for each in c.standbys)
        for state in _STANDBY_STATES.values() if present else ():
            yield (c.processor_id, state), present[state]


def _adjuncts(status: ShownStatus) -> _Samples:
    for name, report in _reports(status):
        for item in report.adjuncts:
            yield (name, item.store, item.task, item.input, item.kind), 1


def _refusals(status: ShownStatus) -> _Samples:
    return (((reason,), count) for reason, count in status.stores_refused.items())


def _not_requested(status: ShownStatus) -> _Samples:
    reasons = {"fell-silent": status.excluded_hosts, "drained": status.drained_hosts}
    return (((host, reason), 1) for reason, hosts in reasons.items() for host in hosts)


def _upgrade(status: ShownStatus) -> _Samples:
    return [] if status.upgrade is None else [((status.upgrade.phase,), len(status.upgrade.given))]


def _stream_age_s(status: ShownStatus) -> float | None:
    age_ms = status.coordinator_stream_age_ms
    return None if age_ms is None else age_ms / _MS_PER_S


_PROCESSOR, _ROLE = ("processor",), ("processor", "role")
_STORE = ("processor", "store", "task")
_OF_STORES: Final = (
    ("restoring", "records", "restore_records", "Read so far by a restore under way."),
    ("restoring", "bytes", "restore_bytes", "Read so far by a restore under way."),
    (
        "restoring",
        "remaining",
        "restore_remaining_records",
        "Upper bound of the records still to be read.",
    ),
    ("restoring", "records_per_s", "restore_records_per_second", "How fast a restore reads."),
    (
        "restoring",
        "seconds_left",
        "restore_remaining_seconds",
        "Estimated time until the restore ends, at its recent rate.",
    ),
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
"""(list in a container's report, field of its items, metric, meaning)."""

_VERSION: Final = Family(
    "job_model_version",
    "Version of the JobModel in force; absent before the first.",
    _job(lambda status: status.job.model_version),
)
_OF_CONTAINERS: Final = (
    Family(
        "container_running",
        "1 where it runs, 0 where it is on its way; absent once it has finished.",
        _running,
        _ROLE,
    ),
    Family(
        "container_phase_start_time_seconds",
        "When the container came into its phase, in seconds since 1970.",
        _phase_starts,
        (*_ROLE, "phase"),
    ),
    Family(
        "records_processed",
        "Records of the input in committed transactions, since the container began.",
        _work(lambda r: r.processed),
        _PROCESSOR,
        grows=True,
    ),
    Family(
        "input_lag_records",
        "Offsets from what the container has read to the heads of its input.",
        _work(lambda r: r.input_lag),
        _PROCESSOR,
    ),
    Family(
        "input_lost_offsets",
        "Offsets of the input that Kafka had deleted before they were read.",
        _work(lambda r: r.input_lost),
        _PROCESSOR,
        grows=True,
    ),
    Family(
        "stage_seconds",
        "How long each stage of the container has worked, side by side, since it began.",
        _stages,
        ("processor", "stage"),
        grows=True,
    ),
    Family(
        "standbys",
        "Standbys that the processor keeps: caught_up, behind, or unknown as in a restore.",
        _standbys,
        ("processor", "state"),
    ),
    *(
        Family(name, about, _items(group, field), _STORE)
        for group, field, name, about in _OF_STORES
    ),
)
_OF_JOB: Final = (
    Family(
        "adjunct_store_info",
        "1 for each adjunct store: what fills it, and whether the container has all.",
        _adjuncts,
        (*_STORE, "input", "kind"),
    ),
    Family(
        "dropped_values",
        "Values too large for a store that skips such, since its container began.",
        _items("dropped", "count"),
        _STORE,
        grows=True,
    ),
    Family(
        "stores_refused",
        "Stores of a host that were restored in full, by kind, since this driver began.",
        _refusals,
        ("reason",),
        grows=True,
    ),
    Family(
        "hosts_not_requested",
        "1 for each host that no request names now.",
        _not_requested,
        ("host", "reason"),
    ),
    Family(
        "upgrade_processors",
        "Processors with the last upgrade's package; absent without one.",
        _upgrade,
        ("phase",),
    ),
    Family(
        "coordinator_stream_reachable",
        "1 where the coordinator stream was last read and written well.",
        _job(lambda s: None if s.coordinator_stream is None else int(s.coordinator_stream == "ok")),
    ),
    Family(
        "coordinator_stream_age_seconds",
        "Since the coordinator stream was read to its head.",
        _job(_stream_age_s),
    ),
    Family(
        "coordinator_stream_damaged_records",
        "Records skipped as their bytes are damaged, since this driver began.",
        _job(lambda status: status.coordinator_stream_damaged),
        grows=True,
    ),
)


def figures(status: ShownStatus) -> Iterator[Metric]:
    """Yield each figure of ``FIGURES`` as a metric."""
    found: dict[str, list[tuple[tuple[str, ...], float]]] = {name: [] for name in FIGURES}
    for name, report in _reports(status):
        for sample in report.figures:
            found[sample.name].append(((name, *sample.labels), sample.value))
    for f in FIGURES.values():
        labels = (*_PROCESSOR, *f.labels)
        yield family(f"homeport_{f.name}", f.about, found[f.name], labels, grows=f.grows)


def own_metrics(status: ShownStatus) -> Iterator[Metric]:
    """Yield the metrics of the job's own.

    Leave out series of another kind than the first of their name: their container is of another
    version of the job.
    """
    found: dict[str, Metric] = {}
    for processor, report in _reports(status):
        for each in report.own:
            name, labels = f"{PREFIX}{each.name}", {"processor": processor, **dict(each.labels)}
            metric = found.setdefault(name, Metric(name, f"A {each.kind} of the job.", each.kind))
            if metric.type != each.kind:
                continue
            bounds = (*each.bounds, "+Inf") if each.buckets else ()
            for bound, count in zip(bounds, accumulate(each.buckets), strict=True):
                metric.add_sample(f"{name}_bucket", {**labels, "le": str(bound)}, count)
            for sample, value in each.samples():
                ending = "_total" if each.kind == COUNTER else ""
                metric.add_sample(f"{PREFIX}{sample}{ending}", labels, value)
    yield from found.values()


def stage_times(status: ShownStatus) -> Metric:
    """Return the histogram of the stages' times.

    Leave out a stage with other bounds: its container is of another version.
    """
    metric = HistogramMetricFamily(
        "homeport_stage_duration_seconds",
        "How long a stage takes: sending of a transaction, the others of a batch.",
        labels=("processor", "stage"),
    )
    bounds = [*map(str, STAGE_BOUNDS_S), "+Inf"]
    for name, report in _reports(status):
        for time in report.stages:
            if len(time.buckets) == len(bounds):
                buckets = list(zip(bounds, accumulate(time.buckets), strict=True))
                metric.add_metric((name, time.stage), buckets, time.ms / _MS_PER_S)
    return metric


class JobCoordinatorMetrics(Collector):
    """The metrics of one server.

    ``status`` returns the job's status now; ``others`` the metrics of other parts of the AM, if
    any.
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
        """Count one more answered request. ``route``: the declared route, not the requested path.

        A method that HTTP does not have counts as ``other``: each label makes a lasting series.
        """
        self._requests[method if method in _METHODS else "other", route, code] += 1

    def text(self) -> bytes:
        """Return all metrics as they are now."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its samples, by Prometheus' protocol."""
        status = self._status()
        by_phase = Family(
            "containers", "Containers of the job, by phase.", self._by_phase, ("phase",)
        )
        yield from (each.metric(status) for each in (_VERSION, by_phase, *_OF_CONTAINERS))
        yield stage_times(status)
        yield from figures(status)
        yield from own_metrics(status)
        yield from (each.metric(status) for each in _OF_JOB)
        requests = (((m, r, str(c)), n) for (m, r, c), n in sorted(self._requests.items()))
        labels = ("method", "route", "code")
        yield family("homeport_http_requests", "Requests answered.", requests, labels, grows=True)
        if self._others is not None:
            yield from self._others()

    def _by_phase(self, status: ShownStatus) -> _Samples:
        present = Counter(container.phase.value for container in status.containers)
        self._phases |= present.keys()
        return (((phase,), present[phase]) for phase in sorted(self._phases))
