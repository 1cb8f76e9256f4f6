"""What follows from launchers' messages once their events are decided, and the records written.

A message may come again, and then leads to the same; an event that is stale does, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from homeport.appmaster.attempt.attempt_files import StartedLedger
from homeport.appmaster.driver.driver_view import DriverView
from homeport.appmaster.driver.standby_reports import StandbyReports
from homeport.appmaster.lease.fencing import Fencing
from homeport.appmaster.lease.keeper_client import KeeperClient
from homeport.appmaster.report.decision_log import DecisionLog
from homeport.appmaster.report.step import Step
from homeport.job_coordinator.http.messages import CheckIn, Started, Stopped
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.incarnation import Incarnation

log = logging.getLogger("driver")


class LauncherMessages:
    """To be used on the driver's event loop.

    Args:
        found: takes an incarnation that runs, and its host.
        gone: takes an incarnation that has stopped, and the cause.
    """

    def __init__(
        self,
        *,
        view: DriverView,
        decisions: DecisionLog,
        standbys: StandbyReports,
        leases: KeeperClient,
        fencing: Fencing,
        started: StartedLedger,
        found: Callable[[Incarnation, Host], None],
        gone: Callable[[Incarnation, str], None],
    ) -> None:
        self._view = view
        self._status = view.status
        self._decisions = decisions
        self._standbys = standbys
        self._leases = leases
        self._fencing = fencing
        self._ledger = started
        self._found = found
        self._gone = gone
        self._under_way: set[asyncio.Task[None]] = set()
        for known in started.read():
            self._status.started(known)

    def reported(self, step: Step) -> None:
        """The reports get the launcher's message before the decision."""
        match step.message:
            case Started() as message:
                self._status.started(message)
                self._ledger.add(message)
                self._decisions.started(message)
            case Stopped() as message:
                self._status.stopped(message)
                self._decisions.stopped(message, step.known_ms - message.age_ms)

    def followed(self, step: Step) -> None:
        """Record what runs and what has ended; end its lease, fence what may hang."""
        match step.message:
            case CheckIn(running=Incarnation() as running) as message if self._view.runs(running):
                self._works(running, message)
            case Stopped(incarnation=incarnation, cause=cause):
                self._end_lease(incarnation)
                if not cause.is_in_order:
                    self._fencing.stopped(incarnation)
                self._gone(incarnation, cause.value)

    def _works(self, running: Incarnation, message: CheckIn) -> None:
        self._found(running, message.host)
        self._status.reported(running, message.report)
        self._decisions.recoveries.reported(running, message.report)
        left = None if message.report is None else message.report.left_to_read
        if left is not None:
            self._standbys.heard(running, left, message.spare)

    def _end_lease(self, incarnation: Incarnation) -> None:
        """The keeper gets the message in a thread: its order puts the next permit after that."""
        task = asyncio.ensure_future(self._leases.ended(incarnation))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
