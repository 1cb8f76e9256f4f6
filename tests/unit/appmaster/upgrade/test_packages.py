"""Which package each processor is to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from homeport.appmaster.allocation.job_state.state import AllocatorState, Containers, ContainerState
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.upgrade.packages import next_package
from homeport.job_coordinator.model.ids import ProcessorId

ACTIVE, STANDBY, TEMPORARY = ProcessorId("0"), ProcessorId("0-0"), ProcessorId("0-warm")


@dataclass
class Packages:
    """What is wanted, as the test says."""

    wanted: Mapping[ProcessorId, str]

    def of(self, processor_id: ProcessorId) -> str | None:
        """As the test says."""
        return self.wanted.get(processor_id)


@pytest.fixture
def state() -> AllocatorState:
    """An active container, its standby, and the standby of its warm move."""
    containers = Containers(
        [
            ContainerState(ACTIVE),
            ContainerState(STANDBY, ACTIVE),
            ContainerState(TEMPORARY, ACTIVE, is_temporary=True),
        ]
    )
    settings = AllocatorSettings(
        host_affinity_enabled=True,
        retry_count=0,
        retry_window_ms=1,
        fail_job_after_retries=True,
        request_timeout_ms=1,
        check_in_timeout_ms=1,
    )
    return AllocatorState(settings, containers=containers)


def test_a_temporary_standby_has_the_package_of_its_active(state: AllocatorState) -> None:
    """The code that it prepares state for; a standby of the JobModel has its own."""
    packages = Packages({ACTIVE: "a", STANDBY: "b", TEMPORARY: "never asked"})
    assert next_package(packages, state, ACTIVE) == "a"
    assert next_package(packages, state, STANDBY) == "b"
    assert next_package(packages, state, TEMPORARY) == "a"


def test_a_processor_that_the_model_has_no_more_is_asked_for_by_its_name(
    state: AllocatorState,
) -> None:
    """Its launcher hears it until it has stopped."""
    assert next_package(Packages({ProcessorId("7"): "c"}), state, ProcessorId("7")) == "c"
