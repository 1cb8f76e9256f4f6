"""Beginnings: of a driver, of tasks under ``upcoming``, and of inputs that were recreated."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.model.ids import Host, ProcessorId
from tests.unit.world.judges import counted
from tests.unit.world.kafka import Partition, Writer
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.topics import BEGIN, counts_all, ended, recreated
from tests.unit.world.world import CHECKPOINTS, COORDINATOR, LEASE_MS, World

AWAY_MS = 300_000


@pytest.mark.parametrize("words", ["init ", "commit ", "ask the end of __samza_coordinator"])
@pytest.mark.world(1, 1)
def test_there_is_no_permit_before_the_job_coordinator_is_initialised(
    scene: Scene, words: str
) -> None:
    """COORD: "started only after initializing the Job Coordinator from the Coordinator Stream".

    A driver dies with its only container, whose launcher lives and asks. The next driver stands
    still before each step of its start: it permits no container before it answers with the JobModel
    that the permit names.
    """
    attempt = scene.working()
    (first,) = scene.world.facts_of("driver:permit-granted")
    scene.hosts.child("0@1").kill()
    attempt.driver.kill()
    driver_of = attempt.children[1]
    scene.until(lambda: driver_of.starts > 1, "there is another driver")
    stood_still = 0
    while len(scene.world.facts_of("driver:permit-granted")) == 1:
        attempt.driver.stop_at(words)
        scene.until(
            lambda: (
                attempt.driver.is_stopped or len(scene.world.facts_of("driver:permit-granted")) > 1
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
    _, second = scene.world.facts_of("driver:permit-granted")
    assert stood_still > 0
    version = attempt.status()["job"]["model_version"]
    assert second.fields["model_version"] == version == first.fields["model_version"]
    scene.until_started("0@2")
    scene.work(2)


@pytest.mark.world(1, 1)
def test_no_launcher_is_requested_before_there_is_a_model(scene: Scene) -> None:
    """The first driver stands before it publishes: YARN gets no request, no launcher is served."""
    attempt = scene.attempt()
    driver = scene.driver_of(attempt)
    scene.halt(driver, f"create {CHECKPOINTS}")
    assert attempt.children[1].server is not None
    assert attempt.children[1].server.backend is None
    assert attempt.yarn.containers == {}
    driver.go_on()
    scene.until(lambda: scene.started() == 1, "the container has started")


@pytest.mark.world(1, 1)
def test_a_driver_that_begins_while_kafka_is_away_waits_for_it(scene: Scene) -> None:
    """One driver waits for as long as it takes: no start is used up that its attempt may need."""
    scene.world.network.cut.add("am")
    attempt = scene.attempt()
    scene.run(1000)
    driver = attempt.driver
    scene.run(AWAY_MS)
    scene.world.network.cut.discard("am")
    scene.until(lambda: scene.started() == 1, "the container has started")
    assert attempt.driver is driver
    scene.work(3)


@pytest.mark.world(1, 1)
def test_the_second_driver_of_an_attempt_does_not_wait_for_lower_ranks_again(scene: Scene) -> None:
    """The first has waited: it has permitted 0@2, whose record took the place of the stop of 0@1.

    0@1 stopped with its attempt, and said so. 0@2, of the next one, stops while no driver runs.
    """
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
    *_, begun = scene.world.facts_of("driver:hold-back-over")
    assert begun.fields["unheard"] == []
    scene.work(2)


# --- where tasks begin under ``upcoming``, Samza's default: no input is passed over after that


MONITOR = "job.coordinator.monitor-partition-change.frequency.ms"
UPCOMING = {"systems.kafka.samza.offset.default": "upcoming"}


def _put(scene: Scene, topic: str, partition: int, records: int) -> None:
    for _ in range(records):
        scene.world.broker.append((topic, partition), Writer(None), b"k", b"", 0)


def _forget_state(world: World) -> None:
    """A job without a changelog: its inputs may be others."""
    keys = {k: v for k, v in world.config.items() if k != "stores.counts.changelog"}
    world.config = Config(keys)


@pytest.mark.world(config={**UPCOMING, "task.inputs": "kafka.in,kafka.quiet"}, is_judged=False)
def test_a_partition_that_was_empty_at_first_has_its_place(scene: Scene) -> None:
    """Its task commits for another input: what comes to it while the container is down is read."""
    scene.world.broker.create("quiet")
    scene.working(3)
    scene.hosts.child("0@1").kill()
    _put(scene, "quiet", 0, 10)
    scene.until_started("0@2")
    scene.run(5000)
    assert counted(scene.world) == 13


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


@pytest.mark.world(config={**UPCOMING, MONITOR: "20000"}, is_judged=False)
def test_partitions_that_an_input_grows_by_begin_at_their_oldest_record(scene: Scene) -> None:
    """A job with state takes them into the tasks it has; what came before it looked is read."""
    scene.working(3)
    scene.world.broker.partitions["in", 1] = Partition()
    _put(scene, "in", 1, 7)
    scene.until(lambda: counted(scene.world) == 10, "the grown partition is read", 90_000)


@pytest.mark.world(config=UPCOMING, is_judged=False)
def test_partitions_that_have_grown_while_the_job_was_down_begin_so_too(scene: Scene) -> None:
    """The next submission still knows how many there were when the job first read the input."""
    attempt = scene.working(3)
    attempt.supervisor.kill()
    scene.kill_all("a")
    scene.run(1000)
    scene.world.broker.partitions["in", 1] = Partition()
    _put(scene, "in", 1, 7)
    scene.attempt(submission=2, host="am2")
    scene.until(lambda: counted(scene.world) == 10, "the grown partition is read", 90_000)


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
        scene.configure("task.inputs", "kafka.in,kafka.more")
        world.config = world.config.merged({"task.inputs": "kafka.in,kafka.more"})
        scene.attempt(submission=2, host="am2")
        scene.until_started("0@3")
        scene.run(2000)
        _put(scene, "more", 0, 2)
        scene.until(lambda: counted(world) == 5, "what comes to it from then on is read")
        scene.run(2000)
        assert counted(world) == 5


# --- topics that a driver finds: an input that was recreated, and the stream of another job


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
            has_stopped = accepts(Scene(world), words, nth)
    assert nth > 2


def accepts(scene: Scene, words: str, nth: int) -> bool:
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


def test_no_driver_takes_over_the_stream_of_another_job(scene: Scene) -> None:
    """It ends for good before it has written anything: no rank, no permit."""
    scene.configure("job.name", "j_")
    length = scene.world.broker.partition((COORDINATOR, 0)).end
    attempt = scene.attempt()
    scene.until_ended(attempt.supervisor)
    assert scene.world.broker.partition((COORDINATOR, 0)).end == length
    assert scene.world.facts_of("driver:permit-granted") == []


@pytest.mark.parametrize("recorded", ["c", "c.example.com"])
def test_a_container_comes_home_by_each_name_of_its_host(scene: Scene, recorded: str) -> None:
    """Samza's container has written the name that the machine has for itself."""
    message = wire.set_container_host_assignment(ProcessorId("0"), Host(recorded), 1)
    scene.world.write(message, "SamzaContainer")
    scene.working(1)
    assert scene.hosts.child("0@1").host == "c"
