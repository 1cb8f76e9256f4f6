"""Schedules of L1-L5: which process may say that a lease is over, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

import pytest

from homeport.appmaster.allocation import exclusion, invariants
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.lease import lease_table
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.appmaster.programs import lease_keeper
from homeport.job_coordinator import clocks
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.http.messages import LeaseAnswer
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.attempts import unwatched
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
