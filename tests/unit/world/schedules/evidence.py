"""Schedules of P1: what is evidence that an incarnation has stopped."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.draft import Draft
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
