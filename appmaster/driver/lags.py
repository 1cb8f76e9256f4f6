"""How far standby containers are behind, as their launchers report with each check-in."""

from __future__ import annotations

from homeport.appmaster.allocation.protocol.events import LagsReported
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation


class LagBoard:
    """Collects the reports, so that the allocator gets all in one event."""

    def __init__(self) -> None:
        self._known: dict[ProcessorId, tuple[int, int]] = {}
        """{standby: epoch of the incarnation that was heard last, and its lag}"""
        self._news: dict[ProcessorId, int] = {}

    def heard(self, standby: Incarnation, lag: int) -> None:
        """The standby is so many records behind; of a new incarnation that is always news."""
        heard = (standby.epoch, lag)
        if self._known.get(standby.processor_id) != heard:
            self._known[standby.processor_id] = heard
            self._news[standby.processor_id] = lag

    def news(self) -> LagsReported | None:
        """What has changed since the last call; None where nothing has."""
        found, self._news = self._news, {}
        return LagsReported(found) if found else None
