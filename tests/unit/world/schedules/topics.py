"""Schedules of S4, S6 and S7: topics are deleted, or recreated, beside the state of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeport.appmaster.job_model import input_acceptance
from homeport.appmaster.lease import fencing
from homeport.cli.yarn import preflight, state_reset
from homeport.container.kafka import topic_watch
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.job_coordinator.kafka import checkpoint_topic
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.planning import next_model
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.world import CHECKPOINTS


def ended(scene: Scene, attempt: Attempt) -> None:
    """An application ends, and with it all that it ran on host a, where the state stays."""
    attempt.supervisor.kill()
    scene.kill_all("a")
    scene.run(1000)


def begins_or_is_refused(scene: Scene) -> Attempt:
    """The next submission's first attempt: it ends by itself, or the container starts again."""
    attempt = scene.attempt(submission=2, host="am2")
    scene.until(
        lambda: not attempt.supervisor.is_alive or scene.started() > 1, "it is refused or starts"
    )
    scene.run(3000)
    return attempt


# -- S6


def takes_any_topic_for_its_checkpoints(patch: pytest.MonkeyPatch) -> None:
    """An empty checkpoint topic is that of a job that has not begun."""
    for module in (checkpoint_topic, topic_watch):
        patch.setattr(module, "lost_positions", lambda *_: None)


@schedule("S6", "was counted 6 times for 3 records", takes_any_topic_for_its_checkpoints)
def the_checkpoint_topic_is_gone_between_two_submissions(scene: Scene) -> None:
    """The state is there, and would be given its input once more."""
    ended(scene, scene.working(3))
    scene.world.broker.delete(CHECKPOINTS)
    attempt = begins_or_is_refused(scene)
    scene.judge()
    scene.require(not attempt.supervisor.is_alive, "the job runs without its positions")
    scene.require(CHECKPOINTS not in scene.world.broker.topic_ids, "an empty topic was made")


def takes_what_is_there_at_its_start(patch: pytest.MonkeyPatch) -> None:
    """A new driver compares nothing; a container does, with what is there then."""
    takes_any_topic_for_its_checkpoints(patch)


@schedule("S6", "was counted 6 times for 3 records", takes_what_is_there_at_its_start)
def the_checkpoint_topic_is_made_anew_between_two_containers(scene: Scene) -> None:
    """The attempt goes on, and starts a container where positions are gone."""
    scene.working(3)
    scene.hosts.child("0@1").kill()
    scene.world.broker.create(CHECKPOINTS)
    scene.child("0@2")
    scene.run(5000)
    scene.judge()
    scene.require(not scene.has_fact("container:started", "0@2"), "it runs without positions")


# Topics are compared when a container begins, and not any more while it runs.
@schedule("S6", "0@1 still writes positions", config={"task.commit.ms": "1000"})
@without(TopicWatch, "check", lambda _: None)
def the_checkpoint_topic_is_made_anew_under_a_container(scene: Scene) -> None:
    """It would leave the positions of some tasks in a topic that lacks those of all others."""
    scene.working(3)
    child = scene.hosts.child("0@1")
    scene.world.broker.create(CHECKPOINTS)
    scene.run(2500)
    scene.require(not child.is_alive, "0@1 still writes positions")
    scene.require(counted(scene.world) == 3, "something was counted that has no position")


# -- S7

BEGIN = {"job.input.recreated": "begin"}


def recreated(scene: Scene, records: int) -> None:
    """The input is another topic, which has so many records already."""
    scene.world.broker.create("in")
    scene.produce(records)


# An input is what has its name.
@schedule("S7", "the job goes on in a topic that it never read", is_judged=False)
@without(input_acceptance, "recreated", lambda *_: ())
def the_input_is_made_anew_between_two_submissions(scene: Scene) -> None:
    """It is longer than the job's position: the first records would be passed over in silence."""
    ended(scene, scene.working(3))
    recreated(scene, 8)
    attempt = begins_or_is_refused(scene)
    verdict = "the job goes on in a topic that it never read"
    scene.require(not attempt.supervisor.is_alive, verdict)
    scene.require(counted(scene.world) == 3, verdict)


def counts_all(scene: Scene, records: int) -> None:
    """So many counts have been sent in all, one after the other, and no more."""
    scene.run(3000)
    outputs = scene.world.broker.partition(("out", 0)).committed(0, 1 << 30)
    counts = [int(record.value or b"0") for record in outputs]
    scene.require(counts == list(range(1, records + 1)), "records of the new topic were skipped")


