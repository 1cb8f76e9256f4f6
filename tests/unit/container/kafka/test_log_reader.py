"""What a reader takes for the head of a partition, and requests again while its leader changes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import log_reader
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import OffsetRange

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "nowhere:1"}), "k")


@dataclass(frozen=True)
class _Event:
    """A record, or the end of the partition in the place of one."""

    place: int
    is_end: bool = False
    of: int = 0

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.of

    def offset(self) -> int:
        return self.place

    def __len__(self) -> int:
        return 1

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self.is_end else None


END_4 = _Event(4, is_end=True)


@dataclass
class _Consumer:
    """Hands out these batches, one after the other: the next one is due when one is empty."""

    batches: list[list[_Event]]
    assigned: list[object] = field(default_factory=list)

    def assign(self, places: list[object]) -> None:
        self.assigned = places

    def unassign(self) -> None:
        self.assigned = []

    def consume(self, count: int, _timeout: float) -> list[_Event]:
        if count == 1:
            self.batches = [batch for batch in self.batches if batch]
        batch = self.batches[0]
        taken, batch[:] = batch[:count], batch[count:]
        return taken


@pytest.mark.parametrize(
    ("head", "batches", "read"),
    [
        # Safety K1: a reader of committed records gets an end event before an open transaction.
        (4, [[_Event(0), _Event(2, is_end=True)], [_Event(2), _Event(3)], [END_4]], [[0], [2, 3]]),
        (4, [[_Event(2, is_end=True)], [_Event(2), _Event(3)], [END_4]], [[2, 3]]),
        # The offset before the head may be a marker's: the end event at the head decides.
        (4, [[_Event(0), _Event(1)], [END_4]], [[0, 1]]),
        # Where it is a record's, the broker's news of the end need not be awaited.
        (4, [[_Event(0), _Event(3)]], [[0, 3]]),
        # Others write on: what came after the request for the head is left to a later reader.
        (4, [[*map(_Event, (0, 3, 4, 5)), _Event(6, is_end=True)]], [[0, 3]]),
        # No end need come of a partition that others keep writing to.
        (4, [[_Event(0)], [_Event(3), _Event(4)]], [[0], [3]]),
        (0, [], []),
    ],
    ids=[
        *("an end before the head ends nothing", "nor does an end alone"),
        *("the last record before the head is not waited for", "it ends it", "an end beyond too"),
        *("a record at the head ends it", "an empty range needs no request"),
    ],
)
def test_a_partition_is_read_to_its_head(
    head: int, batches: list[list[_Event]], read: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """List by list."""
    consumer = _Consumer([list(batch) for batch in batches])
    monkeypatch.setattr(log_reader, "admin", lambda _: None)
    monkeypatch.setattr(log_reader, "consumer", lambda *_: consumer)
    monkeypatch.setattr(log_reader, "know_topics", lambda *_: None)
    found = LogReader(SYSTEM, lambda _: None).read("t", 0, 0, head)
    assert [[record.offset() for record in records] for records in found] == read
    assert consumer.assigned == []


def test_many_partitions_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each to its own head; what comes of one that is at its head belongs to a later reader."""
    batches = [
        [_Event(0), _Event(5, of=1), _Event(3)],
        [_Event(4), _Event(6, of=1), _Event(7, is_end=True, of=2)],
        [_Event(9, is_end=True, of=1)],
    ]
    consumer = _Consumer(batches)
    monkeypatch.setattr(log_reader, "admin", lambda _: None)
    monkeypatch.setattr(log_reader, "consumer", lambda *_: consumer)
    monkeypatch.setattr(log_reader, "know_topics", lambda *_: None)
    spans = {("t", 0): (0, 4), ("t", 1): (5, 9), ("t", 2): (6, 7), ("t", 3): (2, 2)}
    found = LogReader(SYSTEM, lambda _: None).read_all(spans)
    read = [(place, [record.offset() for record in records]) for place, records in found]
    assert read == [(("t", 0), [0, 3]), (("t", 1), [5]), (("t", 1), [6])]
    assert not any(batches)


class _Admin:
    """Its brokers answer two errors first, and then the offset 9."""

    def __init__(self, code: int) -> None:
        self.errors = [KafkaError(code)] * 2

    def list_offsets(
        self, asked: Mapping[TopicPartition, object], **_: object
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        found: dict[TopicPartition, Future[SimpleNamespace]] = {}
        for place in asked:
            found[place] = Future()
            if self.errors:
                found[place].set_exception(KafkaException(self.errors.pop()))
            else:
                found[place].set_result(SimpleNamespace(offset=9))
        return found

    def list_topics(self, *_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def _ends(
    code: int, monkeypatch: pytest.MonkeyPatch, *, waits: bool = True
) -> dict[tuple[str, int], OffsetRange]:
    monkeypatch.setattr(log_reader, "admin", lambda _: _Admin(code))
    monkeypatch.setattr(log_reader, "consumer", lambda *_: None)
    reader = LogReader(SYSTEM, lambda _: None, waits_out_outages=waits)
    return reader.ends([("clog", 0)])


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        (KafkaError.OFFSET_NOT_AVAILABLE, True),
        (KafkaError.KAFKA_STORAGE_ERROR, True),
        (KafkaError.REPLICA_NOT_AVAILABLE, True),
        (KafkaError.NOT_LEADER_FOR_PARTITION, True),
        (KafkaError._TIMED_OUT, True),
        # Else the client goes on asking the leader that it knows, for as long as it likes.
        (KafkaError.LEADER_NOT_AVAILABLE, False),
    ],
)
def test_offsets_are_requested_again_while_a_leader_changes(
    code: int, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """A new leader does not know its high watermark at once (KIP-207)."""
    assert _ends(code, monkeypatch, waits=waits) == {("clog", 0): OffsetRange(9, 9)}


def test_both_ends_are_requested_before_an_answer_is_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was answered is not requested again while a leader changes."""
    requests: list[list[int]] = []

    class Admin(_Admin):
        def list_offsets(
            self, asked: Mapping[TopicPartition, object], **more: object
        ) -> dict[TopicPartition, Future[SimpleNamespace]]:
            requests.append([place.partition for place in asked])
            return super().list_offsets(asked, **more)

    monkeypatch.setattr(log_reader, "admin", lambda _: Admin(KafkaError.NOT_LEADER_FOR_PARTITION))
    monkeypatch.setattr(log_reader, "consumer", lambda *_: None)
    places = [("clog", n) for n in range(3)]
    found = LogReader(SYSTEM, lambda _: None).ends(places)
    assert found == dict.fromkeys(places, OffsetRange(9, 9))
    assert requests == [[0, 1, 2], [0, 1, 2], [0, 1]]


@pytest.mark.parametrize(
    ("code", "waits", "error"),
    [
        # As a standby, which looks at the heads every second and says what it waits for.
        (KafkaError._TRANSPORT, False, UnavailableError),
        (KafkaError._TIMED_OUT, False, UnavailableError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, True, PartitionError),
    ],
)
def test_a_missing_partition_is_reported_at_once_and_an_outage_where_the_caller_repeats(
    code: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """Waiting would not mend the first."""
    with pytest.raises(error):
        _ends(code, monkeypatch, waits=waits)
