"""Topics that a driver finds: an input that was recreated, and the stream of another job."""

from __future__ import annotations

import pytest

from tests.unit.world.scene import Scene
from tests.unit.world.schedules.topics import BEGIN, counts_all, ended, recreated
from tests.unit.world.world import CHECKPOINTS, COORDINATOR, World


@pytest.mark.search
@pytest.mark.parametrize(
    "words", ["init homeport.j.1.processor", f"ask the end of {CHECKPOINTS}", "commit homeport.j"]
)
def test_a_driver_that_dies_while_it_accepts_an_input_leaves_the_rest_to_the_next(
    words: str,
) -> None:
    """At each of its requests, before it leaves and when its answer is there.

    All of the new topic is counted once.
    """
    nth, has_stopped = 0, True
    while has_stopped:
        nth += 1
        with World(config=BEGIN) as world:
            has_stopped = announce(Scene(world), words, nth)
    assert nth > 2


def announce(scene: Scene, words: str, nth: int) -> bool:
    """A driver is killed at its ``nth`` point of that name, if it has as many before a start."""
    ended(scene, scene.working(3))
    recreated(scene, 8)
    attempt = scene.attempt(submission=2, host="am2")
    driver = scene.driver_of(attempt)
    driver.stop_at(words, nth)
    scene.until(lambda: driver.is_stopped or scene.started() > 1, "it stands or permits")
    has_stopped = driver.is_stopped
    if has_stopped:
        driver.kill()
        scene.until(lambda: scene.started() > 1, "the next one has started")
    counts_all(scene, 11)
    return has_stopped


def test_no_driver_takes_over_the_stream_of_another_job() -> None:
    """It ends for good before it has written anything: no rank, no permit."""
    with World() as world:
        scene = Scene(world)
        scene.configure("job.name", "j_")
        length = world.broker.partition((COORDINATOR, 0)).end
        attempt = scene.attempt()
        scene.until_ended(attempt.supervisor)
        assert world.broker.partition((COORDINATOR, 0)).end == length
        assert world.facts_of("driver:permit-granted") == []
