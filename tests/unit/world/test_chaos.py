"""Random schedules with every rule on: safe at any time, and exact when calm returns."""

from __future__ import annotations

import pytest
from suites import long

from tests.unit.world.chaos import CALM_MS, Chaos
from tests.unit.world.scene import Scene
from tests.unit.world.standbys import HOT_STANDBY, install, judge_places, watch_places
from tests.unit.world.world import World

_SEEDS = (0, pytest.param(1, marks=pytest.mark.search), *map(long, range(2, 6)))


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_random_schedule_is_safe_and_heals(seed: int) -> None:
    """Eight faults, then calm: no judge finds anything, and every record was counted once."""
    with World(containers=2, partitions=2) as world:
        chaos = Chaos(Scene(world), seed)
        chaos.suffer(8)
        chaos.calm_down()


@pytest.mark.search
@pytest.mark.parametrize("seed", [0, 1, *map(long, range(2, 8))])
def test_a_random_schedule_with_hot_standby_is_safe_and_heals(seed: int) -> None:
    """Besides, no active was ever started beside its standby, and in the end both roles run."""
    containers = 1 + seed % 2
    with World(containers, 2, HOT_STANDBY) as world:
        install(world)
        scene = Scene(world)
        watch_places(scene, {"0-0": "0", "1-0": "1"})
        chaos = Chaos(scene, seed)
        scene.until(lambda: scene.started() == 2 * containers, "all have started")
        chaos.suffer(8)
        chaos.calm_down()
        scene.until(
            lambda: chaos.attempt.status()["job"]["health"] == "deployed", "all run", CALM_MS
        )
        judge_places(scene)


@pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.search), *map(long, (0, 2))])
def test_a_random_schedule_with_rolling_restarts_is_safe_and_heals(seed: int) -> None:
    """People write values amid all faults; some values make each start or each record fail."""
    keys = {"my.key": "123", "my.bug": ("at-start", "at-work", "mended")}
    with World(2, 2, {"cluster-manager.rolling-restart.watch.ms": "2000"}) as world:
        chaos = Chaos(Scene(world), seed, keys)
        chaos.suffer(8)
        chaos.calm_down()


def test_the_same_seed_is_the_same_story() -> None:
    """Every line, to the millisecond; another seed is another story."""

    def story(seed: int) -> list[str]:
        with World() as world:
            Chaos(Scene(world), seed).suffer(2)
        return world.clock.story

    first = story(1)
    assert first == story(1)
    assert first != story(2)
