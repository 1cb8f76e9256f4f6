"""How far standby containers are behind, as their launchers tell with each check-in."""

from __future__ import annotations

from homeport.appmaster.allocation.events import LagsReported
from homeport.job_coordinator.model.ids import ProcessorId


class LagBoard:
    """Collects what is told, so that the allocator hears of all in one event."""

    def __init__(self) -> None:
        self._known: dict[ProcessorId, int] = {}
        self._news: dict[ProcessorId, int] = {}

    def heard(self, standby: ProcessorId, lag: int) -> None:
        """The standby is so many records behind."""
        if self._known.get(standby) != lag:
            self._news[standby] = self._known[standby] = lag

    def news(self) -> LagsReported | None:
        """What has changed since the last call; None where nothing has."""
        found, self._news = self._news, {}
        return LagsReported(found) if found else None
