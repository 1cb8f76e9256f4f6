"""The order of the steps that end a transaction, and that flush a store."""

from __future__ import annotations

import pyarrow as pa
import pytest

from homeport.container.progress import checkpoint
from homeport.container.progress.transaction_plan import (
    FlushAction,
    FlushStep,
    Send,
    SendColumns,
    SendPairs,
    Sends,
    Step,
    StoreId,
    StoreProgress,
    checkpoint_sends,
    flush_plan,
    number_of,
    transaction_plan,
)
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

T0, T1 = TaskName("Partition 0"), TaskName("Partition 1")
LOGGED, SCRATCH = StoreId("s", T0), StoreId("t", T0)


def _names(plan: tuple[Step | FlushStep, ...]) -> list[str]:
    return [str(step) for step in plan]


def test_all_is_sent_at_the_end_and_checkpoints_last() -> None:
    """L12: outputs, changelogs, checkpoints (safety I5), then Kafka commits, then stores change."""
    plan = transaction_plan([LOGGED, SCRATCH], [LOGGED], outputs_at_once=False, checkpoints=True)
    assert _names(plan) == [
        "end-tasks",
        "await-broker",
        "record-ending",
        "begin",
        "send-outputs",
        "send-changelog s/Partition 0",
        "send-checkpoints",
        "deliver",
        "commit",
        "record-committed",
        "apply s/Partition 0",
        "apply t/Partition 0",
    ]


def test_outputs_of_their_own_are_settled_before_anything_is_sent() -> None:
    """They are no part of the transaction, and in Kafka before their checkpoint is (safety I8)."""
    plan = transaction_plan([], [], outputs_at_once=True, checkpoints=True)
    assert _names(plan) == [
        "end-tasks",
        "await-broker",
        "settle-outputs",
        "record-ending",
        "begin",
        "send-checkpoints",
        "deliver",
        "commit",
        "record-committed",
    ]


def test_a_checkpoint_is_one_record_per_task() -> None:
    """In the order of the tasks, all into the one partition."""
    processed = {
        T1: {SystemStreamPartition("kafka", "in", 1): 7},
        T0: {SystemStreamPartition("kafka", "in", 0): 3},
    }
    sends = list(checkpoint_sends(processed, "G", "checkpoints"))
    assert [(s.topic, s.partition) for s in sends] == [("checkpoints", 0)] * 2
    assert [b"Partition 0" in (s.key or b"") for s in sends] == [True, False]


def test_a_checkpoint_of_version_2_is_deleted_before_ours() -> None:
    """It goes for tasks that have one: Samza may read it one day."""
    offsets = {SystemStreamPartition("kafka", "in", 0): 3}
    sends = list(checkpoint_sends({T0: offsets, T1: offsets}, "G", "checkpoints", [T1]))
    kinds = [(checkpoint.decode_key(s.key or b""), s.value is None) for s in sends]
    assert [(key.task_name, key.kind, gone) for key, gone in kinds] == [
        (T0, "checkpoint", False),
        (T1, "checkpoint-v2", True),
        (T1, "checkpoint", False),
    ]


def test_a_store_that_moved_is_flushed_and_then_its_files_say_so() -> None:
    """R14: OFFSET is the position before the flush (safety S1); STORE-META is last (safety S2)."""
    progress = StoreProgress(position=7, flushed=5, keeps_meta=True, is_meta_due=False)
    assert flush_plan(LOGGED, progress) == (
        FlushStep(FlushAction.FLUSH, LOGGED),
        FlushStep(FlushAction.WRITE_OFFSET, LOGGED, 7),
        FlushStep(FlushAction.WRITE_OFFSET_V2, LOGGED, 7),
        FlushStep(FlushAction.WRITE_META, LOGGED),
    )
    without = StoreProgress(position=7, flushed=None, keeps_meta=False, is_meta_due=False)
    assert flush_plan(LOGGED, without) == flush_plan(LOGGED, progress)[:3]
    assert progress.has_moved
    assert without.has_moved


@pytest.mark.parametrize(
    ("progress", "steps"),
    [
        (StoreProgress(None, None, keeps_meta=True, is_meta_due=True), []),
        (StoreProgress(7, 7, keeps_meta=True, is_meta_due=False), []),
        (
            StoreProgress(7, 7, keeps_meta=True, is_meta_due=True),
            ["write-STORE-META s/Partition 0"],
        ),
    ],
    ids=["without a position", "nothing new", "still at the head"],
)
def test_a_store_that_has_not_moved_is_left_alone(
    progress: StoreProgress, steps: list[str]
) -> None:
    """But STORE-META says from time to time that it still stands at the head."""
    assert not progress.has_moved
    assert _names(flush_plan(LOGGED, progress)) == steps


def test_sends_are_their_records_in_order() -> None:
    """Whether they are kept one by one, as pairs or as columns."""
    pairs, columns = SendPairs("a", "kafka"), pa.array([b"3", None], pa.large_binary())
    assert not Sends()
    pairs.flat.extend([b"k", b"1", None, None])
    other = Send("a", b"k", b"2", 1)
    keyed, bare = (SendColumns("a", "kafka", keys, columns) for keys in (columns, None))
    sends = Sends([pairs, other, keyed, bare])
    assert sends
    assert (pairs.count, keyed.count) == (2, 2)
    assert list(sends) == [
        Send("a", b"k", b"1", system="kafka"),
        Send("a", None, None, system="kafka"),
        other,
        Send("a", b"3", b"3", system="kafka"),
        Send("a", None, None, system="kafka"),
        Send("a", None, b"3", system="kafka"),
        Send("a", None, None, system="kafka"),
    ]


def test_a_partition_that_the_partitioner_chooses_has_no_number() -> None:
    """Kafka's clients take -1 for it."""
    assert (number_of(None), number_of(0), number_of(3)) == (-1, 0, 3)
