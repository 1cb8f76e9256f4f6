"""What a transaction that Kafka does not take is called: an outage, or the job's own failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata, PartitionMetadata, TopicMetadata

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import transactional_producer
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.transactional_producer import (
    RecordRefusedError,
    Silence,
    TransactionalProducer,
)
from homeport.container.progress.transaction_plan import Send, SendPairs, Sends
from homeport.job_coordinator.kafka.topics import TopicAdmin

SYSTEM = SystemConfig.of(Config({"systems.kafka.consumer.bootstrap.servers": "b:1"}), "kafka")


def topics(in_sync: int, leader: int = 1) -> ClusterMetadata:
    """Two topics of three replicas each; of ``clog`` so many are in sync."""
    found = ClusterMetadata()
    for name, count in (("clog", in_sync), ("out", 3)):
        topic, partition = TopicMetadata(), PartitionMetadata()
        partition.id, partition.leader = 0, leader
        partition.replicas, partition.isrs = [1, 2, 3], [1, 2, 3][:count]
        topic.topic, topic.partitions = name, {0: partition}
        found.topics[name] = topic
    return found


class _Library:
    """A producer of the library; a transaction fails with ``failure``, a record is on its way."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self.properties = properties
        self.metadata = topics(3)
        self.failure: KafkaError | None = None
        self.remaining = 1
        self.asked = 0
        self.done: list[str] = []
        self._is_open = False

    def poll(self, _timeout: float) -> int:
        return 0

    def list_topics(self, _topic: str = "", timeout: float = 0) -> ClusterMetadata:
        del timeout
        self.asked += 1
        return self.metadata

    def begin_transaction(self) -> None:
        if self._is_open:
            raise KafkaException(self.failure or KafkaError(KafkaError._STATE))
        self._is_open = True

    def produce(self, *_: object, **__: object) -> None:
        """On its way."""

    def flush(self, _timeout: float) -> int:
        return 0 if self.failure is None else self.remaining

    def purge(self, **_: object) -> None:
        """Nothing is on its way."""

    def abort_transaction(self, _timeout: float) -> None:
        self.done.append("abort")

    def commit_transaction(self, _timeout: float) -> None:
        if self.failure is not None:
            raise KafkaException(self.failure)

    def loses_connection(self) -> None:
        self.properties["error_cb"](KafkaError(KafkaError._TRANSPORT, "gone"))


