"""Where tasks begin under ``upcoming``, Samza's default: no input is passed over after that."""

from __future__ import annotations

from homeport.config.config import Config
from tests.unit.world.judges import counted
from tests.unit.world.kafka import Partition, Writer
from tests.unit.world.scene import Scene
from tests.unit.world.world import World

UPCOMING = {"systems.kafka.samza.offset.default": "upcoming"}


def _put(scene: Scene, topic: str, partition: int, records: int) -> None:
    for _ in range(records):
        scene.world.broker.append((topic, partition), Writer(None), b"k", b"", 0)


def _forget_state(world: World) -> None:
    """A job without a changelog: its inputs may be others."""
    keys = {k: v for k, v in world.config.items() if k != "stores.counts.changelog"}
    world.config = Config(keys)


def test_a_partition_that_was_empty_at_first_has_its_place() -> None:
    """Its task commits for another input: what comes to it while the container is down is read."""
    with World(config={**UPCOMING, "task.inputs": "kafka.in,kafka.quiet"}) as world:
        world.broker.create("quiet")
        scene = Scene(world)
        scene.working(3)
        scene.hosts.child("0@1").kill()
        _put(scene, "quiet", 0, 10)
        scene.until_started("0@2")
        scene.run(5000)
        assert counted(world) == 13


def test_a_crash_in_the_first_commit_leaves_a_container_that_can_begin() -> None:
    """The places are known and not committed: no input was taken, and the next one begins."""
    for moment in ("commit homeport.j.1.processor", "commit homeport.j.1.processor.0.1 answered"):
        with World(config=UPCOMING) as world:
            scene = Scene(world)
            scene.attempt()
            child = scene.child("0@1")
            scene.halt(child, moment)
            assert not scene.has_fact("container:started")
            child.kill()
            scene.until_started("0@2")
            scene.run(1000)
            scene.work(2)
            scene.judge()


def test_partitions_that_an_input_grows_by_begin_at_their_oldest_record() -> None:
    """A job with state takes them into the tasks it has; what came before it looked is read."""
    keys = {"job.coordinator.monitor-partition-change.frequency.ms": "20000"}
    with World(config={**UPCOMING, **keys}) as world:
        scene = Scene(world)
        scene.working(3)
        world.broker.partitions["in", 1] = Partition()
        _put(scene, "in", 1, 7)
        scene.until(lambda: counted(world) == 10, "the grown partition is read", 90_000)


def test_partitions_that_have_grown_while_the_job_was_down_begin_so_too() -> None:
    """The next submission still knows how many there were when the job first read the input."""
    with World(config=UPCOMING) as world:
        scene = Scene(world)
        attempt = scene.working(3)
        attempt.supervisor.kill()
        scene.kill_all("a")
        scene.run(1000)
        world.broker.partitions["in", 1] = Partition()
        _put(scene, "in", 1, 7)
        scene.attempt(submission=2, host="am2")
        scene.until(lambda: counted(world) == 10, "the grown partition is read", 90_000)


def test_an_input_that_is_new_to_the_job_begins_by_its_default() -> None:
    """It has not grown: what was in it before the job read it is passed over, as upcoming says."""
    with World(config=UPCOMING) as world:
        _forget_state(world)
        world.broker.create("more")
        _put(scene := Scene(world), "more", 0, 5)
        attempt = scene.working(3)
        attempt.supervisor.kill()
        scene.kill_all("a")
        scene.run(1000)
        world.config = world.config.merged({"task.inputs": "kafka.in,kafka.more"})
        scene.attempt(submission=2, host="am2")
        scene.until_started("0@3")
        scene.run(2000)
        _put(scene, "more", 0, 2)
        scene.until(lambda: counted(world) == 5, "what comes to it from then on is read")
        scene.run(2000)
        assert counted(world) == 5
