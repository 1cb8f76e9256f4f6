"""Which records of the checkpoint topic a start reads, and which checkpoints it finds in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest
from confluent_kafka import Message

from homeport.container.kafka import checkpoints
from homeport.container.kafka.checkpoints import last_records, read_whole_checkpoints
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress import checkpoint
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

A, B = TaskName("Partition 0"), TaskName("Partition 1")
SSP = SystemStreamPartition("kafka", "in", 0)
GROUPER = "g"


@dataclass
class _Record:
    key_: bytes
    offset_: int
    value_: bytes | None

    def key(self) -> bytes:
        return self.key_

    def offset(self) -> int:
        return self.offset_

    def value(self) -> bytes | None:
        return self.value_

    def headers(self) -> None:
        """It has none."""

    def timestamp(self) -> tuple[int, int]:
        return 0, self.offset_


@dataclass
class _Log:
    """The checkpoint topic. ``spans``: what was read of it."""

    records: list[_Record] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def add(self, task: TaskName, processed: int, kind: str = checkpoint.CHECKPOINT_V1) -> None:
        key = checkpoint.encode_key(checkpoint.CheckpointKey(GROUPER, task, kind))
        value = checkpoint.encode_value({SSP: processed})
        self.records.append(_Record(key, len(self.records), value))

    def ends(self, places: list[tuple[str, int]]) -> dict[tuple[str, int], OffsetRange]:
        return dict.fromkeys(places, OffsetRange(0, len(self.records)))

    def read(self, _topic: str, _partition: int, start: int, head: int) -> Iterator[list[Message]]:
        self.spans.append((start, head))
        yield cast("list[Message]", self.records[start:head])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> _Log:
    """An empty topic, of which four offsets are the end that is read first."""
    monkeypatch.setattr(checkpoints, "_TAIL", 4)
    return _Log()


def _found(log: _Log) -> dict[TaskName, int]:
    reader = cast("LogReader", log)
    found = read_whole_checkpoints(reader, "cps", GROUPER, {A, B}, {})
    return {task: item.offsets[SSP] for task, item in found.items()}


def test_the_end_of_the_topic_is_enough_where_all_tasks_commit(log: _Log) -> None:
    """Each has two checkpoints there; what is before is not read."""
    for processed in range(5):
        for task in (A, B):
            log.add(task, processed)
    assert _found(log) == {A: 4, B: 4}
    assert log.spans == [(6, 10)]


def test_all_is_read_where_a_task_has_rested(log: _Log) -> None:
    """Its last checkpoint may be anywhere, also where the end begins; nothing is read twice."""
    log.add(B, 7)
    for processed in range(4):
        log.add(A, processed)
    assert _found(log) == {A: 3, B: 7}
    assert log.spans == [(1, 5), (0, 1)]
    log.add(B, 8)
    assert _found(log) == {A: 3, B: 8}
    assert log.spans[2:] == [(2, 6), (0, 2)]


def test_what_samza_wrote_beside_the_first_one_in_the_end_is_found(log: _Log) -> None:
    """One checkpoint alone does not show what is before it."""
    log.add(A, 3, checkpoint.CHECKPOINT_V2)
    log.add(A, 3)
    for processed in (1, 2, 3):
        log.add(B, processed)
    records = last_records(cast("LogReader", log), "cps", {A, B}, OffsetRange(0, 5))
    assert [record.offset() for record in records] == [0, 1, 4]
