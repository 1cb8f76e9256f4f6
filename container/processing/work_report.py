"""WorkReport: what an active container reports of its work to the AM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from homeport.container.host.lease_memory import unheard
from homeport.container.storage.value_guard import ValueGuard
from homeport.job_coordinator.http.container_report import ContainerReport, DroppedValues

_MS_PER_S = 1000


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

    def count(self, guard: ValueGuard | None) -> ValueGuard | None:
        """The report counts what ``guard`` drops; returns ``guard``."""
        if guard is not None:
            self._guards.append(guard)
        return guard

    def committed(self) -> None:
        """A transaction is committed: reports when, if it is the first, and the values dropped."""
        report = self._sent
        if report.first_commit_ms is None:
            report = replace(report, first_commit_ms=self._now_ms())
        dropped = tuple(
            DroppedValues(guard.store, guard.task_name, guard.dropped)
            for guard in self._guards
            if guard.dropped
        )
        self._report(replace(report, dropped=dropped))

    def idles(self, is_caught_up: Callable[[], bool]) -> None:
        """A poll brought nothing. ``is_caught_up``: whether no input waits; not called for long."""
        if self._sent.works_after_ms is None and is_caught_up():
            self._report(replace(self._sent, caught_up_ms=self._now_ms()))

    def _report(self, report: ContainerReport) -> None:
        if report != self._sent:
            self._sent = report
            self._send(report)

    def _now_ms(self) -> int:
        return round(self._elapsed_s() * _MS_PER_S)
