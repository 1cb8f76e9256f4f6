"""A reset of the state that is cut short, wherever it is."""

from __future__ import annotations

import own_records
import pytest
from suites import long

from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.resets import (
    a_zombie_in_mid_transaction,
    begins_anew,
    is_over,
    resetting,
)
from tests.unit.world.world import World


@pytest.mark.search
@pytest.mark.parametrize(
    ("words", "every"),
    [("init ", 1), ("commit ", 5), long("commit ", 1), ("delete ", 1), ("create ", 1)],
)
def test_a_reset_that_is_killed_is_finished_by_the_next(words: str, every: int) -> None:
    """At each of its requests, before it leaves and when its answer is there.

    Of its many commits every fifth point is enough by default.

    The second reset leaves nothing of the state, and a zombie of the first submission can do
    nothing.
    """
    nth, has_stopped = 1, True
    while has_stopped:
        with World() as world:
            has_stopped = announce(Scene(world), words, nth)
        nth += every
    assert nth > 5


def announce(scene: Scene, words: str, nth: int) -> bool:
    """The story of a reset that is killed at its ``nth`` point of that name, if it has as many."""
    a_zombie_in_mid_transaction(scene)
    first = resetting(scene)
    first.stop_at(words, nth)
    scene.until(lambda: first.is_stopped or not first.is_alive, "it stands or has finished")
    has_stopped = first.is_stopped
    first.kill()
    is_over(scene, resetting(scene, submission=3))
    scene.hosts.thaw("a")
    scene.run(500)
    begins_anew(scene, submission=4)
    return has_stopped


def test_an_overtaken_reset_can_write_nothing_more() -> None:
    """It stands still, another one takes over and the job runs; then it goes on."""
    with World() as world:
        scene = Scene(world)
        a_zombie_in_mid_transaction(scene)
        first = resetting(scene)
        scene.halt(first, "init homeport.j.1.processor")
        is_over(scene, resetting(scene, submission=3))
        scene.hosts.thaw("a")
        begins_anew(scene, submission=4)
        first.go_on()
        scene.until_ended(first)
        assert "a newer holder of transactional id" in str(first.failure)
        scene.work(2)
        scene.judge()


def test_no_driver_starts_on_the_rest_of_a_state() -> None:
    """It ends with the one line that says how to finish the reset; no container is started."""
    with World() as world:
        scene = Scene(world)
        with world.stream() as stream:
            StateResetManager(stream).write(StateReset(1, ResetPhase.BEGUN))
        attempt = scene.attempt(submission=2)
        scene.until_ended(attempt.supervisor)
        assert world.facts_of("driver:permit-granted") == []
        with world.stream() as stream:
            StateResetManager(stream).write(StateReset(1, ResetPhase.FINISHED))
        attempt = scene.attempt(submission=3)
        scene.until(lambda: scene.started() == 1, "the container has started")


def test_a_reset_that_cannot_read_the_epochs_touches_nothing() -> None:
    """A damaged epoch may hide a writer that still runs: it is reported, and no reset has begun."""
    with World() as world:
        scene = Scene(world)
        a_zombie_in_mid_transaction(scene)
        with world.stream() as stream:
            stream.write(
                [own_records.set_processor_epoch("0", 1, 1, [])._replace(values={"epoch": "x"})]
            )
        process = resetting(scene)
        scene.until_ended(process)
        assert "set-processor-epoch '0'" in str(process.failure)
        with world.stream() as stream:
            assert StateResetManager(stream).read() is None
