"""The driver's side of Skein: the reason that a container states of its own end."""

from __future__ import annotations

from typing import cast

from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager, ResourceReport
from homeport.appmaster.driver.resource_manager_client import ResourceManagerClient
from homeport.job_coordinator.model.ids import RequestId

REASON = "host nm2: the job's environment needs CPython 3.11; found no python3 on PATH"


class Skein:
    """Reports one container, which runs first and has ended then."""

    def __init__(self) -> None:
        self.state = SkeinContainerState.RUNNING

    def resources(self) -> tuple[ResourceReport, ...]:
        """With Skein's own words, which say nothing."""
        container = SkeinContainer("h-0_7", RequestId(1), self.state, story="see the logs")
        return (ResourceReport(container),)


async def test_a_container_that_is_unfit_ends_with_its_own_reason() -> None:
    """Skein passes on neither exit code nor output; the reason counts once, at the end."""
    skein = Skein()
    client = ResourceManagerClient(cast("ClusterResourceManager", skein))

    client.unfit("h-0_7", REASON)
    for state, story in (
        (SkeinContainerState.RUNNING, "see the logs"),
        (SkeinContainerState.ENDED, REASON),
        (SkeinContainerState.ENDED, "see the logs"),
    ):
        skein.state = state
        (report,) = await client.reports() or ()
        assert report.container.story == story
    client.close()
