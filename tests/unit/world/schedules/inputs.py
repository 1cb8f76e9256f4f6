"""Schedules of I2 and I9: an input comes to a job that runs, goes, and returns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.job_model import publication
from homeport.container.incarnation import start_up
from homeport.job_coordinator.model.job_model import JobModel
from tests.unit.world.judges import counted
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene

INPUTS = "task.inputs"
BOTH = "kafka.in,kafka.more"
UPCOMING = {"systems.kafka.streams.more.samza.offset.default": "upcoming"}


def more_comes(scene: Scene, successor: str) -> None:
    """The topic ``more`` is an input from now on, with that incarnation."""
    scene.configure(INPUTS, BOTH)
    scene.until_started(successor)
    scene.run(500)


# -- I2


def inputs_make_no_difference(patch: pytest.MonkeyPatch) -> None:
    """A container that keeps its tasks runs on."""
    tasks_of = publication._tasks_of

    def without_inputs(model: JobModel) -> publication._Tasks:
        found = tasks_of(model).items()
        return {
            p: frozenset(replace(task, system_stream_partitions=()) for task in tasks)
            for p, tasks in found
        }

    patch.setattr(publication, "_tasks_of", without_inputs)


@schedule("I2", "all is counted", inputs_make_no_difference)
def an_input_comes_while_its_container_works(scene: Scene) -> None:
    """The container of before reads the former inputs alone, so that a successor must begin."""
    scene.working(2)
    scene.world.add_input("more")
    scene.produce(2, topic="more")
    scene.configure(INPUTS, BOTH)
    scene.produce(2)
    scene.until_counted()


# -- I9


# No record has the first position of the new input until a transaction commits it.
@schedule("I9", "all is counted", config=UPCOMING)
@without(start_up, "commit_starts", lambda *_: None)
def a_container_dies_before_the_first_record_of_a_new_input(scene: Scene) -> None:
    """It began at the end of it; three records come before its successor begins."""
    scene.working(2)
    scene.world.add_input("more")
    more_comes(scene, "0@3")
    scene.hosts.child("0@3").kill()
    scene.produce(3, topic="more")
    scene.until_counted()


# Positions of inputs that have left stay until a record comes.
@schedule("I9", "the input began where it once was left", config={**UPCOMING, INPUTS: BOTH})
@without(start_up, "inputs_gone", lambda *_: ())
def an_input_goes_and_returns_and_no_record_comes_between(scene: Scene) -> None:
    """What came while the job did not read it is no work of the job's."""
    scene.world.add_input("more")
    scene.working(2)
    scene.produce(2, topic="more")
    scene.until_counted()
    scene.configure(INPUTS, "kafka.in")
    scene.until_started("0@3")
    scene.run(500)
    scene.world.produce(1, b"k", 0, "more")
    more_comes(scene, "0@5")
    scene.run(2000)
    verdict = "the input began where it once was left"
    scene.require(counted(scene.world) == scene.produced, verdict)
    scene.produce(2, topic="more")
    scene.work(1)
