"""Schedules of L1-L5 and C1-C6: keepers and drivers, launchers and children, and their leases."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

from homeport.appmaster.allocation import exclusion, invariants, retries
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.lease import lease_table
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.appmaster.programs import lease_keeper
from homeport.config.errors import WireError
from homeport.container.child import process as child_process
from homeport.container.child.running import BeatWatch, RunningChild
from homeport.container.host import lease_memory
from homeport.container.host.exit_codes import EXIT_LEASE_LOST
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.launcher import launcher
from homeport.container.launcher.lease_holder import Lease, LeaseHolder
from homeport.container.processing.run_loop import RunLoop
from homeport.job_coordinator import clocks
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import LeaseAnswer, Renewal
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.world.clock import Process
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.attempts import unwatched
from tests.unit.world.stand_ins import Executor
from tests.unit.world.world import LEASE_MS, MARGIN_MS

HEALTHY = "a healthy container was killed"


def the_driver_expires_too(patch: pytest.MonkeyPatch) -> None:
    """The driver gives up launchers that it has not heard itself, whatever they run."""

    def silent(
        table: LauncherTable, now_ms: int, held: Collection[ResourceId] = ()
    ) -> tuple[LauncherEntry, ...]:
        del held
        found = tuple(e for e in table.all() if now_ms - e.heard_ms >= table.limit_ms)
        for entry in found:
            table.forget(entry.resource_id)
        return found

    patch.setattr(LauncherTable, "silent", silent)


@schedule("L1", HEALTHY, the_driver_expires_too)
def the_driver_hears_nobody_whom_the_keeper_renews(scene: Scene) -> None:
    """For a lease and more no check-in gets through to the driver, as its port is overrun.

    The keeper hears every renewal all the time. A driver that judged by what it heard itself would
    permit a second incarnation beside the first.
    """
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    scene.world.links.cut.add(("a", attempt.driver.name))
    scene.run(LEASE_MS + 3 * MARGIN_MS)
    scene.world.links.mend()
    scene.run(2000)
    scene.judge()
    scene.require(child.is_alive, HEALTHY)


def a_revocation_does_not_last(patch: pytest.MonkeyPatch) -> None:
    """The table reports that a lease has run out, and may renew it all the same."""

    def revoked(
        table: LeaseTable, asked: Iterable[Incarnation], now_ms: int
    ) -> tuple[Incarnation, ...]:
        table.tick(now_ms)
        found = []
        for incarnation in sorted(set(asked)):
            table.register(incarnation, now_ms)
            if now_ms >= table._leases[incarnation].expires_ms:
                found.append(incarnation)
        return tuple(found)

    patch.setattr(LeaseTable, "revoked", revoked)


@schedule("L1", "0@2 on [abc] still ran when 0@1", a_revocation_does_not_last)
def a_launcher_freezes_between_its_permit_and_its_first_renewal(scene: Scene) -> None:
    """The launcher of 0@1 has the order to run it, and freezes before it requests the lease.

    The keeper says that the lease has run out, 0@2 is permitted elsewhere. Then the launcher wakes
    up and asks: once said, it is said for good. Its NodeManager is gone, so no process kills it
    before.
    """
    scene.attempt()
    scene.until(lambda: bool(scene.hosts.launchers), "a launcher comes")
    frozen = scene.hosts.launchers[0]
    scene.halt(frozen, "v1/check-in answered")
    scene.cluster.lose_node_manager("a")
    scene.until_started("0@2")
    frozen.go_on()
    scene.run(3000)


# The keeper renews as long as it has seen no higher rank, however long ago it looked.
@schedule("L2", "0@1 on a still ran")
@without(RenewalGuard, "may_renew", lambda guard, _: not guard.is_outranked)
def an_attempt_is_cut_off_from_kafka_and_replaced(scene: Scene) -> None:
    """The AM's machine loses the brokers and the ResourceManager, but not the container's machine.

    Attempt 2 waits G + L + M after its rank is in Kafka. The old keeper cannot see that rank; that
    it has not heard Kafka for G must be enough for it to let go.
    """
    scene.working()
    scene.world.network.cut.add("am")
    scene.attempt(attempt=2, host="am2")
    scene.child("0@2")


def permits_go_before_their_records(patch: pytest.MonkeyPatch) -> None:
    """The driver answers with a decision whose records are still on their way."""
    append = CoordinatorStreamClient.append
    on_their_way = set()

    async def begun(
        desk: CoordinatorStreamClient, messages: list[CoordinatorStreamMessage]
    ) -> None:
        on_their_way.add(asyncio.ensure_future(append(desk, messages)))

    patch.setattr(CoordinatorStreamClient, "append", begun)


@schedule("L3", "0@1 was started 2 times", permits_go_before_their_records)
def the_driver_dies_with_the_record_of_a_permit_unwritten(scene: Scene) -> None:
    """Kafka is away for a moment while the first permit is due, and the driver dies in it.

    The launcher's machine is cut off right after. The next driver finds no record of 0@1: had the
    launcher got its order before the record was in, the same epoch would be given away twice.
    """
    attempt = scene.attempt()
    scene.until(lambda: bool(scene.hosts.launchers), "a launcher comes")
    scene.world.broker.is_up = False
    scene.run(700)
    scene.world.links.isolate("a")
    attempt.driver.kill()
    scene.cluster.lose_node_manager("a")
    scene.world.broker.is_up = True
    scene.until(lambda: scene.has_fact("container:started"), "a container runs", 30_000)


def a_keeper_refuses_whom_it_does_not_know(patch: pytest.MonkeyPatch) -> None:
    """The table answers NO where the incarnation is not registered."""
    renew = LeaseTable.renew

    def renewed(table: LeaseTable, incarnation: Incarnation, now_ms: int) -> LeaseAnswer:
        answer = renew(table, incarnation, now_ms)
        return LeaseAnswer.NO if answer is LeaseAnswer.LATER else answer

    patch.setattr(LeaseTable, "renew", renewed)


@schedule("L3", HEALTHY, a_keeper_refuses_whom_it_does_not_know)
def a_keeper_dies_while_the_driver_stands_still(scene: Scene) -> None:
    """The keeper is killed, the next one knows no incarnation; the driver stands still briefly.

    Renewals reach the new keeper before the driver has registered the incarnations.
    """
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    attempt.driver.stop()
    attempt.keeper.kill()
    scene.run(LEASE_MS // 2)
    attempt.driver.go_on()
    scene.run(2 * LEASE_MS)
    scene.require(child.is_alive, HEALTHY)


def a_new_keeper_gives_no_grace(patch: pytest.MonkeyPatch) -> None:
    """What a keeper has not heard of is over at once."""

    def register(table: LeaseTable, incarnation: Incarnation, now_ms: int) -> bool:
        fresh = lease_table._Lease(now_ms)
        return not table._leases.setdefault(incarnation, fresh).is_revoked

    patch.setattr(LeaseTable, "register", register)


@schedule("L4", HEALTHY, a_new_keeper_gives_no_grace)
def a_keeper_is_killed_and_asked_before_anybody_renews(scene: Scene) -> None:
    """The keeper is killed; the driver asks the next one first thing which leases are over."""
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    attempt.keeper.kill()
    scene.run(2 * LEASE_MS)
    scene.require(child.is_alive, HEALTHY)


def the_am_is_beyond_suspicion(patch: pytest.MonkeyPatch) -> None:
    """Hosts that fall silent are to blame, however many they are."""
    for module in (exclusion, invariants):
        patch.setattr(module, "suspects_itself", lambda *_: False)


@schedule("L5", "no warning says", the_am_is_beyond_suspicion, containers=3, partitions=3)
def the_am_s_own_network_fails(scene: Scene) -> None:
    """The AM's switch drops everything from all three hosts for a lease and more, then works again.

    That all fell silent at once is to be said; and all must come back to where they were.
    """
    attempt = scene.working()
    late = scene.hosts.launchers[1]
    late.stop()
    scene.run(300)
    late.go_on()
    scene.run(1000)
    scene.world.links.cut = {(h, "am") for h in "abc"} | {("am", h) for h in "abc"}
    scene.run(LEASE_MS + 3 * MARGIN_MS)
    scene.world.links.mend()
    scene.until(lambda: scene.started() == 6, "all have started again")
    scene.require("at once" in str(attempt.status()), "no warning says that the AM may be at fault")


def a_keeper_sees_no_rank(patch: pytest.MonkeyPatch) -> None:
    """Neither keeper nor driver looks which attempt leads; an answer of Kafka is enough."""

    def look(stream: CoordinatorStreamStore, guard: RenewalGuard, _rank: Rank) -> None:
        sent_ms = clocks.boot_ms()
        stream.catch_up()
        guard.fetched_ms = sent_ms

    patch.setattr(lease_keeper, "look", look)
    unwatched(patch)


@schedule("L2", "0@1 on a still ran", a_keeper_sees_no_rank)
def an_orphan_s_keeper_is_heard_by_everybody(scene: Scene) -> None:
    """The NodeManager of attempt 1 dies: its AM reaches Kafka and its containers as before.

    Attempt 2 waits G + L + M, and relies on the old keeper to have seen its rank by then.
    """
    scene.working()
    scene.attempt(attempt=2, host="am2")
    scene.child("0@2")


# --- schedules of C1-C6: a launcher and its child, when one of them stands still or is cut off


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

    def sentence(_launcher: launcher.Launcher, child: RunningChild) -> None:
        child.process.signal(signal.SIGKILL)

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
