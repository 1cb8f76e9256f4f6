"""What the AM serves by HTTP: the driver as the server sees it.

The answer to a launcher's check-in is what that very check-in led to. While the driver is busy, as
when records cannot be written because Kafka is away, launchers are told to go on as they are: they
live, and so does the AM.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeport.appmaster.allocation.failover import makes_way
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    LauncherCheckedIn,
    ShutdownRequested,
    named,
)
from homeport.appmaster.allocation.protocol.instructions import (
    PermitContainer,
    ReleaseResource,
    StopContainer,
    order_for,
)
from homeport.appmaster.attempt.attempt_files import StartedLedger
from homeport.appmaster.clocks import boot_ms
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.driver.polling import Hurry, is_overdue, poll_interval_ms
from homeport.appmaster.lease.launcher_table import LauncherEntry
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Started, Stopped
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.outcomes import StopCause

log = logging.getLogger("driver")


class DriverBackend:
    """``JobCoordinatorBackend`` on a driver. To be used on the driver's event loop."""

    def __init__(
        self,
        *,
        driver: Driver,
        attempt: int,
        resources: ClusterResourceManager,
        history: HistoryWriter,
        started: StartedLedger,
    ) -> None:
        self._driver = driver
        self._attempt = attempt
        self._shelf = driver.live.shelf
        self._resources = resources
        self._history = history
        self._started = started
        self._hurry = Hurry()
        self._told: set[Incarnation] = set()
        for known in started.read():
            self._told.add(known.incarnation)
            driver.status.started(known)

    def job_model(self, version: int | None) -> JobModel | None:
        """The JobModel in force, or one of this attempt's; None for any other version."""
        return self._shelf.get(version)

    def locality(self) -> Mapping[ProcessorId, Host]:
        """{processor_id: host} as the coordinator stream has it."""
        return self._driver.localities

    def is_running(self, resource_id: ResourceId) -> bool:
        """Whether a stream container that this AM permitted runs there."""
        launcher = self._driver.launchers.find(resource_id)
        running = None if launcher is None else launcher.running
        return running is not None and self._driver.runs(running)

    async def check_in(self, message: CheckIn) -> Order:
        """What the launcher is to do now."""
        request_id = self._resources.request_of(message.skein_id)
        if message.attempt != self._attempt:
            return self._order(OrderKind.EXIT)
        if request_id is None:
            # Perhaps Skein was faster with the container than with its answer to our request.
            return self._order(OrderKind.EXIT if not self._driver.is_asking else OrderKind.WAIT)
        self._driver.launchers.heard(
            LauncherEntry(
                message.resource_id,
                request_id,
                message.host,
                message.pid,
                message.running,
                boot_ms(),
                message.spare,
            )
        )
        try:
            return await self._decide(message, request_id)
        except UnavailableError:
            return self._order(OrderKind.WAIT)

    async def _decide(self, message: CheckIn, request_id: RequestId) -> Order:
        if self._driver.is_ending:
            return self._order(OrderKind.EXIT)
        if message.running is None and not self._driver.adoption.is_complete:
            return self._order(OrderKind.WAIT)
        event = LauncherCheckedIn(message.resource_id, message.host, message.running, request_id)
        decision = await self._driver.ask(event)
        if message.running is not None and self._driver.runs(message.running):
            self._driver.found(message.running, message.host)
            self._driver.status.reported(message.running, message.report)
            self._driver.decisions.recoveries.reported(message.running, message.report)
            if message.report is not None and message.report.lag is not None:
                self._driver.lags.heard(message.running, message.report.lag)
        match order_for(decision.instructions, message.resource_id):
            case PermitContainer() as permit:
                return await self._order_to_run(permit)
            case StopContainer(incarnation=incarnation):
                is_hint = makes_way(decision.state, incarnation.processor_id)
                return replace(self._order(OrderKind.STOP, incarnation), makes_way=is_hint)
            case ReleaseResource():
                return self._order(OrderKind.EXIT)
        return self._order(OrderKind.WAIT, is_awaited=self._is_awaited(message))

    def _is_awaited(self, message: CheckIn) -> bool:
        """Whether the launcher is soon to get an order, as far as can be seen."""
        state = self._driver.state
        if message.running is None:
            return state.holder(message.resource_id) is not None
        standby = state.container(message.running.processor_id)
        if standby is None or standby.replica_of is None:
            return False
        active = state.container(standby.replica_of)
        if active is None or active.resource_id is None:
            return False
        launcher = self._driver.launchers.find(active.resource_id)
        lease_ms = self._driver.settings.lease_ms
        return launcher is not None and is_overdue(
            launcher.heard_ms, boot_ms(), self._interval_ms, lease_ms
        )

    async def _order_to_run(self, permit: PermitContainer) -> Order:
        if not await self._driver.leases.grants(permit.incarnation):
            return self._order(OrderKind.WAIT, is_awaited=True)  # the permit comes again
        return Order(
            OrderKind.RUN,
            self._next_ms(is_awaited=True),
            self._driver.settings.lease_ms,
            permit.incarnation,
            permit.model_version,
            permit.fence,
            self._driver.leases.url,
        )

    def _order(
        self, kind: OrderKind, incarnation: Incarnation | None = None, *, is_awaited: bool = False
    ) -> Order:
        next_ms = self._next_ms(is_awaited=is_awaited)
        return Order(kind, next_ms, self._driver.settings.lease_ms, incarnation)

    def _next_ms(self, *, is_awaited: bool) -> int:
        interval_ms = self._interval_ms
        return self._hurry.next_ms(interval_ms, boot_ms()) if is_awaited else interval_ms

    @property
    def _interval_ms(self) -> int:
        settings, launchers = self._driver.settings, len(self._driver.launchers)
        return poll_interval_ms(settings.check_in_interval_ms, launchers, settings.lease_ms)

    async def started(self, message: Started) -> None:
        """A stream container has started."""
        self._require_known(message.incarnation)
        self._driver.status.started(message)
        self._driver.decisions.recoveries.started(message)
        if message.incarnation not in self._told:
            self._told.add(message.incarnation)
            self._started.add(message)
        self._history.event(
            "started",
            message.incarnation.processor_id,
            message.incarnation.epoch,
            seconds=dict(message.seconds),
        )
        await self._driver.ask(ContainerStarted(message.incarnation))

    async def stopped(self, message: Stopped) -> None:
        """A stream container has ended."""
        self._require_known(message.incarnation)
        self._driver.status.stopped(message)
        seen_ms = boot_ms() - message.age_ms
        self._driver.decisions.recoveries.seen(message.incarnation, seen_ms)
        log.info(
            "processor %s epoch %d stopped: %s, exit code %d",
            message.incarnation.processor_id,
            message.incarnation.epoch,
            message.cause.value,
            message.exit_code,
        )
        await self._driver.ask(
            ContainerStopped(message.incarnation, message.cause, message.exit_code)
        )
        await self._driver.leases.ended(message.incarnation)
        if message.cause not in {StopCause.ORDERED, StopCause.FINISHED}:  # those closed in order
            self._driver.fencing.stopped(message.incarnation)
        self._driver.gone(message.incarnation, message.cause.value)

    async def shutdown(self) -> None:
        """The orderly end of the job has been ordered."""
        self._driver.end_job(ShutdownRequested())

    def status(self) -> Mapping[str, Any]:
        """The state of the job."""
        driver = self._driver
        body = driver.status.to_json(driver.state, driver.launchers, driver.stream_fault)
        held_back = driver.hold_back.pending if driver.status.held_back is None else ()
        recoveries = driver.decisions.recoveries
        return {
            **body,
            "containers": [
                {**c, "recovery": recoveries.to_json(c["processor_id"])} for c in body["containers"]
            ],
            "unaccounted": [named(i) for i in (*driver.adoption.pending, *held_back)],
            "coordinator_stream_age_ms": driver.desk.age_ms,
            "waiting": driver.status.waiting(driver.state, driver.cluster.hosts),
            "coordinator_stream_damaged": driver.desk.damaged_count,
            "configuration": driver.live.to_json(),
        }

    def _require_known(self, incarnation: Incarnation) -> None:
        # A retired one too: it is heard until it has stopped.
        if not self._shelf.knows(incarnation.processor_id):
            raise WireError(f"the job has no processor {incarnation.processor_id!r}")