class _Clock:
    """Replaces ``time``: it goes on when the test wants."""

    now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The clock of all producers."""
    made = _Clock()
    monkeypatch.setattr(transactional_producer, "time", made)
    return made


@dataclass
class _Case:
    producer: TransactionalProducer
    library: _Library


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> _Case:
    """A producer with a transaction open, and a record on its way to ``clog``."""
    del clock  # the producer is made with it
    monkeypatch.setattr(TopicAdmin, "topic_config", lambda *_: {"min.insync.replicas": "2"})
    libraries: list[_Library] = []

    def library(_system: SystemConfig, properties: Mapping[str, Any]) -> _Library:
        libraries.append(_Library(properties))
        return libraries[-1]

    monkeypatch.setattr(transactional_producer, "producer", library)
    producer = TransactionalProducer(SYSTEM, "id")
    producer.await_brokers(lambda: {("clog", 0)}, never)
    producer.begin()
    producer.send([Send("clog", b"k", b"v", 0)])
    return _Case(producer, libraries[0])


def never(_seconds: float) -> None:
    """Nothing has to be waited for."""
    raise AssertionError("nothing has to be waited for")


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._MSG_TIMED_OUT,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.KAFKA_STORAGE_ERROR,
    ],
)
def test_records_that_kafka_does_not_take_in_time_are_its_absence(case: _Case, code: int) -> None:
    """Else too few replicas in sync would be charged to the job; the line says what is missing."""
    case.library.failure, case.library.metadata = KafkaError(code), topics(in_sync=1)
    with pytest.raises(UnavailableError) as ended:
        case.producer.deliver()
    assert (
        "topic 'clog' partition 0 has 1 of 3 replicas in sync, and its min.insync.replicas is 2: "
        "start the brokers 2, 3, or lower min.insync.replicas; "
    ) in str(ended.value)
    assert case.library.done == []


def test_a_refused_record_is_the_jobs_failure(case: _Case) -> None:
    """The transaction is aborted."""
    case.library.failure = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
    with pytest.raises(RecordRefusedError, match="too large; the transaction was aborted"):
        case.producer.deliver()
    assert case.library.done == ["abort"]


@pytest.mark.parametrize("code", [KafkaError._PURGE_QUEUE, KafkaError._INVALID_DIFFERENT_RECORD])
def test_a_record_that_another_takes_with_it_has_the_others_error(case: _Case, code: int) -> None:
    """A time-out of others may be heard of as a purge first."""
    case.library.failure = KafkaError(KafkaError._MSG_TIMED_OUT, "timed out")
    case.library.remaining = 0
    case.producer._failure = KafkaError(code)
    with pytest.raises(UnavailableError, match="some records not delivered: timed out;"):
        case.producer.deliver()


@pytest.mark.parametrize(("in_sync", "kind"), [(1, UnavailableError), (2, TransactionError)])
def test_a_transaction_beyond_its_time_is_an_outage_where_replicas_lack(
    case: _Case, in_sync: int, kind: type[Exception]
) -> None:
    """Kafka fences it then, as it would a predecessor; with enough replicas it was too large."""
    case.library.failure, case.library.metadata = KafkaError(KafkaError._FENCED), topics(in_sync)
    case.producer._timeout_s = 0.0
    with pytest.raises(kind, match=r"the transaction took 0\.0 s"):
        case.producer.deliver()


STALL_S = 15.0
SILENT = "the transaction took 15.0 s, in 15.0 s of which Kafka did nothing of it"
TOO_LONG = r"the transaction took 15\.0 s, longer than transaction.timeout.ms = 10000"
UNKNOWN = "its outcome is unknown"


@pytest.mark.parametrize(
    ("code", "slow_s", "silent_s", "kind", "expected"),
    [
        (KafkaError.COORDINATOR_NOT_AVAILABLE, 0, 0, UnavailableError, UNKNOWN),
        (KafkaError.INVALID_TXN_STATE, 0, 0, TransactionError, UNKNOWN),
        # A coordinator that is back may know the transaction no longer.
        (KafkaError.INVALID_TXN_STATE, 0, STALL_S, UnavailableError, UNKNOWN),
        # It is back when it reports the end of the time, and lacks nothing then.
        (KafkaError._FENCED, 0, STALL_S, UnavailableError, SILENT),
        # Kafka answers at once: the container lost the time between two calls.
        (KafkaError._FENCED, STALL_S, 0, TransactionError, TOO_LONG),
    ],
)
def test_a_commit_that_fails_is_an_outage_where_kafka_is_away_or_was_silent(
    case: _Case,
    clock: _Clock,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    slow_s: float,
    silent_s: float,
    kind: type[Exception],
    expected: str,
) -> None:
    """Else the container is charged with it."""

    def commit(_timeout: float) -> None:
        clock.now_s += silent_s
        raise KafkaException(KafkaError(code))

    monkeypatch.setattr(case.library, "commit_transaction", commit)
    clock.now_s += slow_s
    with pytest.raises(kind, match=expected):
        case.producer.commit()


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.INVALID_TXN_STATE])
@pytest.mark.parametrize("library_step", ["flush", "produce"])
def test_records_that_kafka_does_not_take_for_a_while_are_an_outage(
    case: _Case, clock: _Clock, monkeypatch: pytest.MonkeyPatch, library_step: str, code: int
) -> None:
    """Nothing arrives for 15 s, be it at the end or with a full queue; Kafka has many words."""

    def stalls(*_: object, **__: object) -> int:
        clock.now_s += STALL_S
        case.library.failure = KafkaError(code)
        if library_step == "produce":
            raise BufferError
        return 1

    def sends() -> None:
        case.producer.send([Send("clog", b"k", b"v", 0)])
        case.producer.deliver()

    monkeypatch.setattr(case.library, library_step, stalls)
    with pytest.raises(UnavailableError, match=SILENT):
        sends()


def test_a_transaction_that_is_too_large_for_its_time_is_charged(
    case: _Case, clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records arrive all the time; there are too many of them."""
    left = iter(range(30, 0, -1))

    def flush(_timeout: float) -> int:
        clock.now_s += 0.5
        remaining = next(left)
        if remaining == 1:
            case.library.failure = KafkaError(KafkaError._FENCED)
        return remaining

    monkeypatch.setattr(case.library, "flush", flush)
    with pytest.raises(TransactionError, match=TOO_LONG):
        case.producer.deliver()