# A container goes on at its checkpoint, whichever topic that was of.
@schedule("S7", "records of the new topic were skipped", config=BEGIN, is_judged=False)
@without(InputTopicManager, "floors", lambda _: {})
def the_new_input_is_begun(scene: Scene) -> None:
    """All of it is counted on top of the state; and once, with any next container."""
    ended(scene, scene.working(3))
    recreated(scene, 8)
    begins_or_is_refused(scene)
    counts_all(scene, 11)
    next(c for c in scene.hosts.children if c.is_alive).kill()
    scene.until(lambda: scene.started() == 3, "another one has started")
    scene.produce(2)
    counts_all(scene, 13)


# The floor is read while a container may still commit a position in the former topic.
@schedule("S7", "records of the new topic were skipped", config=BEGIN, is_judged=False)
@without(input_acceptance, "fence_everybody", lambda *_: None)
def a_zombie_wakes_up_when_the_new_input_has_been_accepted(scene: Scene) -> None:
    """It stands before its transaction, and would leave its position above the floor."""
    first = scene.working(3)
    child = scene.hosts.child("0@1")
    scene.halt(child, "send to", 2)
    scene.hosts.freeze("a")
    first.supervisor.kill()
    recreated(scene, 8)
    scene.attempt(submission=2, host="am2")
    scene.until(
        lambda: len(scene.world.facts_of("driver:model-change")) == 2, "the new input is accepted"
    )
    scene.hosts.thaw("a")
    scene.run(500)
    scene.until(lambda: scene.started() > 1, "the next one has started")
    counts_all(scene, 11)


# --- schedules of S4: the state of a job is reset while one of its processes lives on


def resetting(scene: Scene, submission: int = 2) -> Process:
    """A run-job that resets the state, as that submission."""

    def reset() -> None:
        model = preflight.check_job_model(scene.world.config, print)
        state_reset.reset(scene.world.config, model, submission, "job-runner", lambda: None)

    process = scene.clock.process(f"run-job {submission}", "cli")
    process.spawn(reset)
    return process


def is_over(scene: Scene, process: Process) -> None:
    """The reset has finished, and the user deletes what the job had sent."""
    scene.until(lambda: not process.is_alive, "the state is reset")
    assert process.failure is None, process.failure
    scene.world.broker.create("out")


def a_zombie_in_mid_transaction(scene: Scene) -> None:
    """The machines of a job are lost, one while a container is about to send."""
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    scene.halt(child, "send to", 2)
    scene.hosts.freeze("a")
    attempt.supervisor.kill()


def begins_anew(scene: Scene, submission: int = 3) -> None:
    """The job is submitted again and counts all of its input, from nothing."""
    started = scene.started()
    scene.attempt(submission=submission, host="am2")
    scene.until(lambda: scene.started() > started, "it has started again")
    scene.run(3000)
    scene.judge()
    scene.require(counted(scene.world) == scene.produced, "not all was counted once more")


def offsets_tell_nothing(patch: pytest.MonkeyPatch) -> None:
    """No process sees by the offset of its record that a topic was recreated.

    This holds for a process that has written nothing yet, and for topics that have grown again.
    """
    patch.setattr(TransactionalProducer, "_require_progress", lambda _: None)


def nobody_is_fenced(patch: pytest.MonkeyPatch) -> None:
    """Topics are recreated, whatever may still write."""
    offsets_tell_nothing(patch)
    patch.setattr(state_reset, "fence_everybody", lambda *_: None)


@schedule("S4", "something was lost or applied twice", nobody_is_fenced)
def a_zombie_wakes_up_after_a_reset(scene: Scene) -> None:
    """It commits before anybody of the new submission begins, into topics recreated."""
    a_zombie_in_mid_transaction(scene)
    is_over(scene, resetting(scene))
    scene.hosts.thaw("a")
    scene.run(500)
    begins_anew(scene)


def topics_come_first(patch: pytest.MonkeyPatch) -> None:
    """Topics are recreated, and then everybody is fenced."""
    offsets_tell_nothing(patch)
    fence = fencing.fence_everybody
    late: list[Callable[[], None]] = []

    def create(*arguments: Any) -> None:  # noqa: ANN401 - as the product's
        next_model.create_topics(*arguments)
        late.pop()()

    patch.setattr(state_reset, "fence_everybody", lambda *args: late.append(lambda: fence(*args)))
    patch.setattr(state_reset, "create_topics", create)


@schedule("S4", "the changelogs say", topics_come_first)
def a_zombie_wakes_up_while_everybody_is_fenced(scene: Scene) -> None:
    """It commits at the last moment when it may; that goes the way of all state."""
    a_zombie_in_mid_transaction(scene)
    run_job = resetting(scene)
    scene.halt(run_job, "init homeport.j.1.processor")
    scene.hosts.thaw("a")
    scene.run(100)
    run_job.go_on()
    is_over(scene, run_job)
    begins_anew(scene)
