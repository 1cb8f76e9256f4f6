"""When a reader of a partition takes an end of it for the head; a list stands for the library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import log_reader
from homeport.container.kafka.log_reader import LogReader

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "nowhere:1"}), "k")


@dataclass(frozen=True)
class Event:
    """A record, or the end of the partition in the place of one."""

    place: int
    is_end: bool = False

    def offset(self) -> int:
        """Its offset; of an end: the end."""
        return self.place

    def error(self) -> KafkaError | None:
        """None for a record."""
        return KafkaError(KafkaError._PARTITION_EOF) if self.is_end else None


@dataclass
class Handed:
    """A consumer that hands out these batches, one after the other."""

    batches: list[list[Event]]
    assigned: list[object] = field(default_factory=list)

    def assign(self, places: list[object]) -> None:
        """The places are noted."""
        self.assigned = places

    def unassign(self) -> None:
        """Nothing is read any more."""
        self.assigned = []

    def consume(self, count: int, _timeout: float) -> list[Event]:
        """Up to ``count`` of the batch that is due; the next one is due when it is empty."""
        if count == 1:
            self.batches = [batch for batch in self.batches if batch]
        batch = self.batches[0]
        taken, batch[:] = batch[:count], batch[count:]
        return taken


def _read(patch: pytest.MonkeyPatch, head: int, *batches: list[Event]) -> Iterator[list[int]]:
    """The offsets of what is read of [0, head), list by list."""
    handed = Handed([list(batch) for batch in batches])
    patch.setattr(log_reader, "admin", lambda _: None)
    patch.setattr(log_reader, "consumer", lambda *_: handed)
    patch.setattr(log_reader, "know_topics", lambda *_: None)
    reader = LogReader(SYSTEM, lambda _: None)
    for records in reader.read("t", 0, 0, head):
        yield [record.offset() or 0 for record in records]
    assert handed.assigned == []


def test_an_end_before_the_head_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Safety K1: a reader of committed records gets an end event before an open transaction."""
    found = _read(monkeypatch, 4, [Event(0), Event(2, is_end=True)], [Event(2), Event(3)], [END_4])
    assert list(found) == [[0], [2, 3]]


def test_an_end_alone_before_the_head_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it comes with no record."""
    found = _read(monkeypatch, 4, [Event(2, is_end=True)], [Event(2), Event(3)], [END_4])
    assert list(found) == [[2, 3]]


def test_the_last_record_before_the_head_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offset before the head may be a marker's: the end event at the head decides."""
    assert list(_read(monkeypatch, 4, [Event(0), Event(1)], [END_4])) == [[0, 1]]


def test_an_end_beyond_the_head_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write on: what came after the request for the head is left to a later reader."""
    batch = [Event(0), Event(3), Event(4), Event(5), Event(6, is_end=True)]
    assert list(_read(monkeypatch, 4, batch)) == [[0, 3]]


def test_a_record_at_the_head_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """No end need come of a partition that others keep writing to."""
    assert list(_read(monkeypatch, 4, [Event(0)], [Event(3), Event(4)])) == [[0], [3]]


def test_an_empty_range_needs_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition without records is read to its head before anything is assigned."""
    assert list(_read(monkeypatch, 0)) == []


END_4 = Event(4, is_end=True)