def test_the_silence_of_a_transaction_before_does_not_count(
    case: _Case, clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one was within its time, with all its waits."""
    library = case.library

    def commit(_timeout: float) -> None:
        clock.now_s += 9.0
        if library.failure is not None:
            raise KafkaException(library.failure)

    monkeypatch.setattr(library, "commit_transaction", commit)
    case.producer.commit()
    library._is_open = False
    case.producer.begin()
    clock.now_s += 12.0
    library.failure = KafkaError(KafkaError._FENCED)
    with pytest.raises(TransactionError, match=r"the transaction took 21\.0 s, longer"):
        case.producer.commit()


def test_waits_of_a_second_and_more_in_which_nothing_arrives_add_up() -> None:
    """A wait that lasts counts too; shorter ones are how long requests take."""
    clock = _Clock()
    silence = Silence(clock.monotonic)
    totals = [silence.total_s]
    for work_s, waits_s, rest_s in ((0, 0.9, 0), (0, 1.0, 0), (50.0, 12.0, 0), (0, 0, 0.5)):
        silence.ends()
        clock.now_s += work_s
        silence.waits()
        clock.now_s += waits_s
        totals.append(silence.total_s)
        clock.now_s += rest_s
        silence.ends()
        totals.append(silence.total_s)
    assert totals == [0, 0, 0, 1, 1, 13, 13, 13, 13]


def test_no_transaction_begins_before_enough_replicas_are_in_sync(case: _Case) -> None:
    """It is waited for; what is written elsewhere is not."""
    case.library.metadata = topics(in_sync=1)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            case.library.metadata = topics(in_sync=2)

    case.library.loses_connection()
    case.producer.await_brokers(lambda: {("out", None)}, never)
    case.library.loses_connection()
    case.producer.await_brokers(lambda: {("clog", 0)}, pause)
    assert len(waited) == 3


def test_replicas_are_looked_at_once(case: _Case) -> None:
    """And once more where a connection was lost: a transaction costs no request otherwise."""
    before = case.library.asked
    case.producer.await_brokers(lambda: {("clog", 0)}, never)
    assert case.library.asked == before
    case.library.loses_connection()
    case.producer.await_brokers(lambda: {("clog", 0)}, never)
    assert case.library.asked > before


def test_a_look_at_some_of_the_places_is_not_the_look_at_all(case: _Case) -> None:
    """What a start commits goes to the checkpoint topic alone; the work goes to others too."""
    case.library.loses_connection()
    case.producer.await_brokers(lambda: {("checkpoints", None)}, never, are_all=False)
    before = case.library.asked
    case.producer.await_brokers(lambda: {("clog", 0)}, never)
    assert case.library.asked > before


def test_what_was_looked_at_ahead_costs_the_first_transaction_no_request(case: _Case) -> None:
    """Other places do, and a lost connection makes the look worthless."""
    case.library.loses_connection()
    case.producer.await_brokers(lambda: (), never, are_all=False)
    case.producer.look_ahead({("clog", 0), ("out", None)})
    assert case.producer.topics == {"clog", "out"}
    before = case.library.asked
    case.producer.await_brokers(lambda: {("clog", 0), ("out", 3)}, never, are_all=False)
    case.producer.send([Send("out", b"k", b"v", 0)])
    assert case.library.asked == before
    case.producer.await_brokers(lambda: {("clog", 1)}, never, are_all=False)
    assert case.library.asked > before
    before = case.library.asked
    case.library.loses_connection()
    case.producer.await_brokers(lambda: {("clog", 0)}, never)
    assert case.library.asked > before


def test_a_place_that_takes_no_records_yet_is_looked_at_again(case: _Case) -> None:
    """The look ahead waits for nothing; the transaction does."""
    case.library.loses_connection()
    case.producer.await_brokers(lambda: (), never, are_all=False)
    case.library.metadata = topics(in_sync=1)
    case.producer.look_ahead({("clog", 0)})
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        case.library.metadata = topics(in_sync=3)

    case.producer.await_brokers(lambda: {("clog", 0)}, pause)
    assert len(waited) == 1


def test_sends_keep_their_order_and_the_last_of_each_partition_has_a_report(
    case: _Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its offset is the highest there; all parts of a record are as they were given."""
    heard: list[tuple[Any, ...]] = []

    def produce(
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = -1,
        callback: object = None,
        _on_delivery: None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        heard.append((topic, key, value, partition, callback is not None, timestamp, headers))

    monkeypatch.setattr(case.library, "produce", produce)
    pairs = SendPairs("out", "kafka")
    pairs.flat.extend([b"j", b"10", None, None])
    case.producer.send(
        Sends([Send("out", b"i", b"0"), pairs, Send("out", b"k", b"12", 2), Send("out", b"l", b"")])
    )
    assert heard == [
        ("out", b"i", b"0", -1, False, 0, None),
        ("out", b"j", b"10", -1, False, 0, None),
        ("out", None, None, -1, False, 0, None),
        ("out", b"k", b"12", 2, True, 0, None),
        ("out", b"l", b"", -1, False, 0, None),
    ]
    heard.clear()
    case.producer.send(
        [
            Send("out", b"a", b"1"),
            Send("clog", b"b", b"2", 0),
            Send("clog", b"c", None, 0),
            Send("out", None, b"3", headers=[("h", b"x")]),
            Send("clog", b"d", b"4", 0),
            Send("out", b"e", b"5"),
            Send("out", b"f", b"6", 2),
            Send("out", b"g", b"7", 1, headers=[("h", None)], timestamp_ms=8),
            Send("out", b"h", b"9", 1),
            Send("out", b"i", None),
        ]
    )
    assert heard == [
        ("out", b"a", b"1", -1, False, 0, None),
        ("clog", b"b", b"2", 0, False, 0, None),
        ("clog", b"c", None, 0, False, 0, None),
        ("out", None, b"3", -1, False, 0, [("h", b"x")]),
        ("clog", b"d", b"4", 0, True, 0, None),
        ("out", b"e", b"5", -1, False, 0, None),
        ("out", b"f", b"6", 2, True, 0, None),
        ("out", b"g", b"7", 1, False, 8, [("h", None)]),
        ("out", b"h", b"9", 1, True, 0, None),
        ("out", b"i", None, -1, False, 0, None),
    ]


def test_a_full_queue_is_waited_for_in_turn(case: _Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that found no room goes before the next one."""
    sent: list[bytes] = []
    full = iter([False, True, True, False, True, False, True, False])

    def produce(_topic: str, value: bytes, *_: object, **__: object) -> None:
        if next(full):
            raise BufferError
        sent.append(value)

    monkeypatch.setattr(case.library, "produce", produce)
    case.producer.send(
        [
            Send("out", None, b"0"),
            Send("out", None, b"1", 0),
            Send("out", None, b"2", headers=[("h", b"x")]),
            Send("out", None, b"3", 0),
        ]
    )
    assert sent == [b"0", b"1", b"2", b"3"]
    full = iter([False, True, False, False, True, True, False])
    pairs = SendPairs("out", "kafka")
    pairs.flat.extend([None, b"4", None, b"5", None, b"6", None, b"7"])
    case.producer.send(Sends([pairs]))
    assert sent[4:] == [b"4", b"5", b"6", b"7"]
