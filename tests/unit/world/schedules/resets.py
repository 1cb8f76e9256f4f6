"""Schedules of S4: the state of a job is reset while one of its processes lives on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeport.appmaster.lease import fencing
from homeport.cli.yarn import preflight, state_reset
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.job_coordinator.planning import next_model
from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene


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
