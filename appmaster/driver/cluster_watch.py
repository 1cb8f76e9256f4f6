"""Polls the cluster's containers and hosts, and posts the changes as events of the allocator."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from homeport.appmaster.allocation.protocol.events import Event, HostReport
from homeport.appmaster.allocation.protocol.instructions import CancelRequest
from homeport.appmaster.allocation.protocol.observation import (
    SkeinContainerState,
    Snapshot,
    events_between,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.attempt.inherited import Adoption, Unheard
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager, ResourceReport
from homeport.appmaster.driver.resource_manager_client import ResourceManagerClient
from homeport.appmaster.lease.launcher_table import LauncherTable
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.clocks import boot_ms

_POLL_S = 0.5
_HOSTS_POLL_S = 1.0

log = logging.getLogger("driver")


@dataclass(slots=True)
class ClusterWatch:
    """Polls on the driver's event loop; what is new goes to ``_post``.

    ``unheard``: containers of earlier drivers whose launchers have not checked in yet.
    """

    _resources: ClusterResourceManager
    _client: ResourceManagerClient
    _launchers: LauncherTable
    _adoption: Adoption
    _post: Callable[[Event], None]
    _settings: Callable[[], AllocatorSettings]
    unheard: Unheard = field(init=False)
    fault: str | None = None
    """Why the last poll of the hosts failed; None: it did not."""
    _snapshot: Snapshot | None = None
    _hosts: tuple[HostReport, ...] | None = None
    _are_hosts_known: asyncio.Event = field(default_factory=asyncio.Event)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "rest"))

    def __post_init__(self) -> None:
        first = self._resources.next_request_id
        self.unheard = Unheard(first, boot_ms(), self._launchers.limit_ms)

    @property
    def hosts(self) -> tuple[HostReport, ...]:
        """The hosts by the last poll; empty before the first."""
        return self._hosts or ()

    async def watch_resources(self) -> None:
        """Watch the containers for ever."""
        while True:
            reports = await self._client.reports()
            if reports is not None:
                if any(r.container.state is SkeinContainerState.ENDED for r in reports):
                    # Perhaps with its host: a request that no other host can hold ends the AM.
                    await self._look_at_hosts()
                self._observe(reports)
            if self._hosts is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._are_hosts_known.wait(), _POLL_S)
            else:
                await asyncio.sleep(_POLL_S)

    async def watch_hosts(self) -> None:
        """Watch the hosts for ever."""
        while True:
            await self._look_at_hosts()
            await asyncio.sleep(_HOSTS_POLL_S)

    async def _look_at_hosts(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._hosts = await loop.run_in_executor(self._pool, self._resources.hosts)
            self.fault = None
            self._are_hosts_known.set()
        except UnavailableError as e:
            log.warning("%s", e)
            self.fault = str(e)

    def close(self) -> None:
        """Stop making requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _observe(self, reports: tuple[ResourceReport, ...]) -> None:
        """Post what is new since the last poll.

        Nothing is requested before the hosts are known, and all incarnations of earlier drivers are
        accounted for.
        """
        for report in reports:
            if report.container.state is SkeinContainerState.ENDED:
                end = report.container
                log.info("container %s ended: %s", end.skein_id, end.story)
                if report.resource_id is not None:
                    self._launchers.ended(report.resource_id, end)
        if self._hosts is None or not self._adoption.is_complete:
            return
        self._end_unheard(reports)
        names = tuple(h.host for h in self._hosts if h.is_live)
        snapshot = Snapshot(tuple(r.container for r in reports), names, self._hosts)
        settings = self._settings()
        memory_mb, cores = settings.container_memory_mb, settings.container_cores
        for event in events_between(self._snapshot, snapshot, memory_mb=memory_mb, cores=cores):
            self._post(event)
        self._snapshot = snapshot

    def _end_unheard(self, reports: tuple[ResourceReport, ...]) -> None:
        running = {
            r.container.request_id: r.resource_id
            for r in reports
            if r.container.state is SkeinContainerState.RUNNING
            and r.container.request_id is not None
            and r.resource_id is not None
        }
        heard = {launcher.resource_id for launcher in self._launchers.all()}
        for request_id in self.unheard.overdue(running, heard, boot_ms()):
            log.warning("the launcher of request %d is not heard: ended", request_id)
            self._client.order(CancelRequest(request_id))
