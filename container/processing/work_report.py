"""WorkReport: what an active container reports of its work to the AM.

What is new with every transaction, as the number of records, is reported once a second at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from homeport.container.host.lease_memory import unheard
from homeport.container.storage.value_guard import ValueGuard
from homeport.job_coordinator.http.container_report import (
    AdjunctState,
    ContainerReport,
    DroppedValues,
    StageTime,
)

_MS_PER_S = 1000
_EVERY_S = 1.0


class WorkReport:
    """One report, which is sent again when a fact of it is new.

    Args:
        send: hands a report to the launcher; the last one holds.
        elapsed_s: seconds since the first own step of the process.
    """

    def __init__(
        self,
        send: Callable[[ContainerReport], None] = unheard,
        elapsed_s: Callable[[], float] = float,
    ) -> None:
        self._send = send
        self._elapsed_s = elapsed_s
        self._guards: list[ValueGuard] = []
        self._sent = ContainerReport()
        self._records = 0
        self._ended = 0
        self._committed = 0
        self._due_s = 0.0
        self._spent_s: dict[str, float] = {}
        self._times: dict[str, int] = {}
        self._lost = 0
        self._adjuncts: Callable[[], tuple[AdjunctState, ...]] = tuple

    def count(self, guard: ValueGuard | None) -> ValueGuard | None:
        """The report counts what ``guard`` drops; returns ``guard``."""
        if guard is not None:
            self._guards.append(guard)
        return guard

    def report_adjuncts(self, adjuncts: Callable[[], tuple[AdjunctState, ...]]) -> None:
        """The report has what ``adjuncts`` says of the adjunct stores; not called for long."""
        self._adjuncts = adjuncts

    def read(self, records: int) -> None:
        """The open transaction has so many more records of the input."""
        self._records += records

    def spent(self, stage: str, seconds: float) -> None:
        """A stage has worked once more, for so long."""
        self._spent_s[stage] = self._spent_s.get(stage, 0.0) + seconds
        self._times[stage] = self._times.get(stage, 0) + 1

    def ended(self) -> None:
        """The open transaction is on its way, with all records read so far."""
        self._ended = self._records

    def lost(self, offsets: int) -> None:
        """So many more offsets of the input were deleted before they were read."""
        self._lost += offsets

    def committed(self, lag: Callable[[], int]) -> None:
        """The ended transaction is committed: when, if it is the first, and the values dropped.

        ``lag``: of the input, in records; not called for each transaction.
        """
        self._committed = self._ended
        report = self._sent
        if report.first_commit_ms is None:
            report = replace(report, first_commit_ms=self._now_ms())
        dropped = tuple(
            DroppedValues(guard.store, guard.task_name, guard.dropped)
            for guard in self._guards
            if guard.dropped
        )
        report = replace(report, dropped=dropped, input_lost=self._lost or None)
        self._report(self._with_numbers(report, lag))

    def idles(self, is_caught_up: Callable[[], bool], lag: Callable[[], int]) -> None:
        """A poll brought nothing. ``is_caught_up``: whether no input waits; not called for long."""
        report = self._sent
        if report.works_after_ms is None and is_caught_up():
            report = replace(report, caught_up_ms=self._now_ms())
        if self._lost:
            report = replace(report, input_lost=self._lost)
        self._report(self._with_numbers(report, lag))

    def _with_numbers(self, report: ContainerReport, lag: Callable[[], int]) -> ContainerReport:
        """``report`` with what changes all the time, where that is due again."""
        now_s = self._elapsed_s()
        if now_s < self._due_s:
            return report
        self._due_s = now_s + _EVERY_S
        spent = sorted(self._spent_s.items())
        stages = tuple(StageTime(n, round(s * _MS_PER_S), self._times[n]) for n, s in spent)
        return replace(
            report,
            processed=self._committed,
            input_lag=lag(),
            stages=stages,
            adjuncts=self._adjuncts(),
        )

    def _report(self, report: ContainerReport) -> None:
        if report != self._sent:
            self._sent = report
            self._send(report)

    def _now_ms(self) -> int:
        return round(self._elapsed_s() * _MS_PER_S)
