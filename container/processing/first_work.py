"""FirstWork: tells the AM when a container that has started does its work again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from homeport.container.host.lease_memory import unheard
from homeport.job_coordinator.http.container_report import ContainerReport

_MS_PER_S = 1000


class FirstWork:
    """Each of its two facts is told at once, and once. Any later call costs a look.

    Args:
        elapsed_s: seconds since the first own step of the process.
        tell: hands a report on to the AM; the last one holds.
    """

    def __init__(
        self,
        elapsed_s: Callable[[], float] = float,
        tell: Callable[[ContainerReport], None] = unheard,
    ) -> None:
        self._elapsed_s = elapsed_s
        self._tell = tell
        self._told = ContainerReport()

    def committed(self) -> None:
        """A transaction is committed."""
        if self._told.first_commit_ms is None:
            self._say(replace(self._told, first_commit_ms=self._now_ms()))

    def idles(self, is_caught_up: Callable[[], bool]) -> None:
        """A poll brought nothing; ``is_caught_up``: whether nothing waits."""
        if self._told.works_after_ms is None and is_caught_up():
            self._say(replace(self._told, caught_up_ms=self._now_ms()))

    def _say(self, report: ContainerReport) -> None:
        self._told = report
        self._tell(report)

    def _now_ms(self) -> int:
        return round(self._elapsed_s() * _MS_PER_S)
