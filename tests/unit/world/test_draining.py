"""The order to drain: containers end with what their input holds, and the job has succeeded."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.cli.yarn.job import SOURCE, write_order
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.lifecycle import JobEndManager
from tests.unit.world.judges import counted
from tests.unit.world.scene import Scene
from tests.unit.world.world import World


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
def test_a_drained_job_succeeds_and_the_next_submission_goes_on(fault: str) -> None:
    """Whatever dies meanwhile: all that was there is counted once, and the next job drains not."""
    with World(2, 2) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.produce(5)
        scene.produce(4, b"other", partition=1)
        _order(world)
        if fault == "driver":
            attempt.driver.kill()
        elif fault == "container":
            scene.hosts.child("0@1").kill()
        scene.until_ended(attempt.supervisor)
        assert _result(world, 1) == JobResult.SUCCEEDED.value
        assert counted(world) == scene.produced
        with world.stream() as stream:
            manager = ConfigManager(stream)
            file = {k: v for k, v in manager.read().items() if k != "job.drain"}
            manager.replace(file, SOURCE)
        scene.produce(2)
        scene.attempt(submission=2)
        scene.until_counted()
        scene.run(5000)
        assert _result(world, 2) is None
        scene.judge()
