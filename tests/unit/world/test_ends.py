"""The stop of a retired processor is recorded, even if the driver that ordered it is dead.

It has no successor with a permit that would show the stop: without a record, every later attempt
and submission waits for it for as long as it could run on unseen (safety A4).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.job_coordinator.metadata.lifecycle import JobEnd, JobEndManager, StopManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
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
def test_a_stop_while_no_driver_ran_is_recorded_by_the_next_driver(
    ends: Callable[[Scene, Process], None],
) -> None:
    """At once, so that an attempt that dies then leaves no incarnation to wait for."""
    with World(2, 2) as world:
        scene = Scene(world)
        retired_without_a_driver(scene, ends)
        scene.until(lambda: scene.has_fact("driver:accounted-for", "1@1"), "it is known to be gone")
        scene.run(100)
        assert stops(scene)[RETIRED] == ("ordered" if ends is stops_in_order else "lease-lost")


@pytest.mark.parametrize("ends", [stops_in_order, loses_its_launcher])
def test_the_next_submission_does_not_wait_for_it(ends: Callable[[Scene, Process], None]) -> None:
    """The job ends in order after that, by a third driver; the next one places at once."""
    with World(2, 2) as world:
        scene = Scene(world)
        attempt = retired_without_a_driver(scene, ends)
        scene.run(ISOLATION_MS)
        world.write(JobEndManager.message(JobEnd(1, JobResult.KILLED.value, "")), "homeport")
        attempt.driver.kill()
        scene.until_ended(attempt.supervisor)
        submitted_ms = world.clock.now_ms
        scene.attempt(submission=2)
        scene.until_started("0@4")
        (begun,) = world.facts_of("driver:hold-back-over")[-1:]
        assert begun.fields["unheard"] == []
        assert world.clock.now_ms - submitted_ms < ISOLATION_MS
        scene.judge()
