"""The metrics of the allocator: Samza's, by Samza's names, and those of STANDBY.

Counters follow the allocator's decisions (events, reasons, records); gauges are read from its state
at each request. Counters begin at zero with each driver; Prometheus takes a fall to zero for that.

A Samza metric ``<name>`` of the group ``<package>.<class>`` is ``samza_<class>_<name>`` here, with
underscores for hyphens, and ``_total`` behind a counter. Its help text begins with group and metric
in Samza's spelling. Source: STANDBY, "Additional metrics".
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    TERMINAL,
    AllocatorState,
    ContainerPhase,
    ContainerRole,
)
from homeport.appmaster.allocation.protocol.events import Event, FailoverStep, JobModelPublished
from homeport.appmaster.allocation.protocol.instructions import (
    EndFailover,
    Record,
    WriteFailover,
    WritePlacementResponse,
)
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.appmaster.report.recovery import Recovery
from homeport.job_coordinator.http.metrics import family
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import PlacementStatus

MANAGER: Final = "org.apache.samza.metrics.ContainerProcessManagerMetrics"
APP_MASTER: Final = "org.apache.samza.job.yarn.SamzaAppMasterMetrics"

_COUNTERS: Final[Mapping[str, str]] = {
    "failed-containers": "Ends without an order, and launches in vain.",
    "released-containers": "Launchers that were released, as no container needed them.",
    "preferred-host-requests": "Requests for the host with a container's state.",
    "any-host-requests": "Requests for another host, by name or any.",
    "expired-preferred-host-requests": "Of those for the host with the state.",
    "expired-any-host-requests": "Of those for another host.",
    "failed-standby-allocations": "Launchers refused, as another of a group was there.",
    "fault-domain-aware-container-requests": "Those for standbys, where racks count.",
    "fault-domain-aware-containers-started": "Standbys started, where racks count.",
    "expired-fault-domain-aware-container-requests": "Of those for standbys, where racks count.",
    "failed-fault-domain-aware-container-requests": (
        "Launchers refused a standby, where racks count."
    ),
    "failed-container-placements-actions": "Operators' commands that failed.",
    "failovers-to-standby": "Choices of a standby's place for its active container.",
    "failovers-to-any-host": "Active containers that could not be failed to a standby.",
    "container-from-previous-attempt": "Containers that were found running.",
    "heartbeats-expired": "Leases that ran out.",
}
"""{metric that only grows: what it counts}."""

_OF_APP_MASTER: Final = frozenset({"container-from-previous-attempt", "heartbeats-expired"})
"""Those of ``APP_MASTER``; the others are of ``MANAGER``."""

_COUNTED_BY: Final[Mapping[ReasonKind, str]] = {
    ReasonKind.CHARGED: "failed-containers",
    ReasonKind.NOT_CHARGED: "failed-containers",
    ReasonKind.SURPLUS_RELEASED: "released-containers",
    ReasonKind.HOME_ASKED: "preferred-host-requests",
    ReasonKind.ASKED_EARLY: "preferred-host-requests",
    ReasonKind.COMMANDED_HOST_ASKED: "preferred-host-requests",
    ReasonKind.OTHER_HOST_ASKED: "any-host-requests",
    ReasonKind.ANY_HOST_ASKED: "any-host-requests",
    ReasonKind.ADOPTED: "container-from-previous-attempt",
    ReasonKind.KEPT_APART: "failed-standby-allocations",
    ReasonKind.COMMAND_FAILED: "failed-container-placements-actions",
}

_RACKS: Final[Mapping[ReasonKind, str]] = {
    ReasonKind.HOME_ASKED: "fault-domain-aware-container-requests",
    ReasonKind.OTHER_HOST_ASKED: "fault-domain-aware-container-requests",
    ReasonKind.ANY_HOST_ASKED: "fault-domain-aware-container-requests",
    ReasonKind.REQUEST_EXPIRED: "expired-fault-domain-aware-container-requests",
    ReasonKind.STARTED: "fault-domain-aware-containers-started",
    ReasonKind.KEPT_APART: "failed-fault-domain-aware-container-requests",
}

_FAILURES: Final = frozenset({ReasonKind.CHARGED, ReasonKind.NOT_CHARGED})
BUCKETS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
PHASE_BUCKETS_S: Final = (0.05, 0.1, 0.2, *BUCKETS_S)
PAUSE_BUCKETS_S: Final = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
_OUTCOMES: Final[Mapping[PlacementStatus, str]] = {
    PlacementStatus.SUCCEEDED: "succeeded",
    PlacementStatus.FAILED: "failed",
    PlacementStatus.BAD_REQUEST: "refused",
}
_MS_PER_S: Final = 1000


class AllocatorMetrics:
    """Counts decisions, from the beginning of this driver."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failures: Counter[tuple[str, bool]] = Counter()
        self._failovers: Counter[FailoverStep] = Counter()
        self._failed_failovers = 0
        self._reasons: Counter[ReasonKind] = Counter()
        self._recoveries = _Histogram(
            "homeport_recovery_seconds",
            "From the last sign of life of a container that ran until it did its work again.",
            ("cause",),
            BUCKETS_S,
        )
        self._phases = _Histogram(
            "homeport_recovery_phase_seconds",
            "The phases of recoveries: laid end to end they are the whole.",
            ("kind", "phase"),
            PHASE_BUCKETS_S,
        )
        self._warm_moves: Counter[str] = Counter()
        self._pauses = _Histogram(
            "homeport_warm_move_pause_seconds",
            "From the end of a container that is moved warm until it did its work elsewhere.",
            (),
            PAUSE_BUCKETS_S,
        )
        self._moved: dict[ProcessorId, int] = {}
        """{container that was moved warm: its epoch, while it has not done its work}"""
        self._asked: dict[ProcessorId, str] = {}
        self._chosen: dict[ProcessorId, ProcessorId | None] = {}

    def decided(self, event: Event, decision: Decision) -> None:
        """Count a decision."""
        if isinstance(event, JobModelPublished):
            self._note_failovers_under_way(event)
        for reason in decision.reasons:
            self._reasons[reason.kind] += 1
            if reason.kind in _COUNTED_BY:
                self._counts[_COUNTED_BY[reason.kind]] += 1
            self._count_request(reason)
            if reason.kind in _RACKS and _minds_racks(decision.state, reason.processor_id):
                self._counts[_RACKS[reason.kind]] += 1
            if reason.kind in _FAILURES:
                role = _role(decision.state, reason.processor_id)
                self._failures[role, reason.kind is ReasonKind.CHARGED] += 1
        self._count_failovers(decision.records)
        self._count_warm_moves(decision)

    def _note_failovers_under_way(self, event: JobModelPublished) -> None:
        """Note the failovers of an earlier driver, which has counted their choices.

        They are the event's: its decision may begin another one, because a host may be lost before
        any placing.
        """
        for active, record in event.failovers.items():
            self._chosen.setdefault(active, record.standby)

    def _count_failovers(self, records: Iterable[Record]) -> None:
        """Count failovers: a choice that is lost and the next one are records of one decision.

        A second choice without a standby counts as the first: only its list is longer.
        """
        chosen = {r.active: r for r in records if isinstance(r, WriteFailover)}
        for active, choice in chosen.items():
            has_no_standby = choice.step is FailoverStep.OTHER_HOST
            if has_no_standby and self._chosen.get(active, active) is None:
                continue
            self._failovers[choice.step] += 1
            self._counts["failovers-to-any-host" if has_no_standby else "failovers-to-standby"] += 1
            self._failed_failovers += self._chosen.get(active) is not None
            self._chosen[active] = choice.standby
        for record in records:
            if isinstance(record, EndFailover):
                self._chosen.pop(record.active, None)

    def _count_warm_moves(self, decision: Decision) -> None:
        """Count warm moves; a move without a standby has no pause: the container was there."""
        for record in decision.records:
            if not isinstance(record, WritePlacementResponse) or not record.request.is_warm:
                continue
            outcome, processor_id = _OUTCOMES.get(record.status), record.request.processor_id
            if outcome is not None:
                self._warm_moves[outcome] += 1
            container = decision.state.container(processor_id)
            if record.status is PlacementStatus.SUCCEEDED and record.standby and container:
                self._moved[processor_id] = container.epoch

    def _count_request(self, reason: Reason) -> None:
        """Remember the kind of each request, since the reason of its expiry does not name it."""
        if reason.processor_id is None:
            return
        asked = _COUNTED_BY.get(reason.kind, "")
        if asked.endswith("-requests"):
            self._asked[reason.processor_id] = asked
        elif reason.kind is ReasonKind.REQUEST_EXPIRED:
            expired = self._asked.get(reason.processor_id, "any-host-requests")
            self._counts[f"expired-{expired}"] += 1

    def recovered(self, recovery: Recovery) -> None:
        """Count a recovery that is over."""
        took_ms = recovery.since_ms - recovery.began_ms
        self._recoveries.observe((recovery.cause,), took_ms)
        if self._moved.pop(recovery.processor_id, None) == recovery.epoch:
            self._pauses.observe((), took_ms)
        kind = "" if recovery.kind is None else recovery.kind.value
        for phase, lasted_ms in recovery.phases_ms(recovery.since_ms).items():
            self._phases.observe((kind, phase.value), lasted_ms)

    def lease_expired(self) -> None:
        """Count a lease that ran out."""
        self._counts["heartbeats-expired"] += 1

    def collect(self, state: AllocatorState) -> Iterator[Metric]:
        """Yield each metric with its samples, where ``state`` is the present one."""
        for name, about in _COUNTERS.items():
            group = APP_MASTER if name in _OF_APP_MASTER else MANAGER
            yield _samza_metric(group, name, about, self._counts[name], grows=True)
        yield from self._present(state)
        failures = (
            ((role.value, str(is_charged).lower()), self._failures[role.value, is_charged])
            for role in ContainerRole
            for is_charged in (False, True)
        )
        yield family(
            "homeport_container_failures",
            "Ends without an order, and launches in vain; charged: to the retry keys.",
            failures,
            ("role", "charged"),
            grows=True,
        )
        yield family(
            "homeport_failovers",
            "Failovers, by where the active went.",
            (((step.value,), self._failovers[step]) for step in FailoverStep),
            ("kind",),
            grows=True,
        )
        yield family(
            "homeport_failed_failovers",
            "Choices of a standby's place that were lost, and followed by another.",
            [((), self._failed_failovers)],
            grows=True,
        )
        yield family(
            "homeport_warm_moves",
            "Warm moves, by their final answer.",
            (((outcome,), self._warm_moves[outcome]) for outcome in _OUTCOMES.values()),
            ("outcome",),
            grows=True,
        )
        yield self._pauses.metric()
        yield family(
            "homeport_decisions",
            "What was decided, by kind of reason.",
            (((kind.value,), self._reasons[kind]) for kind in ReasonKind),
            ("kind",),
            grows=True,
        )
        yield self._recoveries.metric()
        yield self._phases.metric()

    def _present(self, state: AllocatorState) -> Iterator[Metric]:
        phases = Counter(c.phase for c in state.containers if not c.is_retired)
        count = sum(phases.values())
        running = phases[ContainerPhase.RUNNING]
        finished = phases[ContainerPhase.FINISHED]
        needed = sum(n for phase, n in phases.items() if phase not in LIVE | TERMINAL)
        settings = state.settings
        requests = self._counts["preferred-host-requests"]
        expired = self._counts["expired-preferred-host-requests"]
        match_pct = 100 * (requests - expired) / requests if requests else 0
        idle = sum(
            1 for r in state.resources if not r.is_released and state.holder(r.resource_id) is None
        )
        is_healthy = count > 0 and running + finished == count
        for name, about, value in (
            ("running-containers", "Containers that run.", running),
            ("needed-containers", "Containers that wait for a resource.", needed),
            ("completed-containers", "Containers that came to their end.", finished),
            ("container-count", "Containers of the JobModel, of both roles.", count),
            ("job-healthy", "1 where every container runs, or came to its end.", int(is_healthy)),
            ("host-affinity-match-pct", "Preferred requests that did not expire.", match_pct),
            ("container-memory-mb", "Of each.", settings.container_memory_mb),
            ("container-cpu-cores", "Of each.", settings.container_cores),
        ):
            yield _samza_metric(MANAGER, name, about, value)
        about = "Launchers without a container."
        yield _samza_metric(APP_MASTER, "allocated-containers-in-buffer", about, idle)
        about = "Events that came too late, twice, or for an unknown container."
        stale = state.stale_events
        yield _samza_metric(MANAGER, "redundant-notifications", about, stale, grows=True)


