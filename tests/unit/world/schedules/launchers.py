"""Schedules of C1-C6: a launcher and its child, when one of them stands still or is cut off."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from homeport.appmaster.allocation import retries
from homeport.appmaster.lease import lease_table
from homeport.config.errors import WireError
from homeport.container.child import process as child_process
from homeport.container.child.running import BeatWatch
from homeport.container.host import lease_memory
from homeport.container.host.exit_codes import EXIT_LEASE_LOST
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.launcher import launcher
from homeport.container.launcher.lease_holder import Lease, LeaseHolder
from homeport.container.processing.run_loop import RunLoop
from homeport.job_coordinator import clocks
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Renewal
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.world.clock import Process
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.stand_ins import Executor
from tests.unit.world.world import LEASE_MS, MARGIN_MS

NO_RETRIES = {"cluster-manager.container.retry.count": "0"}
HANG_SOON = {"task.hang.ms": "5000"}


def _here() -> Process:
    current = Executor.clock.current
    if current is None:
        raise AssertionError("only a process does this")
    return current.process


# -- C1


def from_the_answer(patch: pytest.MonkeyPatch) -> None:
    """The launcher counts a lease from when the renewal was answered."""

    def renewed(lease: Lease, _sent_ms: int, now_ms: int, lease_ms: int) -> bool:
        lease.deadline_ms = now_ms + lease_ms
        return True

    patch.setattr(Lease, "renewed", renewed)


@schedule("C1", "0@1 runs after the end of its lease was reported", from_the_answer)
def a_launcher_stands_still_over_the_answer_to_a_renewal(scene: Scene) -> None:
    """The keeper has renewed, and the launcher reads the answer when L is almost over.

    From then on the host is cut off. The keeper's side is over L + M after its answer.
    """
    scene.working()
    scene.run(LEASE_MS)  # a permit's lease is older than one that is renewed at the usual pace
    child = scene.hosts.child("0@1")
    parent = scene.hosts.launcher_of(child)
    scene.halt(parent, "v1/lease answered")
    scene.run(LEASE_MS * 4 // 5)
    scene.world.links.isolate("a")
    parent.go_on()
    scene.until_revoked("0@1")
    scene.require(not child.is_alive, "0@1 runs after the end of its lease was reported")


# The AM's side waits no longer than the launcher does.
@schedule("C1", "0@1 runs after the end of its lease was reported")
@without(lease_table, "margin_ms", lambda _: 0)
def two_clocks_differ_by_less_than_m(scene: Scene) -> None:
    """A host is cut off, and held by its hypervisor for half a second that its clock misses."""
    scene.working()
    child = scene.hosts.child("0@1")
    scene.world.links.isolate("a")
    scene.hosts.freeze("a")
    scene.run(MARGIN_MS - 100)
    scene.hosts.thaw("a")
    scene.until_revoked("0@1")
    scene.require(not child.is_alive, "0@1 runs after the end of its lease was reported")


# -- C2


def _beat_only(memory: LeaseMemory, _end: Callable[[int], object]) -> None:
    while True:
        memory.beat_ms = clocks.boot_ms()
        Executor.clock.sleep(100)


# The child beats, and leaves the deadline to its launcher.
@schedule("C2", "0@1 holds its directory without a lease")
@without(lease_memory, "_watch", _beat_only)
def a_launcher_stands_still_and_its_child_is_idle(scene: Scene) -> None:
    """The NodeManager of host a is down, so that no process kills what hangs there.

    Without input the child writes nothing, so nothing fences it, and it would hold the lock of its
    store for ever: no incarnation could come home.
    """
    scene.working()
    child = scene.hosts.child("0@1")
    scene.cluster.hosts[Host("a")] = False
    scene.hosts.launcher_of(child).stop()
    scene.until_revoked("0@1")
    scene.until_started("0@2")
    scene.require(not child.is_alive, "0@1 holds its directory without a lease")


# -- C3


# The launcher renews for a child of which it only knows that it has not ended.
@schedule("C3", "it is not so that 0@2 has started", config=HANG_SOON)
@without(BeatWatch, "is_hung", lambda *_: False)
def a_child_stands_still_alone(scene: Scene) -> None:
    """Its launcher is well and renews its lease: only the missing beats show the fault."""
    scene.working()
    child = scene.hosts.child("0@1")
    child.stop()
    scene.until_started("0@2", 20_000)
    scene.require(not child.is_alive, "0@1 was not killed")
    scene.work()


def renewed_to_the_end(patch: pytest.MonkeyPatch) -> None:
    """The launcher renews the lease of a child that it has killed until that is gone."""

    def sentence(self: launcher.Launcher, child: object) -> None:
        del child
        self._signal_child(signal.SIGKILL)

    patch.setattr(launcher.Launcher, "_kill", sentence)


@schedule("C3", "it is not so that 0@2 has started", renewed_to_the_end, config=HANG_SOON)
def a_child_does_not_die_of_sigkill(scene: Scene) -> None:
    """It stands in the kernel, as on a disk that does not answer: only its lease can be over."""
    scene.working()
    child = scene.hosts.child("0@1")
    child.is_held = True
    child.stop()
    scene.until_started("0@2", 30_000)
    scene.require(child.is_alive, "0@1 was let go")
    child.is_held = False
    child.kill()
    scene.work()


def beats_of_the_loop(patch: pytest.MonkeyPatch) -> None:
    """The child beats whenever its loop has come round, and its watch minds the deadline only."""
    memories: dict[Process, LeaseMemory] = {}
    look = RunLoop._flush_if_due

    def watch(memory: LeaseMemory, end: Callable[[int], object]) -> None:
        memories[_here()] = memory
        while clocks.boot_ms() < memory.deadline_ms:
            Executor.clock.sleep(100)
        end(EXIT_LEASE_LOST)

    def flush_if_due(loop: RunLoop) -> None:
        look(loop)
        memories[_here()].beat_ms = clocks.boot_ms()

    patch.setattr(lease_memory, "_watch", watch)
    patch.setattr(RunLoop, "_flush_if_due", flush_if_due)


@schedule("C3", "0@1 was killed, which was at work", beats_of_the_loop, config=HANG_SOON)
def a_batch_takes_longer_than_a_hang(scene: Scene) -> None:
    """The user's code works on one batch for twelve seconds, and may."""
    scene.working()
    child = scene.hosts.child("0@1")
    scene.take(12_000)
    scene.produce()
    scene.run(14_000)
    scene.require(child.is_alive, "0@1 was killed, which was at work")


