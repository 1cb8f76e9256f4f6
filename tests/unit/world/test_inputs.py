"""An input comes and goes while the driver, or a container, dies at any of its steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import long

from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.growth import GROWS, NONSENSE, next_attempt
from tests.unit.world.schedules.inputs import BOTH, INPUTS, more_comes
from tests.unit.world.world import World

OTHER = {BOTH: "kafka.in", "kafka.in": BOTH}


@pytest.mark.search
@pytest.mark.parametrize("first", ["kafka.in", BOTH])
@pytest.mark.parametrize(
    ("dying", "words", "every"),
    [
        ("driver", "commit ", 1),
        ("container", "commit ", 1),
        ("container", "init ", 1),
        long("driver", "fetch ", 3),
        long("container", "fetch ", 1),
    ],
)
def test_a_change_of_inputs_is_whole_whatever_dies(
    first: str, dying: str, words: str, every: int
) -> None:
    """At each request, before it leaves and when its answer is there; each record counts once."""

    def announced(nth: int) -> bool:
        with World(config={INPUTS: first}) as world:
            return announce(Scene(world), dying, words, nth)

    at_each(announced, every)


def at_each(announced: Callable[[int], bool], every: int) -> None:
    """The story for each ``every``-th point, until it has no such point any more."""
    nth = 1
    while announced(nth):
        nth += every
    assert nth > every


def announce(scene: Scene, dying: str, words: str, nth: int) -> bool:
    """One dies at its ``nth`` point of that name, or when all is counted; whether it had one."""
    scene.world.add_input("more")
    attempt = scene.working(2)
    first = scene.world.config[INPUTS]
    process: Process = scene.driver_of(attempt)
    if dying == "driver":
        process.stop_at(words, nth)
    scene.configure(INPUTS, OTHER[first])
    if dying == "container":
        process = scene.child("0@3")
        process.stop_at(words, nth)
    scene.produce(2)
    if first != BOTH:
        scene.produce(2, topic="more")
    scene.until(
        lambda: (
            process.is_stopped or (counted(scene.world) == scene.produced and scene.started() > 1)
        ),
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


@pytest.mark.search
@pytest.mark.parametrize("containers", [1, long(2)])
@pytest.mark.parametrize("dying", ["driver", "attempt"])
@pytest.mark.parametrize(
    ("words", "every"), [("grow ", 1), ("commit ", 1), ("describe counts", 4), long("", 1)]
)
def test_changelogs_grow_whatever_dies(containers: int, dying: str, words: str, every: int) -> None:
    """The driver, or its attempt, dies at each request; tasks and their state are as without."""

    def announced(nth: int) -> bool:
        with World(containers, 2, GROWS) as world:
            return grown(Scene(world), dying, words, nth)

    at_each(announced, every)


def end(scene: Scene, attempt: Attempt, dying: str) -> None:
    """Kill the driver of the attempt, or the whole attempt, which a next one follows."""
    if dying == "attempt":
        next_attempt(scene, attempt)
    else:
        attempt.driver.kill()


def grown(scene: Scene, dying: str, words: str, nth: int) -> bool:
    """An input brings a task. Driver or attempt dies at that point; whether it had one."""
    world = scene.world
    attempt = scene.working(2)
    world.add_input("more", 3)
    driver = scene.driver_of(attempt)
    driver.stop_at(words, nth)
    scene.configure(INPUTS, BOTH)
    scene.produce(2)
    scene.produce(2, b"m", 2, "more")
    scene.until(lambda: driver.is_stopped or counted(world) == scene.produced, "it dies or is done")
    has_stopped = driver.is_stopped
    end(scene, attempt, dying)
    scene.until_counted()
    scene.produce(2, b"m", 2, "more")
    scene.work(2)
    scene.judge()
    states = [len(log.records) > 0 for log in world.broker.logs("counts")]
    assert states == [True, False, True]
    return has_stopped


@pytest.mark.search
@pytest.mark.parametrize(("words", "every"), [("commit ", 1), ("init ", 1), long("", 1)])
def test_inputs_in_force_stay_whatever_dies(words: str, every: int) -> None:
    """The stream has nonsense, and the next attempt dies at each request of its start too."""

    def announced(nth: int) -> bool:
        with World() as world:
            return kept(Scene(world), words, nth)

    at_each(announced, every)


def kept(scene: Scene, words: str, nth: int) -> bool:
    """The second of three attempts dies at that point; whether it had one."""
    attempt = scene.working(2)
    scene.world.add_input("more")
    more_comes(scene, "0@3")
    scene.configure(INPUTS, NONSENSE)
    scene.produce(2, topic="more")
    scene.until_counted()
    attempt = next_attempt(scene, attempt)
    scene.driver_of(attempt).stop_at(words, nth)
    scene.produce(2, topic="more")
    started = scene.started()
    scene.until(lambda: attempt.driver.is_stopped or scene.started() > started, "it dies or acts")
    has_stopped = attempt.driver.is_stopped
    next_attempt(scene, attempt)
    scene.work(2)
    scene.configure(INPUTS, BOTH)
    scene.run(2000)
    scene.produce(2, topic="more")
    scene.work(2)
    scene.judge()
    return has_stopped


@pytest.mark.search
@pytest.mark.parametrize("containers", [1, long(2)])
@pytest.mark.parametrize("dying", ["driver", "attempt"])
@pytest.mark.parametrize(("words", "every"), [("commit ", 1), long("", 1)])
def test_a_task_goes_and_comes_back_whatever_dies(
    containers: int, dying: str, words: str, every: int
) -> None:
    """It goes on from its state and its position; what came meanwhile is its work."""

    def announced(nth: int) -> bool:
        with World(containers, 2, GROWS) as world:
            return came_back(Scene(world), dying, words, nth)

    at_each(announced, every)


def came_back(scene: Scene, dying: str, words: str, nth: int) -> bool:
    """The input that brings a task goes and returns. The driver, or its attempt, dies then."""
    world = scene.world
    attempt = scene.working(2)
    world.add_input("more", 3)
    scene.configure(INPUTS, BOTH)
    scene.produce(2, b"m", 2, "more")
    scene.until_counted()
    driver = scene.driver_of(attempt)
    driver.stop_at(words, nth)
    before = scene.started()
    scene.configure(INPUTS, "kafka.in")
    scene.until(lambda: driver.is_stopped or scene.started() > before, "it dies or the task goes")
    has_stopped = driver.is_stopped
    end(scene, attempt, dying)
    scene.work(2)
    world.produce(2, b"m", 2, "more")
    scene.run(2000)
    scene.produced += 2
    scene.configure(INPUTS, BOTH)
    scene.until_counted()
    scene.work(2)
    scene.judge()
    assert world.broker.counts()["counts"] == 3
    return has_stopped
