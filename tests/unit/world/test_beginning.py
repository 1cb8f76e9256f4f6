"""What begins while Kafka is away."""

from __future__ import annotations

from tests.unit.world.scene import Scene
from tests.unit.world.world import World

AWAY_MS = 300_000


def test_a_driver_that_begins_while_kafka_is_away_waits_for_it() -> None:
    """One driver waits for as long as it takes: no start is used up that its attempt may need."""
    with World(1, 1) as world:
        scene = Scene(world)
        world.network.cut.add("am")
        attempt = scene.attempt()
        scene.run(1000)
        driver = attempt.driver
        scene.run(AWAY_MS)
        world.network.cut.discard("am")
        scene.until(lambda: scene.started() == 1, "the container has started")
        assert attempt.driver is driver
        scene.work(3)
        scene.judge()
