"""Schedules of S1-S5 and S8: what a store's directory and its changelog say, and what not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from homeport.container.api import MessageCollector
from homeport.container.incarnation import start_up
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress import restore
from homeport.container.progress.checkpoint import CheckpointKey, encode_key
from homeport.container.progress.refusal import Refusal
from homeport.container.progress.restore import LocalState, OffsetRange, RestorePlan
from homeport.container.progress.store_meta import StoreMeta
from homeport.container.progress.transaction_plan import StoreId
from homeport.container.storage import directory_lock, store_restore
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.task_store import Position, StoreFlush, TaskStore
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.model.ids import TaskName
from tests.unit.world.clock import Process
from tests.unit.world.containers import Count
from tests.unit.world.judges import committed, counted
from tests.unit.world.kafka import Writer
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import Scene
from tests.unit.world.world import CHECKPOINTS


def _open_on(scene: Scene, host: str) -> list[Process]:
    """The processes that live there and have a store open."""
    return [p for p in scene.hosts.of(host) if p in scene.hosts.stores]


# -- S1


def writes_the_position_by_itself(patch: pytest.MonkeyPatch) -> None:
    """The position goes into the store first, and the values after it."""

    def apply(item: TaskStore, positions: Mapping[Position, int]) -> None:
        if item.overlay is None or not item.overlay.sealed():
            return
        item._write({}, positions["counts", item.task.changelog_partition])
        item.opened().write(item.overlay.sealed(), None)
        item.overlay.release()

    patch.setattr(TaskStore, "apply", apply)


@schedule("S1", "something was lost or applied twice", writes_the_position_by_itself)
def a_store_is_flushed_while_it_is_being_written(scene: Scene) -> None:
    """RocksDB flushes whenever it likes; then the container is killed, and comes home."""
    scene.working()
    scene.run(100)
    child = scene.hosts.child("0@1")
    child.stop_at("write to counts", 2)
    scene.produce(2)
    scene.run(1500)
    scene.hosts.stores[child][-1].flush()
    child.kill()
    scene.work()


def offset_is_the_truth(patch: pytest.MonkeyPatch) -> None:
    """OFFSET is written before the flush, and at a start it is what counts."""
    plan = restore.plan_restore

    def run(flush: StoreFlush, *_: object) -> None:
        item = flush.store
        if item.position is not None and item.config.changelog is not None:
            item.directory.write_offset(item.position)
            item.opened().flush()
            item.flushed_offset = item.position

    def plan_by_offset(local: LocalState, *rest: Any) -> RestorePlan:  # noqa: ANN401 - as the product's
        return plan(replace(local, position=local.offset_file), *rest)

    patch.setattr(StoreFlush, "run", run)
    patch.setattr(store_restore, "plan_restore", plan_by_offset)


@schedule("S1", "something was lost or applied twice", offset_is_the_truth)
def a_container_is_killed_before_a_flush(scene: Scene) -> None:
    """What RocksDB had in memory is gone; the container comes home."""
    scene.working()
    child = scene.hosts.child("0@1")
    scene.work(2)
    scene.halt(child, "flush counts")
    child.kill()
    scene.work()


# -- S2 and S3


def _move(scene: Scene, child: str, host: str) -> None:
    """The machine of the child dies with all that runs there; its job goes on at ``host``."""
    gone = scene.hosts.child(child).host
    scene.only(host)
    scene.kill_all(gone)


def _its_key_is_deleted(scene: Scene) -> None:
    """The task deletes the key of the next record; later Kafka forgets the deletion, too."""
    at_once, broker = Count.process_batch, scene.world.broker

    def forget(task: Count, table: pa.Table, _: MessageCollector) -> None:
        for key in table.column("key").to_pylist():
            task._counts.delete(key)

    scene.world.patch.setattr(Count, "process_batch", forget)
    scene.produce()
    scene.run(1500)
    scene.world.patch.setattr(Count, "process_batch", at_once)
    scene.run(broker.delete_retention_ms)
    log = broker.partition(("counts", 0))
    log.compacted |= {record.offset for record in log.records if record.key == b"k"}


def _counts_from_nothing(scene: Scene) -> None:
    scene.produce()
    scene.run(1500)
    *_, last = committed(scene.world.broker.partition(("out", 0)))
    scene.require(last.record.value == b"1", "a key that was deleted is back")


# However long a store was away, its position counts.
@schedule("S2", "a key that was deleted is back", is_judged=False)
@without(restore, "stale_fault", lambda *_: None)
def a_deletion_is_compacted_away_while_a_store_is_elsewhere(scene: Scene) -> None:
    """Host a dies; the key is deleted on host b, and later Kafka forgets the deletion, too.

    Back on host a, the store that was left there has the key still.
    """
    scene.world.broker.delete_retention_ms = 3000
    scene.working()
    scene.run(100)
    _move(scene, "0@1", "b")
    scene.until_started("0@2")
    _its_key_is_deleted(scene)
    _move(scene, "0@2", "a")
    scene.until_started("0@3")
    _counts_from_nothing(scene)


# Offsets are compared, whatever topic they are of.
@schedule("S3", "something was lost or applied twice")
@without(restore, "meta_fault", lambda *_: None)
def topics_are_made_anew_under_a_store(scene: Scene) -> None:
    """They have grown beyond the position of the store on host a when the task comes home."""
    scene.working()
    scene.run(100)
    scene.kill_all("a")
    scene.only()
    for topic in ("in", "out", "counts", CHECKPOINTS):
        scene.world.broker.create(topic)
    # Of a job whose stream does not say which topics hold its state, as one of before that record.
    for gone in (
        wire.tombstone(MessageType.SET_CHANGELOG_TOPIC, "kafka.counts"),
        wire.tombstone(MessageType.SET_CHECKPOINT_TOPIC, f"kafka.{CHECKPOINTS}"),
        wire.tombstone(MessageType.SET_INPUT_TOPIC, "kafka.in"),
    ):
        scene.world.write(gone, "homeport")
    scene.produced = 0
    scene.only("b")
    for _ in range(3):
        scene.produce(2, b"l")
        scene.until_counted()
    _move(scene, "0@2", "a")
    scene.work(2)


def trusts_a_position_beyond_the_end(patch: pytest.MonkeyPatch) -> None:
    """A store that is ahead of its changelog has nothing to read, and goes on."""
    position = restore._position

    def without_the_end(
        local: LocalState, changelog: OffsetRange, expected: StoreMeta
    ) -> int | Refusal:
        head = max(changelog.head, (local.position or 0) + 1)
        return position(local, replace(changelog, head=head), expected)

    patch.setattr(restore, "_position", without_the_end)


@schedule("S3", "something was lost or applied twice", trusts_a_position_beyond_the_end)
def kafka_has_lost_its_last_records(scene: Scene) -> None:
    """The topics are the same, and shorter than the store knew them. What Kafka says is true."""
    scene.working()
    scene.run(100)
    scene.kill_all("a")
    for topic in ("out", "counts", CHECKPOINTS):
        scene.world.broker.partition((topic, 0)).records.clear()
    scene.until_counted()


# -- S5


def takes_no_lock(patch: pytest.MonkeyPatch) -> None:
    """Any process may open a directory."""
    unlocked = SimpleNamespace(LOCK_EX=0, LOCK_NB=0, flock=lambda *_: None)
    patch.setattr(directory_lock, "fcntl", unlocked)


@schedule("S5", "two have the store of task 0 open", takes_no_lock)
def a_launcher_and_its_child_stand_still_at_home(scene: Scene) -> None:
    """Their lease is over and 0@2 comes home, where 0@1 has the store open still.

    The NodeManager is away while the lease runs out, and kills no process; then it is back.
    """
    scene.working()
    child = scene.hosts.child("0@1")
    parent = scene.hosts.launcher_of(child)
    scene.only()
    child.stop()
    parent.stop()
    scene.until_revoked("0@1")
    scene.run(1000)
    scene.only("a")
    scene.child("0@2")
    scene.run(50)
    scene.require(len(_open_on(scene, "a")) < 2, "two have the store of task 0 open")
    parent.kill()
    scene.work()


# -- S8

_GROUPER = "org.apache.samza.container.grouper.stream.GroupByPartitionFactory"


def _samza_has_run(scene: Scene, committed: int, processed: int) -> None:
    """So many records were counted by a Samza job, of which its last commit knows the first ones.

    It has sent its outputs up to there.
    """
    scene.produce(processed)
    broker = scene.world.broker
    for count in range(1, processed + 1):
        value = b"%d" % count
        broker.append(("counts", 0), Writer(None), b"k", value, 0)
        if count <= committed:
            broker.append(("out", 0), Writer(None), b"k", value, 0)
        if count == committed:
            last = str(committed - 1)
            place = {"system": "kafka", "partition": "0"}
            entries = {
                "in": {**place, "stream": "in", "offset": last},
                "counts": {**place, "stream": "counts", "offset": f"17-1:{last}"},
            }
            key = encode_key(CheckpointKey(_GROUPER, TaskName("Partition 0")))
            value = json.dumps(entries).encode()
            broker.append((CHECKPOINTS, 0), Writer(None), key, value, 0)


# What a checkpoint of Samza's says of a changelog does not count.
@schedule("S8", "something was lost or applied twice")
@without(start_up, "read_trims", lambda *_: ())
def a_samza_job_was_killed_after_its_last_commit(scene: Scene) -> None:
    """Its input goes on behind the commit, its changelog behind that; our first starts die, too.

    The first one dies before its trim is committed, the second one before its store has it.
    """
    _samza_has_run(scene, 4, 6)
    scene.attempt()
    for name, moment in (("0@1", ""), ("0@2", ".processor.0.2 answered")):
        child = scene.child(name)
        scene.halt(child, f"commit homeport.j.1{moment}")
        child.kill()
    scene.until_counted()
    scene.work(2)


# --- schedules of S2 and S3: when a store stood at the head, and a changelog that goes back


def dated_after_the_commit(patch: pytest.MonkeyPatch) -> None:
    """A store is said to have stood at the head when it heard that its commit is decided."""
    apply = ContainerStorage.apply

    def apply_and_date(
        storage: ContainerStorage, store: StoreId, positions: Mapping[Position, int]
    ) -> None:
        apply(storage, store, positions)
        storage._of(store).at_head = storage.clocks()

    patch.setattr(ContainerStorage, "apply", apply_and_date)


COMMIT_MS = 500
OFTEN = {"task.commit.ms": str(COMMIT_MS)}


@schedule(
    "S2", "a key that was deleted is back", dated_after_the_commit, config=OFTEN, is_judged=False
)
def the_answer_to_a_commit_is_heard_long_after_it(scene: Scene) -> None:
    """The machine of 0@1 stands still over the answer to a commit for longer than deletes are kept.

    Meanwhile 0@2 deletes the key, and Kafka forgets the deletion. Then 0@1 goes on for a moment: it
    hears that it has committed, and writes down its store. The task comes home to that store.
    """
    scene.world.broker.delete_retention_ms = 8000
    scene.working()
    scene.run(100)
    child = scene.hosts.child("0@1")
    scene.halt(child, "commit homeport.j.1.processor.0.1 answered", 1)
    scene.only("b")
    scene.hosts.freeze("a")
    scene.until_started("0@2")
    _its_key_is_deleted(scene)
    scene.world.links.cut.add((scene.hosts.launcher_of(child).name, "*"))
    child.stop_at("init")
    scene.hosts.thaw("a")
    scene.run(1000)
    scene.kill_all("a", "b")
    scene.only("a")
    scene.until_started("0@3")
    _counts_from_nothing(scene)


# A transaction is committed although its changelog has gone back.
@schedule("S3", "something was lost or applied twice", config=OFTEN)
@without(TransactionalProducer, "_require_progress", lambda _: None)
def kafka_loses_its_last_records_under_a_container_that_works(scene: Scene) -> None:
    """The topics are the same and shorter, and 0@1 has records in its store that they lack.

    What it commits next must not be: the checkpoint would name input whose state is nowhere.
    """
    scene.working()
    for _ in range(3):
        scene.work()
    scene.run(2 * COMMIT_MS)
    for topic in ("out", "counts", CHECKPOINTS):
        scene.world.broker.partition((topic, 0)).records.clear()
    scene.produce()
    scene.until(lambda: counted(scene.world) > 0, "something is counted")
    scene.run(1000)
    scene.judge()
    scene.require(counted(scene.world) == scene.produced, "not all was counted once more")
