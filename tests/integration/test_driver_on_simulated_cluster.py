"""The driver on a simulated cluster: calls that fail, letters that are lost, late and twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from driver_attempts import NM1, P0, Am, drive
from simulated_cluster import Faults, SimulatedCluster, roomy
from simulated_launchers import attend

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.job_coordinator.model.incarnation import Incarnation

ROUGH = Faults(
    grant_ms=(10, 100),
    launch_ms=(10, 50),
    restore_ms=(10, 50),
    letter_ms=(1, 30),
    refused=0.2,
    lost=0.1,
    doubled=0.1,
)


def test_a_job_lives_and_ends_on_a_rough_cluster(tmp_path: Path) -> None:
    """It starts at home, comes back in the next epoch after a failure, and ends in order."""
    cluster = SimulatedCluster(roomy("nm1"), seed=3, faults=ROUGH, check_in_ms=50, lease_ms=6000)

    def runs(epoch: int) -> Callable[[], bool]:
        wanted = Incarnation(P0, epoch)
        return lambda: [x.running for x in cluster.launchers()] == [wanted]

    async def story(am: Am) -> None:
        launchers = asyncio.create_task(attend(cluster, am.backend))
        await am.until(runs(1))
        await am.until(lambda: am.backend.status()["job"]["state"] == "running")
        assert am.backend.status()["containers"][0]["host"] == NM1
        cluster.launchers()[0].child_ends()
        await am.until(runs(2))
        await am.until(lambda: am.backend.status()["job"]["state"] == "running")
        cluster.faults = Faults()  # what ends the application is called once
        await am.backend.shutdown()
        await am.until(lambda: cluster.result is not None)
        launchers.cancel()

    _, end = drive(tmp_path, story, retries=8, resources=cluster.manager())
    assert end.result is JobResult.KILLED
    assert cluster.result == (JobResult.KILLED, "shut down on request")
    assert cluster.launchers() == ()
