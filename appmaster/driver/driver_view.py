"""A read-only view of the driver, for its HTTP server and its other modules."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from homeport.appmaster.allocation.job_state.state import LIVE, AllocatorState, JobPhase
from homeport.appmaster.allocation.protocol.events import named
from homeport.appmaster.attempt.inherited import Adoption, HoldBack
from homeport.appmaster.driver.cluster_watch import ClusterWatch
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.driver_settings import DriverSettings
from homeport.appmaster.driver.resource_manager_client import ResourceManagerClient
from homeport.appmaster.driver.rollouts.rollouts import Rollouts
from homeport.appmaster.job_model.live_job_coordinator import LiveJobCoordinator
from homeport.appmaster.lease.keeper_client import KeeperClient
from homeport.appmaster.lease.launcher_table import LauncherTable
from homeport.appmaster.report.job_status import JobIdentity, JobStatus
from homeport.appmaster.report.recovery import Recoveries
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone.standby_view import standbys_in, standbys_shown
from homeport.job_coordinator.status.shape import (
    ShownChange,
    ShownContainer,
    ShownRecovery,
    ShownStandby,
    ShownStatus,
)


@dataclass(slots=True)
class DriverView:
    """The driver's parts, for readers alone.

    ``now``: returns the allocator's state and the settings in force. ``localities``:
    {processor_id: host}, as the coordinator stream has it.
    """

    status: JobStatus
    recoveries: Recoveries
    launchers: LauncherTable
    adoption: Adoption
    hold_back: HoldBack
    cluster: ClusterWatch
    live: LiveJobCoordinator
    stream: CoordinatorStreamClient
    resources: ResourceManagerClient
    leases: KeeperClient
    rollouts: Rollouts
    now: Callable[[], tuple[AllocatorState, DriverSettings]]
    localities: Mapping[ProcessorId, Host] = field(default_factory=dict)

    @property
    def state(self) -> AllocatorState:
        """The state of the allocator."""
        return self.now()[0]

    @property
    def settings(self) -> DriverSettings:
        """The driver's settings in force."""
        return self.now()[1]

    def runs(self, incarnation: Incarnation) -> bool:
        """Return whether the allocator's state has the incarnation as live and current."""
        container = self.state.container(incarnation.processor_id)
        return (
            container is not None
            and container.phase in LIVE
            and container.incarnation == incarnation
        )

    def place_of(self, processor_id: ProcessorId) -> Host | None:
        """Return the host of the processor's launcher; None where no launcher is known."""
        container = self.state.container(processor_id)
        if container is None or container.resource_id is None:
            return None
        launcher = self.launchers.find(container.resource_id)
        return None if launcher is None else launcher.host

    def _partners(self) -> Iterator[tuple[str, str | None]]:
        """Yield each service that the driver calls, with the fault of the last call or None."""
        yield "the ResourceManager", self.cluster.fault
        yield "Skein", self.resources.fault
        yield "the lease keeper", self.leases.fault

    def _recovery(self, processor_id: ProcessorId) -> ShownRecovery | None:
        recovery = self.recoveries.last(processor_id)
        return None if recovery is None else recovery.shown(boot_ms())

    def _entering(self, state: AllocatorState) -> ShownChange | None:
        """Return the change to a version that is served, and that the allocator is about to get."""
        version = self.live.job_models.version
        is_ahead = state.phase is JobPhase.ACTIVE and version > state.model_version
        return ShownChange(to_version=version) if is_ahead else None

    def shown(self) -> ShownStatus:
        """Return the status of the job."""
        state = self.state
        found = self.status.shown(state, self.launchers, self.stream.fault)
        webs = {report.host: report.web for report in self.cluster.hosts}
        held_back = self.hold_back.pending if self.status.held_back is None else ()
        is_mixed = state.settings.mixes_roles
        model = self.live.job_models.model if is_mixed else None
        return replace(
            found,
            containers=tuple(
                replace(
                    container,
                    recovery=self._recovery(container.processor_id),
                    log_url=log_url(container, webs, self.status.identity),
                    standbys=_standbys(model, container),
                )
                for container in found.containers
            ),
            unaccounted=tuple(named(i) for i in (*self.adoption.pending, *held_back)),
            coordinator_stream_age_ms=self.stream.age_ms,
            unanswered={name: why for name, why in self._partners() if why is not None},
            waiting=self.status.waiting(state, self.cluster.hosts),
            coordinator_stream_damaged=self.stream.damaged_count,
            configuration=self.live.shown(),
            upgrade=self.rollouts.upgrades.shown(),
            rolling_restart=self.rollouts.rolling.shown(),
            taken_over=self.live.taken_over if is_mixed else None,
            change=found.change or self._entering(state),
        )


def _standbys(model: JobModel | None, container: ShownContainer) -> tuple[ShownStandby, ...]:
    if model is None:
        return ()
    kept = standbys_in(model.containers.get(container.processor_id))
    return standbys_shown(kept, container.report)


def log_url(
    container: ShownContainer, webs: Mapping[Host, str], identity: JobIdentity
) -> str | None:
    """Return the URL of the end of the container's log, at its NodeManager; None: no such URL.

    ``webs``: {host: ``host:port`` of its NodeManager's web service; empty: not known}.
    """
    web = None if container.host is None else webs.get(container.host)
    if not web or not container.epoch or not container.resource or not identity.user:
        return None
    file = quote(f"container-{container.processor_id}-{container.epoch}.log", safe="")
    scheme = urlsplit(identity.application_url).scheme or "http"
    folder = f"{container.resource}/{quote(identity.user, safe='')}"
    return f"{scheme}://{web}/node/containerlogs/{folder}/{file}/?start=-65536"
