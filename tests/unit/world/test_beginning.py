"""What a driver does before it permits anybody, and what begins while Kafka is away."""

from __future__ import annotations

import pytest

from tests.unit.world.scene import Scene
from tests.unit.world.world import CHECKPOINTS, LEASE_MS, World

AWAY_MS = 300_000


@pytest.mark.parametrize("words", ["init ", "commit ", "ask the end of __samza_coordinator"])
def test_there_is_no_permit_before_the_job_coordinator_is_initialised(words: str) -> None:
    """COORD: "started only after initializing the Job Coordinator from the Coordinator Stream".

    A driver dies with its only container, whose launcher lives and asks. The next driver stands
    still before each step of its start: it permits no container before it answers with the JobModel
    that the permit names.
    """
    with World(1, 1) as world:
        scene = Scene(world)
        attempt = scene.working()
        (first,) = world.facts_of("driver:permit-granted")
        scene.hosts.child("0@1").kill()
        attempt.driver.kill()
        driver_of = attempt.children[1]
        scene.until(lambda: driver_of.starts > 1, "there is another driver")
        stood_still = 0
        while len(world.facts_of("driver:permit-granted")) == 1:
            attempt.driver.stop_at(words)
            scene.until(
                lambda: (
                    attempt.driver.is_stopped or len(world.facts_of("driver:permit-granted")) > 1
                ),
                "it stands still or permits",
            )
            if attempt.driver.is_stopped:
                stood_still += 1
                scene.run(200)
                attempt.driver.go_on()
        # The last stop is left over: the driver goes on from it, and is watched no more.
        scene.until(
            lambda: attempt.driver.is_stopped or scene.has_fact("container:started", "0@2"),
            "it stands still once more, or 0@2 has started",
        )
        attempt.driver.go_on()
        _, second = world.facts_of("driver:permit-granted")
        assert stood_still > 0
        version = attempt.status()["job"]["model_version"]
        assert second.fields["model_version"] == version == first.fields["model_version"]
        scene.until_started("0@2")
        scene.work(2)
        scene.judge()


def test_no_launcher_is_requested_before_there_is_a_model() -> None:
    """The first driver stands before it publishes: YARN gets no request, no launcher is served."""
    with World(1, 1) as world:
        scene = Scene(world)
        attempt = scene.attempt()
        driver = scene.driver_of(attempt)
        scene.halt(driver, f"create {CHECKPOINTS}")
        assert attempt.children[1].server is not None
        assert attempt.children[1].server.backend is None
        assert attempt.yarn.containers == {}
        driver.go_on()
        scene.until(lambda: scene.started() == 1, "the container has started")


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


def test_the_second_driver_of_an_attempt_does_not_wait_for_lower_ranks_again() -> None:
    """The first has waited: it has permitted 0@2, whose record took the place of the stop of 0@1.

    0@1 stopped with its attempt, and said so. 0@2, of the next one, stops while no driver runs.
    """
    with World(1, 1) as world:
        scene = Scene(world)
        first = scene.working()
        first.supervisor.kill()
        for process in (*scene.hosts.launchers, *scene.hosts.children):
            process.terminate()
        second = scene.attempt(attempt=2, host="am2")
        scene.until_started("0@2")
        child = scene.hosts.child("0@2")
        second.driver.kill()
        scene.hosts.launcher_of(child).terminate()
        scene.until_ended(child)
        scene.until_started("0@3", LEASE_MS)
        *_, begun = world.facts_of("driver:hold-back-over")
        assert begun.fields["unheard"] == []
        scene.work(2)
        scene.judge()
