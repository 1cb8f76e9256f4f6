"""Drain: whether records of a partition are still to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from homeport.container.kafka.drain import Drain
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.model.job_model import SystemStreamPartition

PLACE = SystemStreamPartition("kafka", "in", 0)
HEAD = 8


class _Log(LogReader):
    """A partition whose records end at 5: what follows are ends of transactions."""

    def __init__(self, oldest: int) -> None:
        self._oldest = oldest

    def ends(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], OffsetRange]:
        """Of each."""
        return {place: OffsetRange(self._oldest, HEAD) for place in partitions}

    def stable_ends(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """No transaction is open."""
        return dict.fromkeys(partitions, HEAD)

    def read(self, topic: str, partition: int, start: int, head: int) -> Iterator[list[Any]]:
        """As Kafka reads: from no offset that is deleted."""
        del topic, partition
        assert self._oldest <= start < head
        if start < 5:
            yield [object()]


def _holds_nothing(oldest: int, start: int) -> bool:
    drain = Drain({"kafka": None}, lambda _: None, lambda *_: _Log(oldest))  # type: ignore[dict-item]  # not looked at
    return drain.holds_nothing(PLACE, start, HEAD)


def test_records_that_are_there_are_waited_for_and_ends_of_transactions_are_not() -> None:
    """Up to the head."""
    assert not _holds_nothing(oldest=0, start=4)
    assert _holds_nothing(oldest=0, start=5)


def test_what_retention_has_deleted_is_not_waited_for() -> None:
    """Whether something is left behind it, or the partition is empty."""
    assert _holds_nothing(oldest=HEAD, start=3)
    assert _holds_nothing(oldest=6, start=3)
    assert not _holds_nothing(oldest=4, start=3)
