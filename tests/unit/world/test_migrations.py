"""A migration that is cut short, or overtaken, wherever it is."""

from __future__ import annotations

import pytest
from nodes_in_memory import NodesInMemory

from homeport.cli.yarn.migrate_command import Where
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import FencedError
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.migrations import is_done, migrating
from tests.unit.world.world import World

_OWN, _FENCE = "commit homeport.j.1.am.2.migrate", "init homeport.j.1.processor"


def factory(world: World) -> str | None:
    """What the stream says of where the job runs."""
    with world.stream() as stream:
        return keys.JOB_COORDINATOR_FACTORY.read(ConfigManager(stream).read())


def has_ended(scene: Scene) -> None:
    """The job has counted, and all of it was killed."""
    attempt = scene.working()
    attempt.supervisor.kill()
    for host in scene.cluster.hosts:
        scene.kill_all(host)


@pytest.mark.search
@pytest.mark.parametrize(
    ("words", "nth"), [(_FENCE, 1), *((_OWN, nth) for nth in range(1, 8))], ids=str
)
def test_an_overtaken_migration_changes_nothing_more(words: str, nth: int) -> None:
    """It stands still; others take the job to ZooKeeper and back, and it runs; then it goes on."""
    with World() as world:
        scene, nodes = Scene(world), NodesInMemory()
        has_ended(scene)
        late = migrating(scene, nodes, Where.ZOOKEEPER, 2)
        late.stop_at(words, nth)
        scene.until(lambda: late.is_stopped, "it stands")
        is_done(scene, migrating(scene, nodes, Where.ZOOKEEPER, 3))
        is_done(scene, migrating(scene, nodes, Where.YARN, 4))
        started = scene.started()
        scene.attempt(submission=5, host="am2")
        scene.until(lambda: scene.started() > started, "the job runs again")
        before = nodes.kept, factory(world)
        late.go_on()
        scene.until_ended(late)
        assert isinstance(late.failure, FencedError)
        scene.work(2)
        assert (nodes.kept, factory(world)) == before
        assert before[1] == "yarn"
        scene.judge()


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
