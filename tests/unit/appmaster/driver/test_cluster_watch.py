"""When the driver looks at the cluster: no pause is waited for, as pauses have no end here."""

from __future__ import annotations

import asyncio
import threading
from typing import cast

import pytest

from homeport.appmaster.allocation.protocol.events import Event, HostReport, HostsObserved
from homeport.appmaster.attempt.inherited import Adoption
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager
from homeport.appmaster.driver import cluster_watch
from homeport.appmaster.driver.cluster_watch import ClusterWatch
from homeport.appmaster.driver.resource_manager_client import ResourceManagerClient
from homeport.appmaster.lease.launcher_table import LauncherTable
from homeport.job_coordinator.model.ids import Host
from tests.unit.appmaster.allocation.conftest import SETTINGS

LIMIT_S = 10.0
NM1 = HostReport(Host("nm1"), None, 4096, 4, 4096, 4)


class _Cluster:
    """One host, which it reports once Skein has been looked at; no containers."""

    next_request_id = 1

    def __init__(self) -> None:
        self.is_looked_at = threading.Event()

    def hosts(self) -> tuple[HostReport, ...]:
        assert self.is_looked_at.wait(LIMIT_S)
        return (NM1,)

    async def reports(self) -> tuple[object, ...]:
        """Skein answers first."""
        asyncio.get_running_loop().call_soon(self.is_looked_at.set)
        return ()


async def _first(cluster: _Cluster) -> Event:
    found: asyncio.Queue[Event] = asyncio.Queue()
    watch = ClusterWatch(
        cast("ClusterResourceManager", cluster),
        cast("ResourceManagerClient", cluster),
        LauncherTable(10_000, 0),
        Adoption(),
        found.put_nowait,
        lambda: SETTINGS,
    )
    tasks = [asyncio.create_task(w) for w in (watch.watch_resources(), watch.watch_hosts())]
    try:
        return await asyncio.wait_for(found.get(), LIMIT_S)
    finally:
        for task in tasks:
            task.cancel()
        watch.close()


def test_hosts_that_come_late_are_observed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start waits for them; the ResourceManager mostly answers after Skein."""
    monkeypatch.setattr(cluster_watch, "_POLL_S", 3600.0)
    monkeypatch.setattr(cluster_watch, "_HOSTS_POLL_S", 3600.0)
    event = asyncio.run(_first(_Cluster()))
    assert isinstance(event, HostsObserved)
    assert event.hosts == (NM1.host,)
