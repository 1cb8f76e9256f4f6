"""Whether the job counts as deployed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
    initial_state,
)
from homeport.appmaster.report.job_status import JobHealth, health
from homeport.job_coordinator.model.ids import ProcessorId
from tests.unit.appmaster.allocation.conftest import SETTINGS

ZERO = ProcessorId("0")
ACTIVE = ContainerState(ZERO, phase=ContainerPhase.RUNNING, epoch=1)
STANDBY = replace(ACTIVE, processor_id=ProcessorId("0-0"), replica_of=ZERO)


def job(*containers: ContainerState) -> AllocatorState:
    """A job with these containers."""
    return replace(
        initial_state(SETTINGS), phase=JobPhase.ACTIVE, containers=Containers(containers)
    )


def test_a_job_counts_as_deployed_only_when_containers_of_both_roles_run() -> None:
    """Source: STANDBY, "only when all its containers have been successfully deployed"."""
    assert health(job(ACTIVE, STANDBY)) is JobHealth.DEPLOYED
    finished = replace(ACTIVE, phase=ContainerPhase.FINISHED)
    assert health(job(finished, STANDBY)) is JobHealth.DEPLOYED
    waits = replace(STANDBY, phase=ContainerPhase.QUEUED)
    assert health(job(ACTIVE, waits)) is JobHealth.RECOVERING
    assert health(job(ACTIVE, replace(waits, epoch=0))) is JobHealth.DEPLOYING
    assert health(initial_state(SETTINGS)) is JobHealth.DEPLOYING


@pytest.mark.parametrize("lost", [ACTIVE, STANDBY], ids=["active", "standby"])
def test_a_job_that_goes_on_without_a_container_is_degraded(lost: ContainerState) -> None:
    """Of either role: "failures of either type carry equal impact"."""
    other = STANDBY if lost is ACTIVE else ACTIVE
    given_up = replace(lost, phase=ContainerPhase.FAILED)
    assert health(job(given_up, other)) is JobHealth.DEGRADED
