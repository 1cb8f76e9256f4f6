"""Random schedules with every rule on: safe at any time, and exact when calm returns."""

from __future__ import annotations

import pytest

from tests.unit.world.chaos import Chaos
from tests.unit.world.scene import Scene
from tests.unit.world.world import World


@pytest.mark.parametrize("seed", range(6))
def test_a_random_schedule_is_safe_and_heals(seed: int) -> None:
    """Eight faults, then calm: no judge finds anything, and every record was counted once."""
    with World(containers=2, partitions=2) as world:
        chaos = Chaos(Scene(world), seed)
        chaos.suffer(8)
        chaos.calm_down()
