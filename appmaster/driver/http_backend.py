"""Serves the driver by HTTP.

The answer to a launcher's check-in is the order that this check-in led to. While the driver is
busy, as when Kafka is away and records cannot be written, launchers get the order to go on as they
are: they live, and so does the AM.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from prometheus_client.core import Metric

from homeport.appmaster.allocation.job_state.state import Containers, JobPhase
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    LauncherCheckedIn,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import (
    PermitContainer,
    PrepareProcess,
    ReleaseResource,
    StopContainer,
    order_for,
)
from homeport.appmaster.allocation.standby_container_manager import is_replaced
from homeport.appmaster.allocation.what_if import known_hosts, what_if
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.driver.polling import Hurry, is_overdue, poll_interval_ms
from homeport.appmaster.job_model.mixed_roles import places_of, with_tasks
from homeport.appmaster.lease.launcher_table import LauncherEntry
from homeport.appmaster.upgrade.sources import next_package
from homeport.config.errors import UnavailableError, WireError
from homeport.config.settings.sections import TaskConfig
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.grouper.read_ahead import files_on
from homeport.job_coordinator.grouper.standby_models import temporary_standby
from homeport.job_coordinator.http.messages import (
    CheckIn,
    Order,
    OrderKind,
    Started,
    Stopped,
    Unfit,
)
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode
from homeport.job_coordinator.model.json_values import shown
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import SPARE_WITH_SPARK, SPARE_WITHOUT_SPARK, ShownStatus


class DriverBackend:
    """``JobCoordinatorBackend`` and ``LauncherBackend`` on a driver, on its event loop."""

    def __init__(self, driver: Driver, attempt: int, resources: ClusterResourceManager) -> None:
        self._driver = driver
        self._attempt = attempt
        self._view = driver.view
        self._job_models = driver.live.job_models
        self._resources = resources
        self._hurry = Hurry()

    def job_model(self, version: int | None) -> JobModel | None:
        """Return the JobModel in force, or one of this attempt's; None for any other version."""
        return self._job_models.get(version)

    def temporary_standbys(self) -> Mapping[ProcessorId, ContainerModel]:
        """Return the containers of the standbys of warm moves, which no JobModel has."""
        if not self._view.state.placements:
            return {}
        model, places, state = self._job_models.model, self._driver.places, self._view.state
        found = {}
        for container in state.containers:
            active = model.containers.get(container.replica_of or container.processor_id)
            if container.is_temporary and active is not None:
                there = files_on(state.host_of(container), model, places)
                found[container.processor_id] = temporary_standby(active, there)
        return found

    async def package(self, name: str) -> bytes | None:
        """Return the package as the coordinator stream has it, for any attempt."""
        return await self._view.stream.package(name)

    def locality(self) -> Mapping[ProcessorId, Host]:
        """Return {processor_id: host} as the coordinator stream has it."""
        return self._view.localities

    def is_running(self, resource_id: ResourceId) -> bool:
        """Return whether a stream container that this AM permitted runs there."""
        launcher = self._driver.launchers.find(resource_id)
        running = None if launcher is None else launcher.running
        return running is not None and self._view.runs(running)

    async def check_in(self, message: CheckIn) -> Order:
        """Return the launcher's next order."""
        request_id = self._resources.request_of(message.skein_id)
        if message.attempt != self._attempt:
            return self._order(OrderKind.EXIT)
        if request_id is None:
            # Perhaps Skein was faster with the container than with its answer to our request.
            return self._order(
                OrderKind.EXIT if not self._view.resources.is_asking else OrderKind.WAIT
            )
        self._driver.launchers.heard(
            LauncherEntry(
                message.resource_id,
                request_id,
                message.host,
                message.pid,
                message.running,
                boot_ms(),
                message.spare,
                message.package,
                message.prepared,
                message.python,
                message.version,
            )
        )
        try:
            return await self._decide(message, request_id)
        except UnavailableError:
            return self._order(OrderKind.WAIT)

    async def _decide(self, message: CheckIn, request_id: RequestId) -> Order:
        is_early = message.running is None and not self._view.adoption.is_complete
        if self._view.state.phase is JobPhase.ENDED or is_early:
            is_over = self._view.state.phase is JobPhase.ENDED
            return self._order(OrderKind.EXIT if is_over else OrderKind.WAIT)
        event = LauncherCheckedIn(message.resource_id, message.host, message.running, request_id)
        decision = await self._driver.ask(event, message)
        match order_for(decision.instructions, message.resource_id):
            case PermitContainer() as permit:
                return await self._order_to_run(permit)
            case StopContainer() as stop:
                return self._order_to_stop(stop)
            case PrepareProcess(processor_id=processor_id):
                return self._order_to_prepare(processor_id)
            case ReleaseResource():
                return self._order(OrderKind.EXIT)
        return self._order_to_wait(message)

    def _order_to_wait(self, message: CheckIn) -> Order:
        order = self._order(OrderKind.WAIT, is_awaited=self._is_awaited(message))
        running = message.running
        package = None if running is None else self._package_of(running.processor_id)
        return replace(order, model_version=self._job_models.version, package=package)

    def _package_of(self, processor_id: ProcessorId) -> str | None:
        return next_package(self._driver.package_of, self._view.state, processor_id)

    def _order_to_stop(self, stop: StopContainer) -> Order:
        processor_id = stop.incarnation.processor_id
        return replace(
            self._order(OrderKind.STOP, stop.incarnation),
            is_replaced=is_replaced(self._view.state, processor_id),
            keep=self._kept(processor_id) if stop.keeps_process else None,
        )

    def _order_to_prepare(self, processor_id: ProcessorId) -> Order:
        has_pipeline = TaskConfig.of(self._job_models.model.config).has_pipeline
        return replace(
            self._order(OrderKind.WAIT, is_awaited=True),
            package=self._package_of(processor_id),
            prepare=SPARE_WITH_SPARK if has_pipeline else SPARE_WITHOUT_SPARK,
        )

    def _kept(self, processor_id: ProcessorId) -> tuple[TaskName, ...]:
        """Return the active tasks that the processor has in the JobModel in force."""
        container = self._job_models.model.containers.get(processor_id)
        tasks = () if container is None else container.tasks.values()
        return tuple(t.task_name for t in tasks if t.task_mode is TaskMode.ACTIVE)

    def _is_awaited(self, message: CheckIn) -> bool:
        state = self._view.state
        running = None if message.running is None else message.running.processor_id
        if running in state.containers.indexed(Containers.DUE, value=True):
            return True
        if message.running is None:
            resource = state.resources.get(message.resource_id)
            is_reserved = resource is not None and resource.reserved_for is not None
            return is_reserved or state.holder(message.resource_id) is not None
        if any(p.standby == message.running.processor_id for p in state.placements):
            return True
        standby = state.container(message.running.processor_id)
        if standby is None or standby.replica_of is None:
            return False
        active = state.container(standby.replica_of)
        if active is None or active.resource_id is None:
            return False
        launcher = self._driver.launchers.find(active.resource_id)
        lease_ms = self._view.settings.lease_ms
        return launcher is not None and is_overdue(
            launcher.heard_ms, boot_ms(), self._interval_ms, lease_ms
        )

    async def _order_to_run(self, permit: PermitContainer) -> Order:
        if not await self._driver.leases.grants(permit.incarnation):
            return self._order(OrderKind.WAIT, is_awaited=True)  # the permit comes again
        return Order(
            OrderKind.RUN,
            self._next_ms(is_awaited=True),
            self._view.settings.lease_ms,
            permit.incarnation,
            permit.model_version,
            permit.fence,
            self._driver.leases.url,
            package=self._package_of(permit.incarnation.processor_id),
        )

    def _order(
        self, kind: OrderKind, incarnation: Incarnation | None = None, *, is_awaited: bool = False
    ) -> Order:
        next_ms = self._next_ms(is_awaited=is_awaited)
        return Order(kind, next_ms, self._view.settings.lease_ms, incarnation)

    def _next_ms(self, *, is_awaited: bool) -> int:
        interval_ms = self._interval_ms
        return self._hurry.next_ms(interval_ms, boot_ms()) if is_awaited else interval_ms

    @property
    def _interval_ms(self) -> int:
        settings, launchers = self._view.settings, len(self._driver.launchers)
        return poll_interval_ms(settings.check_in_interval_ms, launchers, settings.lease_ms)

    async def started(self, message: Started) -> None:
        """Report to the allocator that a stream container has started."""
        self._require_known(message.incarnation)
        await self._driver.ask(ContainerStarted(message.incarnation), message)

    async def stopped(self, message: Stopped) -> None:
        """Report to the allocator that a stream container has ended."""
        self._require_known(message.incarnation)
        how = (message.cause, message.exit_code, message.reason)
        await self._driver.ask(ContainerStopped(message.incarnation, *how), message)

    async def unfit(self, message: Unfit) -> None:
        """Note why a container cannot start a launcher, as the reason of its failure."""
        if self._resources.request_of(message.skein_id) is None:
            raise WireError(f"the application has no container {shown(message.skein_id)}")
        self._view.resources.unfit(message.skein_id, message.reason)

    async def shutdown(self) -> None:
        """Order the orderly end of the job."""
        self._driver.end_job(ShutdownRequested())

    def status(self) -> ShownStatus:
        """Return the state of the job."""
        return self._view.shown()

    def _require_known(self, incarnation: Incarnation) -> None:
        # A retired one too: it is heard until it has stopped.
        if not self._job_models.knows(incarnation.processor_id):
            raise WireError(f"the job has no processor {incarnation.processor_id!r}")


