"""The reports of standbys, and of starts, in each check-in, for the allocator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from homeport.appmaster.allocation.protocol.events import LagsReported, SparesReported
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import SpareReport

_KIND_WITH_SPARK = "warm"


class _LastReport(NamedTuple):
    epoch: int = 0
    lag: int = 0
    has_spark: bool = False


class StandbyReports:
    """Collects the reports, so that the allocator gets all in one event of each kind."""

    def __init__(self) -> None:
        self._known: dict[ProcessorId, _LastReport] = {}
        self._lags: dict[ProcessorId, int] = {}
        self._ready: dict[ProcessorId, bool] = {}

    def heard(self, standby: Incarnation, lag: int, spare: SpareReport | None) -> None:
        """Note how many records the container has left to read; a new incarnation is news."""
        has_spark = spare is not None and spare.kind == _KIND_WITH_SPARK and spare.is_ready
        processor_id = standby.processor_id
        last = self._known.get(processor_id, _LastReport())
        is_same = last.epoch == standby.epoch
        if not is_same or last.lag != lag:
            self._lags[processor_id] = lag
        if has_spark != (last.has_spark and is_same):
            self._ready[processor_id] = has_spark
        self._known[processor_id] = _LastReport(standby.epoch, lag, has_spark)

    def news(self) -> Iterator[LagsReported | SparesReported]:
        """What has changed since the last call."""
        lags, self._lags = self._lags, {}
        ready, self._ready = self._ready, {}
        if lags:
            yield LagsReported(lags)
        if ready:
            yield SparesReported(ready)
