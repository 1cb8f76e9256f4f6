"""An input comes and goes while the driver, or a container, dies at any of its steps."""

from __future__ import annotations

import pytest
from suites import long

from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.inputs import BOTH, INPUTS
from tests.unit.world.world import World

OTHER = {BOTH: "kafka.in", "kafka.in": BOTH}


@pytest.mark.search
@pytest.mark.parametrize("first", ["kafka.in", BOTH])
@pytest.mark.parametrize(
    ("who", "words", "every"),
    [
        ("driver", "commit ", 1),
        ("container", "commit ", 1),
        ("container", "init ", 1),
        long("driver", "fetch ", 3),
        long("container", "fetch ", 1),
    ],
)
def test_a_change_of_inputs_is_whole_whatever_dies(
    first: str, who: str, words: str, every: int
) -> None:
    """At each request, before it leaves and when its answer is there; each record counts once."""
    nth, has_stopped = 1, True
    while has_stopped:
        with World(config={INPUTS: first}) as world:
            has_stopped = announce(Scene(world), who, words, nth)
        nth += every
    assert nth > every


def announce(scene: Scene, who: str, words: str, nth: int) -> bool:
    """One dies at its ``nth`` point of that name, or when all is counted; whether it had one."""
    scene.world.add_input("more")
    attempt = scene.working(2)
    first = scene.world.config[INPUTS]
    process: Process = scene.driver_of(attempt)
    if who == "driver":
        process.stop_at(words, nth)
    scene.configure(INPUTS, OTHER[first])
    if who == "container":
        process = scene.child("0@3")
        process.stop_at(words, nth)
    scene.produce(2)
    if first != BOTH:
        scene.produce(2, topic="more")
    scene.until(
        lambda: process.is_stopped or counted(scene.world) == scene.produced,
        "it dies or all is done",
    )
    has_stopped = process.is_stopped
    process.kill()
    scene.until_counted()
    if first == BOTH:
        scene.until(lambda: scene.started() > 1, "a container without the input has started")
        scene.world.produce(1, b"k", 0, "more")
    scene.work(2)
    scene.judge()
    return has_stopped
