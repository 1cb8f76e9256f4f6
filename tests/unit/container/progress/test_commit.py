"""Order and end of transactions."""

from __future__ import annotations

from homeport.config.system_stream import SystemStream
from homeport.container.progress.commit import (
    Changes,
    Send,
    TransactionContent,
    TransactionLimits,
    sends_in_order,
)
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

T0, T1 = TaskName("Partition 0"), TaskName("Partition 1")
CONTENT = TransactionContent(
    outputs=[Send("out", b"k", b"v")],
    changes=[
        Changes("s", T1, SystemStream("kafka", "log"), 1, {b"a": b"1", b"b": None}),
    ],
    processed={
        T1: {SystemStreamPartition("kafka", "in", 1): 7},
        T0: {SystemStreamPartition("kafka", "in", 0): 3},
    },
)


def test_checkpoints_are_sent_last() -> None:
    """Outputs, changelogs (a deleted key as null), then one checkpoint per task (safety I5)."""
    sends = list(sends_in_order(CONTENT, "G", "checkpoints"))
    assert sends[:3] == [
        Send("out", b"k", b"v"),
        Send("log", b"a", b"1", 1),
        Send("log", b"b", None, 1),
    ]
    assert [(s.topic, s.partition) for s in sends[3:]] == [("checkpoints", 0)] * 2
    assert [b"Partition 0" in (s.key or b"") for s in sends[3:]] == [True, False]


def test_without_a_topic_no_checkpoint_is_sent() -> None:
    """Checkpoints may be turned off."""
    assert len(list(sends_in_order(CONTENT, "G", None))) == 3


def test_a_transaction_ends_by_age_or_by_size() -> None:
    """Whichever comes first."""
    limits = TransactionLimits(max_ms=1000, max_bytes=100)
    assert not limits.is_due(999.9, 99)
    assert limits.is_due(1000, 0)
    assert limits.is_due(0, 100)
