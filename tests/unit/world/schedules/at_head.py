"""Schedules of S2 and S3: when a store stood at the head, and a changelog that goes back."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from homeport.container.api import MessageCollector
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.transaction_plan import StoreId
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.task_store import Position
from tests.unit.world.containers import Count
from tests.unit.world.judges import committed, counted
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene
from tests.unit.world.world import CHECKPOINTS


def dated_after_the_commit(patch: pytest.MonkeyPatch) -> None:
    """A store is said to have stood at the head when it heard that its commit is decided."""
    apply = ContainerStorage.apply

    def apply_and_date(
        storage: ContainerStorage, store: StoreId, positions: Mapping[Position, int]
    ) -> None:
        apply(storage, store, positions)
        storage._of(store).at_head = storage.clocks()

    patch.setattr(ContainerStorage, "apply", apply_and_date)


@schedule("S2", dated_after_the_commit, "a key that was deleted is back", is_judged=False)
def the_answer_to_a_commit_is_heard_long_after_it(scene: Scene) -> None:
    """The machine of 0@1 stands still over the answer to a commit for longer than deletes are kept.

    Meanwhile 0@2 deletes the key, and Kafka forgets the deletion. Then 0@1 goes on for a moment: it
    hears that it has committed, and writes down its store. The task comes home to that store.
    """
    retention_ms = scene.world.broker.delete_retention_ms = 8000
    at_once = Count.process_batch

    def forget(task: Count, table: pa.Table, _: MessageCollector) -> None:
        for key in table.column("key").to_pylist():
            task._counts.delete(key)

    scene.working()
    scene.run(100)
    child = scene.hosts.child("0@1")
    scene.halt(child, "commit homeport.j.1.processor.0.1 answered", 1)
    scene.only("b")
    scene.hosts.freeze("a")
    scene.until_started("0@2")
    scene.world.patch.setattr(Count, "process_batch", forget)
    scene.produce()
    scene.run(1500)
    scene.world.patch.setattr(Count, "process_batch", at_once)
    scene.run(retention_ms)
    log = scene.world.broker.partition(("counts", 0))
    log.compacted |= {record.offset for record in log.records if record.key == b"k"}
    scene.world.links.cut.add((scene.hosts.launcher_of(child).name, "*"))
    child.stop_at("init")
    scene.hosts.thaw("a")
    scene.run(1000)
    scene.kill_all("a", "b")
    scene.only("a")
    scene.until_started("0@3")
    scene.produce()
    scene.run(1500)
    *_, last = committed(scene.world.broker.partition(("out", 0)))
    scene.require(last.record.value == b"1", "a key that was deleted is back")


def commits_wherever_the_offsets_are(patch: pytest.MonkeyPatch) -> None:
    """A transaction is committed although its changelog has gone back."""
    patch.setattr(TransactionalProducer, "_require_progress", lambda _: None)


COMMIT_MS = 500


@schedule(
    "S3",
    commits_wherever_the_offsets_are,
    "something was lost or applied twice",
    config={"task.commit.ms": str(COMMIT_MS)},
)
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
