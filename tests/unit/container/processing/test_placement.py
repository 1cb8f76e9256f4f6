"""Outputs with a partitioner, a timestamp and headers of the task's own."""

from __future__ import annotations

import re

import pytest

from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.transaction_plan import Send


class _Brokers:
    """Counts the requests for a number of partitions."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def count(self, system: str, topic: str) -> int:
        """Three of each topic."""
        self.asked.append((system, topic))
        return 3


def _by_length(key: bytes | None, partitions: int) -> int:
    return len(key or b"") % partitions


def test_a_partitioner_gets_key_and_number_and_places_the_record() -> None:
    """One request for each topic, also where the task itself names the partition."""
    brokers = _Brokers()
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka", count_of=brokers.count)
    outputs.send("out", b"v", b"four", partition=_by_length)
    outputs.send("out", None, None, partition=_by_length, timestamp=5, headers={"h": b"x"})
    outputs.send("out", b"v", b"k", partition=2)
    assert outputs.take() == [
        Send("out", b"four", b"v", 1, None, "kafka", None),
        Send("out", None, None, 0, [("h", b"x")], "kafka", 5),
        Send("out", b"k", b"v", 2, None, "kafka", None),
    ]
    assert brokers.asked == [("kafka", "out")]


@pytest.mark.parametrize("found", [3, -1, None, "1", True])
def test_a_partition_that_is_not_there_is_refused(found: object) -> None:
    """The line has the partitioner, the topic and the rule."""
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka", count_of=_Brokers().count)
    said = f"gave {found!r} for kafka.out, which has 3 partitions: return an int from 0 to 2"
    with pytest.raises(ValueError, match=re.escape(said)):
        outputs.send("out", b"v", partition=lambda _key, _count: found)  # type: ignore[arg-type, return-value]  # that is the fault
