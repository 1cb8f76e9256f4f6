"""WorkReport: what the AM is told of an active container that works, from its several sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from homeport.container.host.lease_memory import unheard
from homeport.container.storage.value_guard import ValueGuard
from homeport.job_coordinator.http.container_report import ContainerReport, DroppedValues


class WorkReport:
    """What one source has told stays when another tells something.

    ``tell``: hands a report on to the AM; the last one holds.
    """

    def __init__(self, tell: Callable[[ContainerReport], None] = unheard) -> None:
        self._tell = tell
        self._guards: list[ValueGuard] = []
        self._told = ContainerReport()

    def count(self, guard: ValueGuard | None) -> ValueGuard | None:
        """What ``guard`` drops will be told; ``guard``."""
        if guard is not None:
            self._guards.append(guard)
        return guard

    def first_work(self, report: ContainerReport) -> None:
        """When the container did its first work."""
        self._say(replace(report, dropped=self._told.dropped))

    def dropped(self) -> None:
        """What was dropped since it was told last; of nothing new, nothing."""
        found = tuple(
            DroppedValues(guard.store, guard.task_name, guard.dropped)
            for guard in self._guards
            if guard.dropped
        )
        if found != self._told.dropped:
            self._say(replace(self._told, dropped=found))

    def _say(self, report: ContainerReport) -> None:
        self._told = report
        self._tell(report)