# -- C4


def without_a_round_trip(patch: pytest.MonkeyPatch) -> None:
    """A permit is a lease from the moment that it is read."""

    def acquire(client: CoordinatorClient, renewal: Renewal) -> LeaseHolder:
        lease = Lease(clocks.boot_ms() + LEASE_MS)
        return LeaseHolder(client, renewal, lease, LEASE_MS)

    patch.setattr(LeaseHolder, "acquire", acquire)


@schedule("C4", "0@1 was started when 0@2 had been permitted", without_a_round_trip)
def a_launcher_reads_its_permit_late(scene: Scene) -> None:
    """Its host stands still between the permit and the start; meanwhile 0@2 is permitted."""
    scene.attempt()
    scene.until(lambda: bool(scene.hosts.launchers), "there is a launcher")
    first = scene.hosts.launchers[0]
    scene.halt(first, "v1/lease")
    scene.freeze("a")
    scene.until_started("0@2")
    scene.hosts.thaw("a")
    scene.work()
    is_started = scene.hosts.has_child("0@1")
    scene.require(not is_started, "0@1 was started when 0@2 had been permitted")


def forgets_who_has_ended(patch: pytest.MonkeyPatch) -> None:
    """A launcher without a child obeys any order."""
    obey = launcher.Launcher._obey_run

    def obey_run(self: launcher.Launcher, order: Any) -> None:  # noqa: ANN401 - as the product's
        self._ended.clear()
        obey(self, order)

    patch.setattr(launcher.Launcher, "_obey_run", obey_run)


