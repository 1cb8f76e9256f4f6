"""WorkReport: what an active container reports of its work to the AM.

Numbers that change with every transaction are reported once a second at most.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from homeport.container.host.lease_memory import unheard
from homeport.container.reporting.own_metrics import OwnMetrics
from homeport.container.storage.typed_store import ValueGuard
from homeport.job_coordinator.status.container_report import (
    STAGE_BOUNDS_S,
    AdjunctState,
    ContainerReport,
    DroppedValues,
    StageTime,
)
from homeport.job_coordinator.status.figures import Sample

_MS_PER_S = 1000
_EVERY_S = 1.0
_FIGURES_EVERY_S = 5.0


class WorkReport:
    """One report, which is sent again when a fact in it is new.

    ``send``: hands a report to the launcher, which keeps the last one. ``elapsed_s``: returns the
    seconds since the container's first step. ``works``: called whenever a transaction is committed,
    or no input waits. ``own_metrics``: those of the job's own.
    """

    def __init__(
        self,
        send: Callable[[ContainerReport], None] = unheard,
        elapsed_s: Callable[[], float] = float,
        works: Callable[[], object] = bool,
    ) -> None:
        self._send = send
        self._elapsed_s = elapsed_s
        self._works = works
        self._guards: list[ValueGuard] = []
        self._sent = ContainerReport()
        self._records = 0
        self._ended = 0
        self._committed = 0
        self._due_s = 0.0
        self._spent_s: dict[str, float] = {}
        self._times: dict[str, list[int]] = {}
        self._lost = 0
        self._adjuncts: Callable[[], tuple[AdjunctState, ...]] = tuple
        self.own_metrics = OwnMetrics()
        self._figures: list[Callable[[], Iterable[Sample]]] = [
            lambda: [Sample("task_rows", (task,), rows) for task, rows in self._rows.items()],
            self.own_metrics.figures,
        ]
        self._rows: Counter[str] = Counter()
        self._figures_due_s = 0.0

    def count(self, guard: ValueGuard | None) -> ValueGuard | None:
        """Have the report count what ``guard`` drops; return ``guard``."""
        if guard is not None:
            self._guards.append(guard)
        return guard

    def report_adjuncts(self, adjuncts: Callable[[], tuple[AdjunctState, ...]]) -> None:
        """Report the adjunct stores as ``adjuncts`` returns them; called once a second at most."""
        self._adjuncts = adjuncts

    def add_figures(self, figures: Callable[[], Iterable[Sample]]) -> None:
        """Report what ``figures`` samples; called every five seconds at most."""
        self._figures.append(figures)

    def read(self, records: int) -> None:
        """Add so many records of the input to the open transaction."""
        self._records += records

    def had_rows(self, task: str, rows: int) -> None:
        """Add so many rows to a task's count."""
        self._rows[task] += rows

    def spent(self, stage: str, seconds: float) -> None:
        """Add one more run of a stage, of so many seconds."""
        self._spent_s[stage] = self._spent_s.get(stage, 0.0) + seconds
        counts = self._times.setdefault(stage, [0] * (len(STAGE_BOUNDS_S) + 1))
        counts[bisect_left(STAGE_BOUNDS_S, seconds)] += 1

    def ended(self) -> None:
        """Note that the commit has begun, of all records read so far."""
        self._ended = self._records

    def lost(self, offsets: int) -> None:
        """Count so many offsets of the input that were deleted before they were read."""
        self._lost += offsets

    def committed(self, lag: Callable[[], int]) -> None:
        """Note the commit of the ended transaction, and report the values that it dropped.

        ``lag``: returns the input's lag in records; some transactions do not call it.
        """
        self._works()
        self._committed = self._ended
        report = self._sent
        if report.first_commit_ms is None:
            report = replace(report, first_commit_ms=self._now_ms())
        dropped = tuple(
            DroppedValues(guard.store, guard.task_name, guard.dropped)
            for guard in self._guards
            if guard.dropped
        )
        self._report(self._with_numbers(replace(report, dropped=dropped), lag))

    def idles(self, is_caught_up: Callable[[], bool], lag: Callable[[], int]) -> None:
        """Note an empty poll. ``is_caught_up``: returns whether no input waits."""
        self._works()
        report = self._sent
        if report.works_after_ms is None and is_caught_up():
            report = replace(report, caught_up_ms=self._now_ms())
        self._report(self._with_numbers(report, lag))

    def _with_numbers(self, report: ContainerReport, lag: Callable[[], int]) -> ContainerReport:
        now_s = self._elapsed_s()
        if now_s < self._due_s:
            return report
        self._due_s = now_s + _EVERY_S
        stages = tuple(
            StageTime(n, round(s * _MS_PER_S), sum(self._times[n]), tuple(self._times[n]))
            for n, s in sorted(self._spent_s.items())
        )
        if now_s >= self._figures_due_s:
            self._figures_due_s = now_s + _FIGURES_EVERY_S
            sampled = tuple(sample for figures in self._figures for sample in figures())
            report = replace(report, figures=sampled, own=self.own_metrics.sampled())
        return replace(
            report,
            processed=self._committed,
            input_lag=lag(),
            stages=stages,
            adjuncts=self._adjuncts(),
        )

    def _report(self, report: ContainerReport) -> None:
        report = replace(report, input_lost=self._lost or None)
        if report != self._sent:
            self._sent = report
            self._send(report)

    def _now_ms(self) -> int:
        return round(self._elapsed_s() * _MS_PER_S)
