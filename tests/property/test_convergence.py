"""Random joins, losses and slow hosts, then calm: how soon all that can be placed runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.property.cluster import Cluster, bound_of
from tests.property.test_large_world import REPLICAS

SEEDS = 12


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_disturbed_cluster_is_settled_within_the_bound(
    seed: int, announce: Callable[[str], None]
) -> None:
    """Of thirty hosts some join late, are lost, stand still and are slow, with the job's driver."""
    dice = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    hosts = tuple(f"h{i:02d}" for i in range(dice.randint(3, 30)))
    groups = {str(a): tuple(f"{a}-{i}" for i in range(dice.randint(0, REPLICAS))) for a in range(8)}
    cluster = Cluster(groups, hosts)
    absent = tuple(h for h in hosts[1:] if dice.random() < 0.3)
    world = cluster.deployed(absent)
    for _ in range(120):
        happens = dice.choice((*[cluster.goes_on] * 4, cluster.suffers, cluster.is_relieved))
        world = happens(world, dice.randrange)
    for _ in range(dice.randint(0, 30)):
        world = cluster.suffers(world, dice.randrange)
    bound = bound_of(cluster)
    count = cluster.rounds(cluster.mended(world), bound)
    announce(f"seed {seed}, {len(hosts)} hosts: settled after {count} rounds, at most {bound}")