@schedule("C4", "0@1 was started 2 times", forgets_who_has_ended)
def the_report_of_a_stop_is_refused(scene: Scene) -> None:
    """The AM does not understand the report, believes that 0@1 never began, and asks again.

    A second 0@1 would have the transactional id of the first, so that no epoch distinguishes them.
    """
    scene.working()
    announce = CoordinatorClient.stopped
    refused: list[object] = []

    def stopped(client: CoordinatorClient, message: Any) -> None:  # noqa: ANN401 - as the product's
        if not refused:
            refused.append(message)
            raise WireError("not understood")
        announce(client, message)

    scene.world.patch.setattr(CoordinatorClient, "stopped", stopped)
    scene.hosts.child("0@1").kill()
    scene.until(lambda: bool(refused), "the report was refused")
    scene.work()


# -- C5


def spawned_from_a_passing_thread(patch: pytest.MonkeyPatch) -> None:
    """A thread made for the purpose spawns the child."""
    spawn = launcher.Launcher._run_child

    def spawn_in_thread(self: launcher.Launcher, *arguments: Any) -> None:  # noqa: ANN401 - any
        _here().spawn(lambda: spawn(self, *arguments))

    patch.setattr(launcher.Launcher, "_run_child", spawn_in_thread)


@schedule("C5", "it is not so that all have started", spawned_from_a_passing_thread)
def a_container_starts(scene: Scene) -> None:
    """Nothing befalls it. Where its thread is not the launcher's main one, it dies with that."""
    scene.working()


# The kernel is not asked to end the child with its parent.
@schedule("C5", "0@1 outlives its launcher")
@without(child_process, "ending_with_us", lambda: None)
def a_launcher_is_killed(scene: Scene) -> None:
    """By the kernel, for want of memory: no process would be left to kill a child that hangs."""
    scene.working()
    child = scene.hosts.child("0@1")
    scene.hosts.launcher_of(child).kill()
    scene.run(100)
    scene.require(not child.is_alive, "0@1 outlives its launcher")


# -- C6


def leaves_with_the_lease(patch: pytest.MonkeyPatch) -> None:
    """A launcher that has lost the lease of its child goes."""
    bury = launcher.Launcher._record_end

    def bury_and_leave(self: launcher.Launcher, child: Any, code: int) -> None:  # noqa: ANN401 - any
        bury(self, child, code)
        if self._report is not None and self._report.cause is StopCause.LEASE_LOST:
            self._leaving = 1

    patch.setattr(launcher.Launcher, "_record_end", bury_and_leave)


def charges_lost_leases(patch: pytest.MonkeyPatch) -> None:
    """A stop by lease loss counts as a failure of the processor."""
    causes = {*retries.CHARGED_CAUSES, StopCause.LEASE_LOST}
    patch.setattr(retries, "CHARGED_CAUSES", frozenset(causes))


@schedule("C6", "the job was given up", charges_lost_leases, config=NO_RETRIES)
@schedule("C6", "its launcher has left", leaves_with_the_lease, config=NO_RETRIES)
def the_keeper_is_out_of_reach_for_a_while(scene: Scene) -> None:
    """The container was well; it goes on where it was, as soon as it may."""
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    parent = scene.hosts.launcher_of(child)
    scene.world.links.cut.add((parent.name, attempt.keeper.name))
    scene.until(lambda: scene.has_fact("launcher:lease-lost", "0@1"), "the lease of 0@1 is lost")
    scene.world.links.mend()
    scene.run(1000)
    scene.require(not scene.has_fact("finished"), "the job was given up")
    scene.require(parent.is_alive, "its launcher has left")
    scene.work()


# The launcher leaves it to the child to notice.
@schedule("C6", "0@1 was left as it stood")
@without(launcher.Launcher, "_on_lease_lost", lambda *_: None)
def a_child_stands_still_beyond_its_lease(scene: Scene) -> None:
    """It cannot watch its deadline, and would hold its store whenever it goes on."""
    scene.working()
    child = scene.hosts.child("0@1")
    child.stop()
    scene.world.links.isolate("a")
    scene.until_revoked("0@1")
    scene.require(not child.is_alive, "0@1 was left as it stood")
