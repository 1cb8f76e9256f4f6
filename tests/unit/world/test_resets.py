"""A reset of the state, and a migration, that is cut short, wherever it is."""

from __future__ import annotations

import own_records
import pytest
from nodes_in_memory import NodesInMemory
from suites import long

from homeport.cli.yarn.migrate_command import Where
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import FencedError, UnavailableError
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.migrations import is_done, migrating
from tests.unit.world.schedules.topics import (
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


def test_an_overtaken_reset_can_write_nothing_more(scene: Scene) -> None:
    """It stands still, another one takes over and the job runs; then it goes on."""
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


def test_no_driver_starts_on_the_rest_of_a_state(scene: Scene) -> None:
    """It ends with the one line that says how to finish the reset; no container is started."""
    with scene.world.stream() as stream:
        StateResetManager(stream).write(StateReset(1, ResetPhase.BEGUN))
    attempt = scene.attempt(submission=2)
    scene.until_ended(attempt.supervisor)
    assert scene.world.facts_of("driver:permit-granted") == []
    with scene.world.stream() as stream:
        StateResetManager(stream).write(StateReset(1, ResetPhase.FINISHED))
    attempt = scene.attempt(submission=3)
    scene.until(lambda: scene.started() == 1, "the container has started")


def test_a_reset_that_cannot_read_the_epochs_touches_nothing(scene: Scene) -> None:
    """A damaged epoch may hide a writer that still runs: it is reported, and no reset has begun."""
    a_zombie_in_mid_transaction(scene)
    with scene.world.stream() as stream:
        stream.write(
            [own_records.set_processor_epoch("0", 1, 1, [])._replace(values={"epoch": "x"})]
        )
    process = resetting(scene)
    scene.until_ended(process)
    assert "set-processor-epoch '0'" in str(process.failure)
    with scene.world.stream() as stream:
        assert StateResetManager(stream).read() is None


# --- a migration that is cut short, or overtaken, wherever it is


_OWN, _FENCE = "commit homeport.j.1.am.2.command", "init homeport.j.1.processor"


def factory(world: World) -> str | None:
    """What the stream says of where the job runs."""
    with world.stream() as stream:
        return keys.JOB_COORDINATOR_FACTORY.read(ConfigManager(stream).read())


def has_ended(scene: Scene) -> None:
    """The job has counted, and all of it was killed."""
    attempt = scene.working()
    attempt.supervisor.kill()
    scene.kill_all(*scene.cluster.hosts)


@pytest.mark.search
@pytest.mark.parametrize(
    ("words", "nth"), [(_FENCE, 1), *((_OWN, nth) for nth in range(1, 8))], ids=str
)
def test_an_overtaken_migration_changes_nothing_more(scene: Scene, words: str, nth: int) -> None:
    """It stands still; others take the job to ZooKeeper and back, and it runs; then it goes on."""
    nodes = NodesInMemory()
    has_ended(scene)
    late = migrating(scene, nodes, Where.ZOOKEEPER, 2)
    late.stop_at(words, nth)
    scene.until(lambda: late.is_stopped, "it stands")
    is_done(scene, migrating(scene, nodes, Where.ZOOKEEPER, 3))
    is_done(scene, migrating(scene, nodes, Where.YARN, 4))
    started = scene.started()
    scene.attempt(submission=5, host="am2")
    scene.until(lambda: scene.started() > started, "the job runs again")
    before = nodes.kept, factory(scene.world)
    late.go_on()
    scene.until_ended(late)
    assert isinstance(late.failure, FencedError | UnavailableError)  # or it finds the higher claim
    scene.work(2)
    assert (nodes.kept, factory(scene.world)) == before
    assert before[1] == "yarn"


@pytest.mark.search
@pytest.mark.parametrize("words", [_OWN, _FENCE])
def test_a_migration_that_is_killed_is_finished_by_the_next(words: str) -> None:
    """At each of its writes and fences; a driver that lives on has ended, or ends."""
    nth = 1
    while is_killed_and_finished(words, nth):
        nth += 1
    assert nth > 1


def is_killed_and_finished(words: str, nth: int) -> bool:
    """The story of one that is killed at its ``nth`` point of that name, if it has as many."""
    with World() as world:
        scene, nodes = Scene(world), NodesInMemory()
        attempt = scene.working()
        first = migrating(scene, nodes, Where.ZOOKEEPER, 2)
        first.stop_at(words, nth)
        scene.until(lambda: first.is_stopped or not first.is_alive, "it stands or has ended")
        has_stopped = first.is_stopped
        first.kill()
        is_done(scene, migrating(scene, nodes, Where.ZOOKEEPER, 3))
        with world.stream() as stream:
            highest = EpochManager(stream).highest()
        scene.run(10_000)
        with world.stream() as stream:
            assert EpochManager(stream).highest() == highest <= nodes.kept.version
        assert not attempt.supervisor.is_alive
        assert factory(world) == "zookeeper"
    return has_stopped