_STREAM_S = 5.0
"""How long the thread of the coordinator stream may be busy with Kafka."""


class DriverDecisions:
    """``DecisionSource`` of a driver. To be used on the driver's event loop."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._asking = asyncio.Lock()

    def events(self, asked: EventsAsked) -> bytes:
        """Return the body of ``GET /v1/events``."""
        return self._driver.decisions.events.to_json(asked)

    async def what_if(self, hosts: Collection[Host]) -> ShownOutlook:
        """Return the outcome of a loss of these hosts, computed in a thread, one at a time.

        WireError: the job has no such host.
        UnavailableError: another one is being computed.
        """
        state = self._driver.state
        known = known_hosts(state)
        for host in sorted(set(hosts) - known):
            names = ", ".join(sorted(known)) or "none yet"
            raise WireError(f"the job knows no host {shown(host)}: it knows {names}")
        if self._asking.locked():
            raise UnavailableError("another what-if is being computed; ask again")
        async with self._asking:
            reports = self._driver.cluster.hosts
            model = self._driver.live.job_models.model
            found = await asyncio.to_thread(what_if, state, frozenset(hosts), reports)
            return await asyncio.to_thread(with_tasks, found, model, places_of(state))

    async def written(self) -> Mapping[str, CoordinatorStreamMessage]:
        """Return {key of the configuration: its newest record} in the coordinator stream.

        UnavailableError: its thread waits for Kafka.
        """
        try:
            async with asyncio.timeout(_STREAM_S):
                return await self._driver.view.stream.written()
        except TimeoutError:
            raise UnavailableError("the coordinator stream waits for Kafka; ask again") from None

    def metrics(self) -> Iterable[Metric]:
        """Return the allocator's metrics."""
        return self._driver.decisions.metrics.collect(self._driver.state)
