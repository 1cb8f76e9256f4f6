"""Actives and standbys in a world that the allocator does not see: exhaustively, and at random."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.state import ContainerPhase
from tests.unit.appmaster.allocation.changing_world import faults_and_deaths
from tests.unit.appmaster.allocation.cluster_world import calmed, deployed
from tests.unit.appmaster.allocation.test_world import search

PAIR = {"0-0": "0"}


def test_calm_alone_brings_every_replica_to_a_host_of_its_own() -> None:
    """No fault: two pairs on two hosts; actives come home first."""
    homes = {"0": "a", "1": "b", "0-0": None, "1-0": "b"}
    world = calmed(deployed(homes, ("a", "b"), standbys={"0-0": "0", "1-0": "1"}))
    placed = {c.processor_id: c.home for c in world.state.containers}
    assert placed == {"0": "a", "0-0": "b", "1": "b", "1-0": "a"}
    assert all(c.phase is ContainerPhase.RUNNING for c in world.state.containers)


@pytest.mark.search
def test_every_world_of_a_pair_on_two_hosts_within_one_fault_is_safe_and_heals() -> None:
    """An active with its standby: all orders of events, any fault, a shutdown at any time."""
    start = deployed({"0": "a", "0-0": None}, ("a", "b"), standbys=PAIR)
    assert search(start, 1, may_shut_down=True, suffered=faults_and_deaths) > 1000
