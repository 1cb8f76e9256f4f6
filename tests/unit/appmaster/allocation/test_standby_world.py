"""Actives and standbys in a world that the allocator does not see: exhaustively, and at random."""

from __future__ import annotations

from random import Random

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from tests.unit.appmaster.allocation.changing_world import changes, faults_and_deaths
from tests.unit.appmaster.allocation.cluster_world import World, calmed, deployed, progress
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


def some_groups(random: Random) -> World:
    """Up to three pairs, or one active with two standbys, on up to four hosts.

    Standbys are perhaps switched off later, and perhaps on again.
    """
    actives, replicas, count = random.choice(
        [(1, 1, 2), (1, 1, 3), (1, 2, 3), (1, 2, 4), (2, 1, 2), (2, 1, 3), (3, 1, 4)]
    )
    hosts = tuple("abcd"[:count])
    homes, standbys = dict[str, str | None](), dict[str, str]()
    for active in map(str, range(actives)):
        homes[active] = random.choice([None, *hosts])
        for standby in (f"{active}-{number}" for number in range(replicas)):
            homes[standby] = random.choice([None, None, *hosts])
            standbys[standby] = active
    everybody = tuple((p, p) for p in sorted(homes))
    without = tuple((p, p) for p in sorted(homes) if p not in standbys)
    plan = random.choice([(), (without,), (without, everybody)])
    return deployed(homes, hosts, plan, standbys, launch_retry_ms=random.choice([0, 1000]))


@pytest.mark.search
@pytest.mark.parametrize("seed", range(40))
def test_groups_heal_whatever_happens_to_them(seed: int) -> None:
    """Any order of events with faults, deaths of the driver and changes of the model in between."""
    random = Random(seed)  # noqa: S311 - no secret: the same run each time
    world = some_groups(random)
    for _ in range(random.randrange(60, 160)):
        moves = [*progress(world), *changes(world)]
        if not moves or random.random() < 0.12:
            moves = [*faults_and_deaths(world)] or moves
        if not moves:
            break
        _, world = random.choice(moves)
    calmed(world)
