"""Schedules of P1: what is evidence that an incarnation has stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.container.launcher import stop_recorder as stop_witness
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene
from tests.unit.world.world import LEASE_MS


def what_yarn_says_is_evidence(patch: pytest.MonkeyPatch) -> None:
    """A container that Skein calls ended is taken to be gone with all that ran in it."""
    patch.setattr(Draft, "has_child", lambda *_: False)


@schedule("P1", what_yarn_says_is_evidence, "0@1 on a still ran")
def yarn_calls_a_container_ended_that_lives(scene: Scene) -> None:
    """The ResourceManager gives up the node of 0@1: Skein says that the container has ended.

    Launcher and child live, and their lease is renewed as before; only the driver is not reached
    from there for a moment.
    """
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    scene.world.links.cut.add(("a", attempt.driver.name))
    scene.cluster.lose_node_manager("a")
    for container in attempt.yarn.containers.values():
        container.is_said_to_have_ended = True
    scene.run(3 * LEASE_MS)
    scene.judge()
    scene.require(child.is_alive, "a healthy container was killed")


def a_witness_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """It writes that the child has stopped as soon as it starts."""
    testify = stop_witness.testify
    patch.setattr(stop_witness, "testify", lambda brief: testify(replace(brief, pid_fd=None)))


@schedule("P1", a_witness_waits_for_nobody, "0@1 on a still ran")
def a_child_finishes_its_batch_after_sigterm(scene: Scene) -> None:
    """The AM's machine dies, and YARN ends the launcher of 0@1 while its child computes a batch.

    The launcher starts a witness at once, and the child may run for ``task.shutdown.ms`` more. The
    next attempt permits 0@2 as soon as it reads a ``set-stopped`` of 0@1.
    """
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    scene.take(2000)
    scene.produce()
    scene.run(300)
    attempt.supervisor.kill()
    scene.hosts.launcher_of(child).terminate()
    scene.attempt(attempt=2, host="am2")
    scene.until_started("0@2", LEASE_MS)
