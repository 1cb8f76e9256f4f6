"""Schedules of P2 and P3: hosts that live, hosts that are silent, and hosts that come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation import early_requests, exclusion
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.protocol.events import TimerKind
from homeport.appmaster.allocation.protocol.instructions import CancelRequest, Instruction
from homeport.container.launcher import stop_recorder as stop_witness
from homeport.job_coordinator.model.ids import Host
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.world import LEASE_MS

# -- P2


# YARN's word that a container has ended leads to nothing.
@schedule("P2", "home was not asked at once")
@without(early_requests, "settle", lambda _: None)
def a_launcher_is_killed_and_its_host_lives(scene: Scene) -> None:
    """Its end is reported. What must wait for the lease is the permit, and nothing else."""
    attempt = scene.working()
    scene.hosts.launcher_of(scene.hosts.child("0@1")).kill()
    scene.run(1500)
    asked = [c.host for c in attempt.yarn.containers.values()]
    scene.require(asked == [Host("a"), Host("a")], "home was not asked at once")
    scene.require(not scene.has_fact("driver:permit-granted", "0@2"), "YARN's word was evidence")
    scene.work()


# As long as the ResourceManager calls a host live, it is taken for live.
@schedule("P2", "it is not so that 0@2 has started")
@without(exclusion, "launcher_fell_silent", lambda *_: None)
def a_machine_is_silent_and_nothing_is_reported(scene: Scene) -> None:
    """The ResourceManager will call it lost in ten minutes. Home cannot be asked before that."""
    scene.working()
    scene.hosts.freeze("a")
    scene.until_revoked("0@1")
    scene.until_started("0@2", 2000)
    scene.work()


# -- P3


def excluded_for_good(patch: pytest.MonkeyPatch) -> None:
    """A host that fell silent once gets no request any more, as long as it is called live."""
    over = exclusion.time_is_over

    def never_over(draft: Draft, kind: TimerKind, host: Host) -> None:
        if kind is TimerKind.EXCLUSION:
            exclusion.probe_failed(draft, host)
        else:
            over(draft, kind, host)

    patch.setattr(exclusion, "time_is_over", never_over)


@schedule("P3", "host a is not asked, which lives", excluded_for_good)
def two_machines_fall_silent_one_after_the_other(scene: Scene) -> None:
    """The first one is back when the second one goes; the ResourceManager never noticed."""
    scene.working()
    scene.only("a", "b")
    scene.run(1500)
    scene.hosts.freeze("a")
    scene.until_started("0@2")
    scene.hosts.thaw("a")
    scene.run(exclusion.EXCLUSION_MS)
    scene.hosts.freeze("b")
    scene.until_started("0@3")
    decisions = [str(f.fields["instructions"]) for f in scene.world.facts_of("driver:decision")]
    is_asked = any("RequestResource 3 on a'" in stated for stated in decisions)
    scene.require(is_asked, "host a is not asked, which lives")
    scene.work()


def cancels_nothing(patch: pytest.MonkeyPatch) -> None:
    """A launcher that is given up is left where it is."""
    instruct = Draft.instruct

    def instruct_others(draft: Draft, instruction: Instruction) -> None:
        if not isinstance(instruction, CancelRequest):
            instruct(draft, instruction)

    patch.setattr(Draft, "instruct", instruct_others)


@schedule("P3", "the silent launcher holds its place for ever", cancels_nothing)
def a_launcher_and_its_child_stand_still(scene: Scene) -> None:
    """Their machine is well. They would keep its memory, and the lock of the store at home."""
    scene.working()
    child = scene.hosts.child("0@1")
    parent = scene.hosts.launcher_of(child)
    child.stop()
    parent.stop()
    scene.until_started("0@2")
    is_gone = not parent.is_alive and not child.is_alive
    scene.require(is_gone, "the silent launcher holds its place for ever")
    scene.work()


# --- schedules of P1: what is evidence that an incarnation has stopped


# A container that Skein calls ended is taken to be gone with all that ran in it.
@schedule("P1", "0@1 on a still ran")
@without(Draft, "has_child", lambda *_: False)
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


@schedule("P1", "0@1 on a still ran", a_witness_waits_for_nobody)
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
