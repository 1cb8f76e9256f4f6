"""Ends: of a retired processor whose driver is dead, of a drained job, of a fenced writer.

The stop of a retired processor is recorded, even if the driver that ordered it is dead.
It has no successor with a permit that would show the stop: without a record, every later attempt
and submission waits for it for as long as it could run on unseen (safety A4).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.cli.yarn.job import SOURCE, write_order
from homeport.config.errors import FencedError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.lifecycle import JobEnd, JobEndManager, StopManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.scene import Scene
from tests.unit.world.world import ISOLATION_MS, World

RETIRED = Incarnation(ProcessorId("1"), 1)


def stops_in_order(scene: Scene, child: Process) -> None:
    """While no driver answers; its launcher reports to the next driver."""
    scene.until_ended(child)


def loses_its_launcher(scene: Scene, child: Process) -> None:
    """No process reports it: its lease runs out."""
    scene.hosts.launcher_of(child).kill()
    child.kill()


def retired_without_a_driver(scene: Scene, ends: Callable[[Scene, Process], None]) -> Attempt:
    """One container is left of two; the driver dies when it has ordered the other one to stop."""
    attempt = scene.attempt()
    scene.until(lambda: scene.started() == 2, "both have started")
    child = scene.hosts.child("1@1")
    scene.configure("job.container.count", "1")
    scene.until(lambda: scene.has_fact("driver:stop-ordered", "1@1"), "it is ordered to stop")
    attempt.driver.kill()
    ends(scene, child)
    scene.until_started("0@3")
    return attempt


def stops(scene: Scene) -> dict[Incarnation, str]:
    """What the coordinator stream says of stops."""
    with scene.world.stream() as stream:
        return StopManager(stream).read()


@pytest.mark.parametrize("ends", [stops_in_order, loses_its_launcher])
@pytest.mark.world(2, 2)
def test_a_stop_while_no_driver_ran_is_recorded_by_the_next_driver(
    scene: Scene, ends: Callable[[Scene, Process], None]
) -> None:
    """At once, so that an attempt that dies then leaves no incarnation to wait for."""
    retired_without_a_driver(scene, ends)
    scene.until(lambda: scene.has_fact("driver:accounted-for", "1@1"), "it is known to be gone")
    scene.run(100)
    assert stops(scene)[RETIRED] == ("ordered" if ends is stops_in_order else "lease-lost")


@pytest.mark.parametrize("ends", [stops_in_order, loses_its_launcher])
@pytest.mark.world(2, 2)
def test_the_next_submission_does_not_wait_for_it(
    scene: Scene, ends: Callable[[Scene, Process], None]
) -> None:
    """The job ends in order after that, by a third driver; the next one places at once."""
    attempt = retired_without_a_driver(scene, ends)
    scene.run(ISOLATION_MS)
    scene.world.write(JobEndManager.message(JobEnd(1, JobResult.KILLED.value, "")), "homeport")
    attempt.driver.kill()
    scene.until_ended(attempt.supervisor)
    submitted_ms = scene.world.clock.now_ms
    scene.attempt(submission=2)
    scene.until_started("0@4")
    (begun,) = scene.world.facts_of("driver:hold-back-over")[-1:]
    assert begun.fields["unheard"] == []
    assert scene.world.clock.now_ms - submitted_ms < ISOLATION_MS


# --- the order to drain: containers end with what their input holds, and the job has succeeded


def _order(world: World) -> None:
    with world.stream() as stream:
        write_order(stream)


def _result(world: World, submission: int) -> str | None:
    with world.stream() as stream:
        end = JobEndManager(stream).read(submission)
        return None if end is None else end.result


_LONG = pytest.mark.long


@pytest.mark.parametrize(
    "fault", ["driver", pytest.param("none", marks=_LONG), pytest.param("container", marks=_LONG)]
)
@pytest.mark.world(2, 2)
def test_a_drained_job_succeeds_and_the_next_submission_goes_on(scene: Scene, fault: str) -> None:
    """Whatever dies meanwhile: all that was there is counted once, and the next job drains not."""
    attempt = scene.working()
    scene.produce(5)
    scene.produce(4, b"other", partition=1)
    _order(scene.world)
    if fault == "driver":
        attempt.driver.kill()
    elif fault == "container":
        scene.hosts.child("0@1").kill()
    scene.until_ended(attempt.supervisor)
    assert _result(scene.world, 1) == JobResult.SUCCEEDED.value
    assert counted(scene.world) == scene.produced
    with scene.world.stream() as stream:
        manager = ConfigManager(stream)
        file = {k: v for k, v in manager.read().items() if k != "job.drain"}
        manager.replace(file, SOURCE)
    scene.produce(2)
    scene.attempt(submission=2)
    scene.until_counted()
    scene.run(5000)
    assert _result(scene.world, 2) is None


# --- the error of a writer whose transactional id a newer holder has taken


def _container(world: World) -> Callable[[], object]:
    producer = TransactionalProducer(SystemConfig.of(world.config, "kafka"), "homeport.same")
    producer.initialise()

    def write() -> None:
        producer.begin()
        producer.send([Send("out", b"k", b"v", 0)])
        producer.deliver()
        producer.commit()

    return write


def _driver(world: World) -> Callable[[], object]:
    stream = world.stream("homeport.same")
    return lambda: stream.write([wire.set_config("a", "1")])


@pytest.mark.parametrize("begun", [_container, _driver])
def test_a_fenced_writer_raises_the_one_error(
    begun: Callable[[World], Callable[[], object]],
) -> None:
    """Containers and drivers raise the same class: catching it misses neither."""
    with World() as world:
        write = begun(world)
        begun(world)
        with pytest.raises(FencedError):
            write()
