"""Follows launchers' messages once their events are decided, and the records are written.

A message that comes again has the same effect, and so has one whose event is stale.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from homeport.appmaster.allocation.job_state.state import Preparation
from homeport.appmaster.allocation.protocol.events import LagsReported, SparesReported
from homeport.appmaster.attempt.attempt_files import StartedLedger
from homeport.appmaster.driver.driver_view import DriverView
from homeport.appmaster.lease.fencing import Fencing
from homeport.appmaster.lease.keeper_client import KeeperClient
from homeport.appmaster.report.decision_log import DecisionLog
from homeport.appmaster.report.step import Step
from homeport.job_coordinator.http.messages import CheckIn, Started, Stopped
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import SPARE_WITH_SPARK, SpareReport


class _LastReport(NamedTuple):
    epoch: int = 0
    lag: int = 0
    has_spark: bool = False


class StandbyReports:
    """Collects reports of standbys: the allocator gets all of a kind in one event."""

    def __init__(self) -> None:
        self._known: dict[ProcessorId, _LastReport] = {}
        self._lags: dict[ProcessorId, int] = {}
        self._ready: dict[ProcessorId, bool] = {}

    def heard(self, standby: Incarnation, lag: int, spare: SpareReport | None) -> None:
        """Note the records left to read and the spare; for a new incarnation both are news."""
        has_spark = spare is not None and spare.kind == SPARE_WITH_SPARK and spare.is_ready
        processor_id = standby.processor_id
        last = self._known.get(processor_id, _LastReport())
        is_same = last.epoch == standby.epoch
        if not is_same or last.lag != lag:
            self._lags[processor_id] = lag
        if has_spark != (last.has_spark and is_same):
            self._ready[processor_id] = has_spark
        self._known[processor_id] = _LastReport(standby.epoch, lag, has_spark)

    def prepared(self, processor_id: ProcessorId) -> None:
        """Note that a launcher has the process ready that its processor's permit waits for."""
        self._ready[processor_id] = True

    def news(self) -> Iterator[LagsReported | SparesReported]:
        """Yield the changes since the last call."""
        lags, self._lags = self._lags, {}
        ready, self._ready = self._ready, {}
        if lags:
            yield LagsReported(lags)
        if ready:
            yield SparesReported(ready)


@dataclass(kw_only=True, slots=True)
class LauncherMessages:
    """Two observers of each step, on the driver's event loop.

    ``found`` gets each incarnation that runs, with its host; ``gone`` each that has stopped, with
    the cause.
    """

    view: DriverView
    decisions: DecisionLog
    standbys: StandbyReports
    leases: KeeperClient
    fencing: Fencing
    started: StartedLedger
    found: Callable[[Incarnation, Host], None]
    gone: Callable[[Incarnation, str], None]
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for known in self.started.read():
            self.view.status.started(known)

    def reported(self, step: Step) -> None:
        """Give the launcher's message to the reports, before the decision."""
        match step.message:
            case Started() as message:
                self.view.status.started(message)
                self.started.add(message)
                self.decisions.started(message)
            case Stopped() as message:
                self.view.status.stopped(message)
                self.decisions.stopped(message, step.known_ms - message.age_ms)

    def followed(self, step: Step) -> None:
        """Note what runs and what has ended; end its lease, fence what may hang."""
        match step.message:
            case CheckIn(running=Incarnation() as running) as message if self.view.runs(running):
                self._works(running, message)
            case CheckIn(running=None, spare=SpareReport(is_ready=True), resource_id=resource_id):
                self._is_prepared(resource_id)
            case Stopped(incarnation=incarnation, cause=cause):
                self._end_lease(incarnation)
                if not cause.is_in_order:
                    self.fencing.stopped(incarnation)
                self.gone(incarnation, cause.value)

    def _is_prepared(self, resource_id: ResourceId) -> None:
        holder = self.view.state.holder(resource_id)
        if holder is not None and holder.preparation is Preparation.ORDERED:
            self.standbys.prepared(holder.processor_id)

    def _works(self, running: Incarnation, message: CheckIn) -> None:
        self.found(running, message.host)
        self.view.status.reported(running, message.report)
        self.decisions.works(running, message.report)
        left = None if message.report is None else message.report.left_to_read
        if left is not None:
            self.standbys.heard(running, left, message.spare)

    def _end_lease(self, incarnation: Incarnation) -> None:
        """Report the end to the keeper in a thread, whose order puts the next permit after it."""
        task = asyncio.ensure_future(self.leases.ended(incarnation))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
