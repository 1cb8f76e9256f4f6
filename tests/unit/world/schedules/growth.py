"""Schedules of A7, S9 and I1: inputs in force outlive their attempt; tasks come, go and return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from homeport.appmaster.job_model import inputs_in_force, model_change, publication
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.grouper import job_model_calculator
from homeport.job_coordinator.kafka.changelog_topics import ChangelogTopics
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from tests.unit.world.am import Attempt
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.inputs import BOTH, INPUTS, more_comes

NONSENSE = "kafka.in,nonsense"
COUNT = "job.container.count"
GROWS = {"job.changelogs.grow": "true"}
_GROUPER = "job.systemstreampartition.grouper.factory"
OF_EACH_INPUT = {**GROWS, _GROUPER: "group-by-system-stream-partition"}


def next_attempt(scene: Scene, attempt: Attempt) -> Attempt:
    """The machine of the AM is lost, and YARN begins the next attempt."""
    attempt.supervisor.kill()
    return scene.attempt(attempt=attempt.rank.attempt + 1, host=f"am{attempt.rank.attempt + 1}")


# -- A7


def an_attempt_dies_after_nonsense(scene: Scene) -> None:
    """An input came live, and is counted. Then a tool's slip; the next attempt; the mended key."""
    attempt = scene.working(2)
    scene.world.add_input("more")
    more_comes(scene, "0@3")
    scene.produce(2, topic="more")
    scene.until_counted()
    scene.configure(INPUTS, NONSENSE)
    scene.run(2000)
    before = len(scene.hosts.children)
    next_attempt(scene, attempt)
    scene.until(lambda: len(scene.hosts.children) > before, "a container begins")
    scene.run(2000)
    scene.configure(INPUTS, BOTH)
    scene.produce(2, topic="more")
    scene.until_counted()


# The next attempt takes the submission, whose one input drops the positions of the other.
@schedule("A7", "all is counted")
@without(model_change, "in_force", lambda submitted, _: submitted)
def the_submission_lacks_what_came_live(scene: Scene) -> None:
    """What has been counted of the input would count again when it returns."""
    an_attempt_dies_after_nonsense(scene)


def recorded_by_the_next_driver(patch: pytest.MonkeyPatch) -> None:
    """The inputs are recorded when a driver begins, and not with the JobModel that has them."""
    recorded, begun = inputs_in_force.records, set[int]()

    def records(submitted: Config, config: Config, stream: CoordinatorStream) -> Iterable[Any]:
        is_first = id(stream) not in begun
        begun.add(id(stream))
        return recorded(submitted, config, stream) if is_first else ()

    patch.setattr(inputs_in_force, "records", records)


@schedule("A7", "all is counted", recorded_by_the_next_driver)
def the_inputs_in_force_are_not_recorded_with_their_model(scene: Scene) -> None:
    """The attempt dies with its knowledge."""
    an_attempt_dies_after_nonsense(scene)


# -- S9


def published_before_grown(patch: pytest.MonkeyPatch) -> None:
    """The JobModel is in the stream first; then the changelogs get their partitions."""
    publish = publication.publish

    def published(model: JobModel, stream: CoordinatorStream, *args: Any, **more: Any) -> object:  # noqa: ANN401 - the product's own
        done = publish(model, stream, *args, **more)
        if "in_force" in more:  # no beginning of a driver that finds the model
            ChangelogTopics(model.config, stream).make(model.max_change_log_stream_partitions)
        return done

    patch.setattr(model_change, "_topics", lambda _: ())
    patch.setattr(publication, "publish", published)


@schedule("S9", "all is counted", published_before_grown, partitions=2, config=GROWS)
def a_driver_dies_while_changelogs_grow(scene: Scene) -> None:
    """The next driver would find a model whose task has no partition for its state."""
    attempt = scene.working(2)
    scene.world.add_input("more", 3)
    driver = scene.driver_of(attempt)
    driver.stop_at("grow counts")
    scene.configure(INPUTS, BOTH)
    scene.until(lambda: driver.is_stopped, "the changelogs are about to grow")
    driver.kill()
    scene.produce(2, b"m", 2, "more")
    scene.until_counted()


def numbered_by_name(tasks: Iterable[TaskName], _known: Mapping[TaskName, int]) -> object:
    """Number the tasks of now, in the order of their names."""
    return {task: number for number, task in enumerate(sorted(tasks))}


# The task that comes gets the partition of the one whose name stands behind its own.
@schedule("S9", "something was lost or applied twice", config=OF_EACH_INPUT)
@without(job_model_calculator, "assign_changelog_partitions", numbered_by_name)
def a_task_comes_whose_name_stands_before(scene: Scene) -> None:
    """Each would go on with the other's state."""
    scene.working(2)
    scene.world.add_input("above")
    scene.configure(INPUTS, "kafka.above,kafka.in")
    scene.until_started("0@3")
    scene.hosts.child("0@3").kill()
    scene.produce(2, b"m", topic="above")
    scene.work(2)


# -- I1


def fence_of_known_owners(
    change: publication.TaskChange, processor_id: ProcessorId
) -> tuple[Incarnation, ...]:
    """Of a task that the model before lacks, no former owner is listed."""
    found = set(change.owners.unfenced(processor_id))
    for task in change.after.get(processor_id, ()):
        owner = change._owner_before.get(task.task_name, processor_id)
        found |= set(change.owners.unfenced(owner))
    return tuple(sorted(found))


@schedule("I1", "2@1 wrote to task 2 after", containers=2, partitions=2, config=GROWS)
@without(publication.TaskChange, "_fence", fence_of_known_owners)
def a_task_comes_back_while_its_former_owner_sleeps(scene: Scene) -> None:
    """Processor 2 has that task alone, and its machine stands still in a transaction.

    The input goes, and the processor with it; when it returns, another one has the task.
    """
    attempt = scene.working(2)
    scene.world.add_input("more", 3)
    scene.configure(INPUTS, BOTH)
    scene.configure(COUNT, "3")
    scene.until_started("2@1")
    scene.produce(2, b"m", 2, "more")
    scene.until_counted()
    child = scene.hosts.child("2@1")
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    child.stop_at("send to out")
    scene.produce(2, b"m", 2, "more")
    scene.until(lambda: child.is_stopped, "it is in a transaction")
    scene.freeze(child.host)
    scene.configure(INPUTS, "kafka.in")
    scene.configure(COUNT, "2")
    scene.run(20_000)
    scene.configure(INPUTS, BOTH)
    scene.until_counted()
    scene.wake_up(child)
    scene.run(2000)
