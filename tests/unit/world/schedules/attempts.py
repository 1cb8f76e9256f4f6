"""Schedules of A1-A4: AM attempts and drivers that come late, hang, or are left over."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from homeport.appmaster.attempt.inherited import HoldBack, Unheard
from homeport.appmaster.attempt.supervision import Vitals
from homeport.appmaster.driver import coordinator_stream_client as stream_desk
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.job_model import takeover
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, ProcessorEpoch, Rank
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.model.incarnation import am_transactional_id
from tests.unit.world import am
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.world import ISOLATION_MS, LEASE_MS, MARGIN_MS

LEASE_KEY = "cluster-manager.container.lease.ms"
ISOLATION_KEY = "job.coordinator.isolation.max.ms"


class NoRanks(EpochManager):
    """Never shows the rank of an AM attempt."""

    def read_am_epoch(self) -> AmEpoch | None:
        """There seems to be none."""
        return None


def unwatched(patch: pytest.MonkeyPatch) -> None:
    """A driver that acts looks for no higher rank and marks no audit, which would end it."""

    async def audited(_client: CoordinatorStreamClient, _offset: int) -> bool:
        return False

    patch.setattr(stream_desk, "EpochManager", NoRanks)
    patch.setattr(CoordinatorStreamClient, "audited", audited)


def fenced_before_written(patch: pytest.MonkeyPatch) -> None:
    """``take_rank`` initialises the lower ids first, and then writes its rank."""

    def take_rank(stream: CoordinatorStream, rank: Rank, fence: Callable[[Rank], None]) -> None:
        epochs = EpochManager(stream)
        lower = takeover._lower_ranks(epochs, rank)
        for other in lower:
            fence(other)
        epochs.write_am_epoch(AmEpoch(rank, lower))
        stream.catch_up()
        takeover._lower_ranks(epochs, rank)
        epochs.write_am_epoch(AmEpoch(rank))
        stream.catch_up()

    patch.setattr(takeover, "take_rank", take_rank)
    unwatched(patch)


@schedule("A2", "two drivers act", fenced_before_written)
def an_orphan_restarts_while_the_next_attempt_takes_over(scene: Scene) -> None:
    """The NodeManager of attempt 1 dies; its AM lives on, and YARN begins attempt 2.

    Attempt 2 stops for a moment right after it has fenced attempt 1. The orphan's driver is
    restarted in that moment, while its keeper stands still: its init comes late, and Kafka accepts
    it. Only the record that attempt 2 wrote before its fence shows the orphan that it is over. Then
    the container dies, and any process that believes to be the driver permits the next one.
    """
    old = scene.working()
    new = scene.attempt(attempt=2, host="am2")
    scene.driver_of(new)
    fencing = f"init homeport.j.1.am.1.{old.rank.application}.1 answered"
    new.driver.stop_at(fencing)
    scene.until(lambda: new.driver.is_stopped, "attempt 2 has fenced attempt 1")
    old.keeper.stop()
    old.driver.kill()
    scene.run(1000)
    new.driver.go_on()
    scene.run(1000)
    scene.hosts.child("0@1").kill()
    scene.run(4000)


# The number of the attempt decides first which of two is newer.
@schedule("A1", "0@2 has started")
@without(Rank, "_order", lambda rank: (rank.attempt, rank.submission, rank.application))
def a_job_is_submitted_again_after_a_second_attempt(scene: Scene) -> None:
    """The first submission got as far as attempt 2 when its machine was lost for good.

    The job is submitted again: its attempt 1 is the newer one, and must not take the rank it finds
    for that of a successor.
    """
    old = scene.attempt(submission=1, attempt=2)
    scene.until_started("0@1")
    for process in (old.supervisor, *scene.hosts.of("a")):
        process.kill()
    scene.attempt(submission=2, attempt=1, host="am2")
    scene.until_started("0@2")
    scene.work()


# The supervisor starts again what has ended, and nothing else.
@schedule("A3", "0@2 has started")
@without(Vitals, "is_hung", lambda *_: False)
def a_driver_stands_still_and_a_container_dies(scene: Scene) -> None:
    """The driver is stopped for good, neither dead nor alive; then its container is killed."""
    attempt = scene.working()
    attempt.driver.stop()
    scene.hosts.child("0@1").kill()
    scene.until_started("0@2", 20_000)
    scene.work()


# Beats do not come from a thread of their own: a driver that waits for Kafka gives none.
@schedule("A3", "the driver was killed at its work")
@without(am.Heartbeat, "start", lambda beats: beats._child.beaten())
def a_replay_takes_longer_than_a_hang(scene: Scene) -> None:
    """A new driver beats, and then Kafka takes eight seconds until the stream can be read."""
    attempt = scene.attempt()
    driver = scene.driver_of(attempt)
    scene.world.network.cut.add(driver.name)
    scene.run(8000)
    scene.world.network.cut.clear()
    scene.require(driver.is_alive, "the driver was killed at its work")
    scene.until_started("0@1")


# A new attempt places at once.
@schedule("A4", "0@1 on a still ran")
@without(HoldBack, "is_over", lambda *_: True)
def the_next_attempt_begins_while_the_old_keeper_renews(scene: Scene) -> None:
    """The AM's machine loses the brokers and the ResourceManager: YARN begins attempt 2.

    For G the old keeper renews on, as it must through a broker's restart; then leases run out. The
    new attempt learns of the stop of 0@1 only by waiting: it reaches no process on that side.
    """
    scene.working()
    scene.world.network.cut.add("am")
    scene.run(LEASE_MS // 3)
    scene.attempt(attempt=2, host="am2")
    scene.child("0@2")
    scene.judge()
    scene.until_started("0@2")
    scene.work()


def all_are_waited_for_by_the_own_configuration(patch: pytest.MonkeyPatch) -> None:
    """What the records say of how long an incarnation goes on is not read."""
    patch.setattr(ProcessorEpoch, "goes_on_ms", lambda _, unknown_ms: unknown_ms)


def _nobody_reaches_the_old_attempt(scene: Scene) -> None:
    """0@1 runs on ``a``; it, the keeper and the driver of attempt 1 are out of reach."""
    scene.working()
    for host in ("am", "a"):
        scene.world.network.cut.add(host)
        scene.cluster.lose_node_manager(host)


@schedule("A4", "0@1 on a still ran", all_are_waited_for_by_the_own_configuration)
def a_job_is_submitted_with_a_shorter_lease(scene: Scene) -> None:
    """The old attempt's machine and the container's are cut off, and the job is submitted again.

    The new configuration has a shorter lease. The old keeper renews by its own until it has not
    heard of Kafka for G, so the new attempt waits by the old numbers.
    """
    _nobody_reaches_the_old_attempt(scene)
    scene.world.config = scene.world.config.merged({LEASE_KEY: "1000"})
    scene.attempt(submission=2, host="am2")
    scene.until(lambda: scene.has_fact("driver:permit-granted", "0@2"), "0@2 is permitted")
    scene.run(LEASE_MS)


@schedule("A4", "0@1 on a still ran", all_are_waited_for_by_the_own_configuration)
def an_attempt_with_a_short_limit_dies_before_it_has_waited(scene: Scene) -> None:
    """Attempt 2 has a short lease and isolation limit, takes its rank, and is killed.

    Attempt 3 finds the rank of attempt 2 in the stream, and a container that attempt 1 permitted.
    """
    _nobody_reaches_the_old_attempt(scene)
    scene.world.config = scene.world.config.merged({LEASE_KEY: "1000", ISOLATION_KEY: "500"})
    before = len(scene.world.facts_of("driver:model-change"))
    second = scene.attempt(submission=2, host="am2")
    scene.until(
        lambda: len(scene.world.facts_of("driver:model-change")) > before, "attempt 2 has its rank"
    )
    second.supervisor.kill()
    scene.attempt(submission=3, host="am3")
    scene.until(lambda: scene.has_fact("driver:permit-granted", "0@2"), "0@2 is permitted")
    scene.run(LEASE_MS)


# ``set-stopped`` is written, and waited for all the same
@schedule("A4", "0@2 has started")
@without(StopManager, "read", lambda _: {})
def a_launcher_has_told_kafka_of_the_stop(scene: Scene) -> None:
    """The AM's machine dies, and YARN ends the containers of its attempt with SIGTERM.

    The launcher reaches no driver for its report and has the stop written to Kafka. The next
    attempt knows that no container runs, and must not wait for G + L + M.
    """
    attempt = scene.working()
    attempt.supervisor.kill()
    for launcher in scene.hosts.launchers:
        launcher.terminate()
    scene.until(lambda: not scene.hosts.of("a"), "all of it has ended")
    scene.attempt(attempt=2, host="am2")
    patience_ms = ISOLATION_MS + LEASE_MS
    scene.until_started("0@2", patience_ms)


# A new driver ends no container but those whose launchers it has heard itself.
@schedule("A3", "the next one runs")
@without(Unheard, "overdue", lambda *_: ())
def a_driver_dies_while_a_launcher_and_its_child_stand_still(scene: Scene) -> None:
    """Launcher and child of 0@1 are stopped for good, and then the driver dies.

    The next driver learns that 0@1 has lost its lease, and of no launcher that it ran below. Unless
    it has that container ended, the frozen child holds the lock of its store against all that
    come home, until the retry keys give up.
    """
    attempt = scene.working()
    for process in scene.hosts.of("a"):
        process.stop()
    attempt.driver.kill()
    newer = {f"0@{epoch}" for epoch in range(2, 9)}

    def has_one_started() -> bool:
        return any(scene.has_fact("container:started", who) for who in newer)

    scene.until(has_one_started, "the next one runs", 30_000)
    scene.work()


def each_start_has_an_id_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """A driver writes under an id that no other start of its rank has had."""
    starts = itertools.count(1)

    def id_of(name: str, job_id: str, submission: int, application: str, attempt: int) -> str:
        own = am_transactional_id(name, job_id, submission, application, attempt)
        return f"{own}.{next(starts)}"

    patch.setattr(takeover, "am_transactional_id", id_of)


@schedule("A1", "0@1 has started", each_start_has_an_id_of_its_own)
def a_driver_dies_with_an_open_transaction(scene: Scene) -> None:
    """The first permit is in the log and its transaction still open when the driver is killed.

    The next driver of the same rank takes the same id, which ends what was open. Under another one
    it would wait for the transaction's time-out, and for the broker to look for it.
    """
    attempt = scene.attempt()
    scene.until(lambda: bool(scene.hosts.launchers), "a launcher comes")
    scene.halt(attempt.driver, "commit homeport.j.1.am")
    attempt.driver.kill()
    scene.until_started("0@1", 8000)


# The supervisor starts again whatever has ended.
@schedule("A2", "of attempt 1 still lives")
@without(am, "is_the_end", lambda *_, **__: False)
def an_orphan_finds_a_higher_rank(scene: Scene) -> None:
    """The NodeManager of attempt 1 dies, its AM lives on; attempt 2 takes the job over.

    The orphan must end for good, supervisor and keeper included.
    """
    old = scene.working()
    scene.attempt(attempt=2, host="am2")
    scene.run(5000)
    living = [p.name for p in scene.clock.processes if p.is_alive and p.host == old.host]
    scene.require(not living, f"{', '.join(living)} of attempt 1 still lives")


# --- a schedule of A4: the margin M is part of what a new attempt waits


READ = "ask the end of __samza_coordinator_j_1 answered"


def waits_without_m(patch: pytest.MonkeyPatch) -> None:
    """A new attempt waits for G + L."""
    is_over = HoldBack.is_over
    patch.setattr(HoldBack, "is_over", lambda held, now_ms: is_over(held, now_ms + MARGIN_MS))


@schedule("A4", "0@1 on a still ran", waits_without_m)
def a_host_s_clock_misses_less_than_m(scene: Scene) -> None:
    """The machine of attempt 1 loses the brokers and the ResourceManager, right after a look there.

    Its keeper renews for G. In the last lease the hypervisor of host a holds it for half a second,
    which its clock misses: so much longer than G + L after that look 0@1 runs.
    """
    old = scene.working()
    new = scene.attempt(attempt=2, host="am2")
    scene.driver_of(new)
    scene.halt(new.driver, "send to __samza_coordinator_j_1")
    scene.run(500)  # so that the last renewal comes shortly before the end of G
    scene.halt(old.keeper, READ)
    scene.world.network.cut.add("am")
    old.keeper.go_on()
    new.driver.go_on()
    scene.run(ISOLATION_MS)
    scene.hosts.freeze("a")
    scene.run(MARGIN_MS - 50)
    scene.hosts.thaw("a")
    scene.until(lambda: scene.hosts.has_child("0@2"), "0@2 begins", LEASE_MS + 2 * MARGIN_MS)
