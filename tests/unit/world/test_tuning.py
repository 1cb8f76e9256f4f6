"""A tuning key is written while the job runs: its containers take it over."""

from __future__ import annotations

from tests.unit.world.scene import Scene
from tests.unit.world.world import World

OFTEN_MS = 500
RARELY = {"task.commit.ms": "600000"}


def _flushes(world: World, child: str) -> int:
    return sum(str(f.who) == child for f in world.facts_of("container:commit"))


def _retuned(scene: Scene, child: str) -> bool:
    return scene.has_fact("container:retuned", child)


def test_a_tuning_key_reaches_running_containers_without_a_restart() -> None:
    """Both containers run on under epoch 1, and flush as often as the new value says."""
    with World(2, 2, RARELY) as world:
        scene = Scene(world)
        attempt = scene.working()
        version = attempt.status()["job"]["model_version"]
        scene.configure("task.commit.ms", str(OFTEN_MS))
        for child in ("0@1", "1@1"):
            scene.until(lambda child=child: _retuned(scene, child), "it takes it over")  # type: ignore[misc]  # lambda
        assert attempt.status()["job"]["model_version"] == version + 1
        before = _flushes(world, "0@1")
        for _ in range(3):
            scene.work(1)
            scene.run(2 * OFTEN_MS)
        assert _flushes(world, "0@1") >= before + 3
        assert len(world.facts_of("driver:permit-granted")) == 2
        scene.judge()


def test_a_container_that_starts_meanwhile_takes_it_over_too() -> None:
    """Its permit names the version before; it learns of the new one from its launcher."""
    with World(1, 1, RARELY) as world:
        scene = Scene(world)
        attempt = scene.attempt()
        child = scene.child("0@1")
        child.stop()
        scene.configure("task.commit.ms", str(OFTEN_MS))
        scene.run(1500)
        child.go_on()
        scene.until(lambda: _retuned(scene, "0@1"), "it takes it over")
        assert attempt.status()["job"]["model_version"] == 2
        scene.work(1)
        scene.judge()


def test_a_driver_that_dies_meanwhile_does_not_keep_it_from_them() -> None:
    """The next driver names the version in force, and the container asks that one."""
    with World(1, 1, RARELY) as world:
        scene = Scene(world)
        attempt = scene.working()
        attempt.driver.kill()
        scene.configure("task.commit.ms", str(OFTEN_MS))
        scene.until(lambda: _retuned(scene, "0@1"), "it takes it over")
        assert len(world.facts_of("driver:permit-granted")) == 1
        scene.judge()
