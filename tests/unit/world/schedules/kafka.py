"""Schedules of K1-K4: reading to the head, and writing so that no record is hidden."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, IsolationLevel

from homeport.appmaster.lease.lease_table import RenewalGuard
from homeport.appmaster.programs import lease_keeper
from homeport.config.config import Config
from homeport.config.settings import sections
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation import start_up
from homeport.container.kafka.log_reader import LogReader
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.record_writer import TransactionalWriter
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model import incarnation
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.judges import counted
from tests.unit.world.kafka import Broker, FencedByBrokerError
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.attempts import unwatched
from tests.unit.world.world import ISOLATION_MS, LEASE_MS, MARGIN_MS


def head_of_what_is_stable(patch: pytest.MonkeyPatch) -> None:
    """The head of the coordinator stream is the one that a reader of committed records sees."""
    end_offset = TopicAdmin.end_offset

    def head(admin: TopicAdmin, name: str, partition: int) -> int:
        return end_offset(admin, name, partition, IsolationLevel.READ_COMMITTED)

    patch.setattr(TopicAdmin, "end_offset", head)
    unwatched(patch)


@schedule("K1", "two drivers act", head_of_what_is_stable)
def the_markers_of_a_commit_come_late(scene: Scene) -> None:
    """Attempt 2 has written its rank: acknowledged, but the broker is slow with the markers.

    The orphaned driver of attempt 1 is restarted in that moment and reads to the head. The record
    of the higher rank is in the log, before a last stable offset that does not show it yet.
    """
    old = scene.working()
    old.keeper.stop()
    new = scene.attempt(attempt=2, host="am2")
    scene.until(lambda: new.children[1].process is not None, "attempt 2 has a driver")
    scene.world.broker.marker_delay_ms = 800
    new.driver.stop_at(f"init homeport.j.1.am.1.{old.rank.application}.1 answered")
    scene.until(lambda: new.driver.is_stopped, "attempt 2 has fenced attempt 1")
    old.driver.kill()
    scene.run(1000)
    scene.world.broker.marker_delay_ms = 1
    new.driver.go_on()
    scene.run(1000)
    scene.hosts.child("0@1").kill()
    scene.run(4000)


def positions_prove_the_end(patch: pytest.MonkeyPatch) -> None:
    """A catch-up waits until a record before the head has come; an end event does not count."""

    def take_some(
        store: CoordinatorStreamStore, consumer: Consumer, found: list[CoordinatorStreamMessage]
    ) -> None:
        for record in consumer.consume(1, 0.2):
            if record.error() is None:
                store._end_offset = max(store._end_offset, (record.offset() or 0) + 1)
                message = store._state.take(record.offset(), record.key(), record.value())
                if message is not None:
                    found.append(message)
            else:
                store._end_offset = max(store._end_offset, 0)

    patch.setattr(CoordinatorStreamStore, "_take_some", take_some)


@schedule("K1", "all have started", positions_prove_the_end)
def the_last_offset_before_the_head_is_a_marker(scene: Scene) -> None:
    """A driver writes in transactions, so the stream ends with a marker that no reader is given.

    A reader that waits for the record before the head waits for ever.
    """
    scene.working()


def containers_write_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """A container writes its locality in a transaction of an id of its own."""
    open_plainly = start_up.open_coordinator_stream

    def open_stream(job: ContainerJob) -> CoordinatorStreamStore:
        stream = open_plainly(job)
        id_ = f"homeport.j.1.locality.{job.tasks[0].task_name}"
        stream._writer = TransactionalWriter(job.transaction_system, stream._topic, 30.0, id_)
        return stream

    patch.setattr(start_up, "open_coordinator_stream", open_stream)


@schedule("K2", "1@1 has started", containers_write_in_transactions, containers=2, partitions=2)
def a_container_freezes_while_it_writes_its_locality(scene: Scene) -> None:
    """Container 0 freezes when its locality is in the log and not yet acknowledged.

    Container 1 begins after that and reads the stream to its head. An open transaction of the
    frozen one would hide the end until its time-out and the broker's next sweep.
    """
    scene.attempt()
    scene.until(lambda: scene.hosts.has_child("0@1"), "0@1 begins")
    scene.hosts.child("0@1").stop_at("send to __samza_coordinator_j_1 answered")
    scene.until(lambda: scene.hosts.has_child("1@1"), "1@1 begins")
    scene.hosts.child("1@1").stop_at("init homeport.j.1.processor.1.1")
    scene.until(lambda: scene.hosts.child("0@1").is_stopped, "0@1 is frozen")
    scene.hosts.child("1@1").go_on()
    scene.until(lambda: scene.has_fact("container:started", "1@1"), "1@1 has started", 1500)


# The parts of an id are joined as they are.
@schedule("K3", "one job has fenced the other")
@without(incarnation, "_escaped", lambda part: part)
def two_jobs_whose_names_and_ids_run_together(scene: Scene) -> None:
    """Jobs ("a", "1.0") and ("a.1", "0") are begun one after the other on the same brokers."""
    broker = Broker(scene.clock)
    broker.create("out")
    own = Incarnation(ProcessorId("0"), 1)
    first = broker.init(incarnation.transactional_id("a", "1.0", own))
    broker.init(incarnation.transactional_id("a.1", "0", own))
    try:
        broker.append(("out", 0), first, b"k", b"v", 1000)
        is_fenced = False
    except FencedByBrokerError:
        is_fenced = True
    scene.require(not is_fenced, "one job has fenced the other")


# A job's folder is its name and its id, with a hyphen in between.
@schedule("K3", "two jobs keep their state in one folder")
@without(sections, "job_folder", lambda name, job_id: f"{name}-{job_id}")
def two_jobs_on_one_host(scene: Scene) -> None:
    """Jobs ("a", "1-0") and ("a-1", "0") keep their state below one folder of the same host."""
    folders = set()
    for name, job_id in (("a", "1-0"), ("a-1", "0")):
        config = Config({**scene.world.config, "job.name": name, "job.id": job_id})
        folders.add(sections.JobConfig.of(config).directory_name)
    scene.require(len(folders) == 2, "two jobs keep their state in one folder")


def only_news_are_an_answer(patch: pytest.MonkeyPatch) -> None:
    """The keeper counts a catch-up only where it brought records."""
    look_well = lease_keeper.look

    def look(stream: CoordinatorStreamStore, guard: RenewalGuard, rank: Rank) -> None:
        known, before_ms = len(stream.catch_up()), guard.fetched_ms
        look_well(stream, guard, rank)
        if before_ms is not None and not known:
            guard.fetched_ms = before_ms

    patch.setattr(lease_keeper, "look", look)


@schedule("K4", "a healthy container was killed", only_news_are_an_answer)
def nothing_happens_for_longer_than_the_isolation_limit(scene: Scene) -> None:
    """All is well and no process writes to the coordinator stream for G and a lease.

    Each of the keeper's fetches is answered with nothing.
    """
    scene.working()
    child = scene.hosts.child("0@1")
    scene.run(ISOLATION_MS + LEASE_MS + 2 * MARGIN_MS)
    scene.require(child.is_alive, "a healthy container was killed")


def any_end_is_the_head(patch: pytest.MonkeyPatch) -> None:
    """A container takes every end of partition for the head, also one before it."""
    patch.setattr(LogReader, "_is_over", lambda *_: True)


@schedule(
    "K1", "was counted 6 times for 3 records", any_end_is_the_head, containers=2, partitions=2
)
def an_undecided_transaction_lies_before_a_checkpoint(scene: Scene) -> None:
    """1@1 stands still with its checkpoint sent and undecided; 0@1 commits one after it, and dies.

    0@2 reads the checkpoints. It gets an end of the partition from Kafka where the records of 1@1
    begin; its own newest checkpoint lies behind them.
    """
    scene.attempt()
    scene.until(lambda: scene.started() == 2, "both have started")
    sleeper = scene.hosts.child("1@1")
    sleeper.stop_at("commit homeport.j.1.processor.1.1")
    scene.produce(2, b"l", partition=1)
    scene.until(lambda: sleeper.is_stopped, "1@1 has sent all")
    scene.produce(3, b"k", partition=0)
    scene.until(lambda: counted(scene.world) == 3, "0@1 has counted its own")
    scene.hosts.child("0@1").kill()
    scene.run(1000)
    sleeper.go_on()
    scene.until(lambda: scene.has_fact("container:started", "0@2"), "0@2 has started")
    scene.run(1000)
    scene.require(counted(scene.world) >= scene.produced, "not all was counted")