class _Histogram:
    """One histogram of times, by its labels; ``bounds_s``: of all buckets but the last.

    Not prometheus_client's, which adds seconds as floats (and shows 0.30000000000000004) and shows
    when each was made.
    """

    def __init__(
        self, name: str, about: str, labels: tuple[str, ...], bounds_s: tuple[float, ...]
    ) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        self._bounds_s = bounds_s
        self._buckets: dict[tuple[str, ...], list[int]] = {}
        self._sums_ms: Counter[tuple[str, ...]] = Counter()

    def observe(self, labels: tuple[str, ...], took_ms: int) -> None:
        buckets = self._buckets.setdefault(labels, [0] * (len(self._bounds_s) + 1))
        buckets[bisect_left(self._bounds_s, took_ms / _MS_PER_S)] += 1
        self._sums_ms[labels] += took_ms

    def metric(self) -> Metric:
        metric = HistogramMetricFamily(self._name, self._about, labels=self._labels)
        for labels, buckets in sorted(self._buckets.items()):
            sums = zip((*map(str, self._bounds_s), "+Inf"), accumulate(buckets), strict=True)
            metric.add_metric(labels, list(sums), self._sums_ms[labels] / _MS_PER_S)
        return metric


def samza_name(group: str, name: str) -> str:
    """Return Prometheus' name of Samza's metric, by the rule above, without ``_total``."""
    return f"samza_{group.rpartition('.')[2]}_{name.replace('-', '_')}"


def _samza_metric(
    group: str, name: str, about: str, value: float, *, grows: bool = False
) -> Metric:
    help_text = f"{group} {name}. {about}"
    return family(samza_name(group, name), help_text, [((), value)], grows=grows)


def _minds_racks(state: AllocatorState, processor_id: ProcessorId | None) -> bool:
    container = None if processor_id is None else state.container(processor_id)
    is_standby = container is not None and container.replica_of is not None
    return is_standby and (state.settings.racks_are_preferred or state.settings.racks_are_apart)


def _role(state: AllocatorState, processor_id: ProcessorId | None) -> str:
    container = None if processor_id is None else state.container(processor_id)
    return (container.role if container is not None else ContainerRole.ACTIVE).value
