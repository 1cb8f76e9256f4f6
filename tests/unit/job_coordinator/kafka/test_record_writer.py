"""What becomes of a transaction whose outcome is not known; a small model stands for the library.

The model keeps the library's own rule, which tests/integration/test_unknown_outcome.py shows of a
real broker: while the commit of a transaction is not settled, no other one can be begun.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import ClusterMetadata, PartitionMetadata, TopicMetadata

from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.open_transactions import how_to_end, not_initialised
from homeport.job_coordinator.kafka.record_writer import TransactionalWriter, WriterOverError

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "nowhere:1"}), "k")
LATE = KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True)
REFUSED = KafkaError(KafkaError.INVALID_TXN_STATE, "refused", txn_requires_abort=True)
FORGOTTEN = KafkaError(KafkaError.INVALID_PRODUCER_ID_MAPPING, "lost", txn_requires_abort=True)

Delivered = Callable[[KafkaError | None, Message | None], None]


@dataclass
class Library:
    """A producer. ``answers``: what the next calls of a commit or an abort raise; None: nothing."""

    answers: list[KafkaError | None] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    is_open: bool = False
    failed: KafkaError | None = None

    def init_transactions(self, _timeout: float) -> None:
        """The id is this producer's."""

    def begin_transaction(self) -> None:
        """As the library: refused while another one is not settled."""
        if self.failed is not None:
            raise KafkaException(self.failed)
        if self.is_open:
            raise KafkaException(KafkaError(KafkaError._CONFLICT, "in progress"))
        self.calls.append("begin")
        self.is_open = True

    def produce(
        self, _topic: str, _value: bytes, key: bytes, partition: int, on_delivery: Delivered
    ) -> None:
        """The record is delivered at once."""
        assert partition == 0
        self.calls.append(key.decode())
        on_delivery(None, None)

    def commit_transaction(self, _timeout: float) -> None:
        """As ``answers`` says."""
        self._end("commit")

    def abort_transaction(self, _timeout: float) -> None:
        """As ``answers`` says."""
        self._end("abort")

    def poll(self, _timeout: float) -> int:
        """Nothing waits."""
        return 0

    def flush(self, _timeout: float) -> int:
        """Nothing waits."""
        return 0

    def list_topics(self, _topic: str = "", timeout: float = 0) -> ClusterMetadata:
        """Partition 0 of ``t`` has no leader."""
        del timeout
        found, topic, partition = ClusterMetadata(), TopicMetadata(), PartitionMetadata()
        partition.id, partition.replicas = 0, [1, 2]
        topic.partitions, found.topics = {0: partition}, {"t": topic}
        return found

    def _end(self, name: str) -> None:
        self.calls.append(name)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise KafkaException(answer)
        self.is_open = False


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """The producer of every writer."""
    made = Library()
    monkeypatch.setattr(clients, "producer", lambda *_: made)
    monkeypatch.setattr(Connection, "answers", lambda *_: True)
    return made


def _writer() -> TransactionalWriter:
    """With no time at all: a request that Kafka does not answer at once is sent once."""
    writer = TransactionalWriter(SYSTEM, "t", 0, "homeport.j.1.am.1.a.1")
    writer.open()
    return writer


def _write(writer: TransactionalWriter, key: str) -> None:
    writer.write([(key.encode(), b"")])


_UNKNOWN = "_transaction: .* the outcome is not known"


@pytest.mark.parametrize(
    ("answers", "writes", "calls"),
    [
        ([LATE], [("a", f"commit{_UNKNOWN}"), ("b", "")], "begin a commit commit begin b commit"),
        ([LATE] * 3, [("a", f"commit{_UNKNOWN}")] * 3, "begin a commit commit commit"),
        (
            [LATE, REFUSED],
            [("a", f"commit{_UNKNOWN}"), ("b", "refused; nothing was written"), ("c", "")],
            "begin a commit commit abort begin c commit",
        ),
        (
            [REFUSED, LATE],
            [("a", f"abort{_UNKNOWN}"), ("b", "")],
            "begin a commit abort abort begin b commit",
        ),
    ],
    ids=["committed", "stays unknown", "refused later", "abort of unknown outcome"],
)
def test_a_transaction_of_unknown_outcome_is_settled_before_the_next(
    library: Library, answers: list[KafkaError | None], writes: list[tuple[str, str]], calls: str
) -> None:
    """The next write asks for the same end again, and only then begins a transaction."""
    writer = _writer()
    library.answers = answers
    for key, fault in writes:
        with pytest.raises(HomeportError, match=fault) if fault else nullcontext():
            _write(writer, key)
    assert library.calls == calls.split()


def test_the_id_is_initialised_once_a_broker_answers(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that still connects tries again half a second later."""
    asked: list[str] = []

    def answers(*_: object) -> bool:
        asked.append("answer")
        return True

    monkeypatch.setattr(Connection, "answers", answers)
    monkeypatch.setattr(library, "init_transactions", lambda _timeout: asked.append("init"))
    _writer()
    assert asked == ["answer", "init"]


def test_a_failure_says_what_the_topic_lacks(library: Library) -> None:
    """Kafka itself says no more than that time is over."""
    library.answers = [LATE]
    with pytest.raises(UnavailableError, match="topic 't' partition 0 has no leader: start the br"):
        _write(_writer(), "a")


def test_a_refused_right_has_its_remedy(library: Library) -> None:
    """Kafka refuses it when the transaction is to be committed."""
    code = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    library.answers = [KafkaError(code, "no right", txn_requires_abort=True)]
    with pytest.raises(
        UnavailableError, match=r"no right; nothing was written.*; grant the rights"
    ):
        _write(_writer(), "a")


@pytest.mark.parametrize("answers", [[FORGOTTEN], [LATE, REFUSED]])
def test_a_writer_that_kafka_has_forgotten_is_over(
    library: Library, answers: list[KafkaError | None]
) -> None:
    """Nothing is aborted, as the library would take the id again for it: a newer writer may lead.

    Whether the commit says so, or only the request before the abort.
    """
    writer = _writer()
    library.answers = answers
    if answers[0] is LATE:
        with pytest.raises(UnavailableError, match="the outcome is not known"):
            _write(writer, "a")
        library.failed = FORGOTTEN
    for _ in range(2):
        with pytest.raises(WriterOverError, match=r"does not know homeport\.j\.1\.am\.1\.a\.1 any"):
            _write(writer, "b")
    assert "abort" not in library.calls


OF_BROKER = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "h:1"}), "k")
ENDING = KafkaError(KafkaError.CONCURRENT_TRANSACTIONS, "concurrent")


class _Client:
    """A producer that knows the leaders of Kafka's topic of transactions, or is not answered."""

    def __init__(self, leaders: dict[int, int] | None) -> None:
        self._leaders = leaders

    def poll(self, timeout: float) -> int:
        """Nothing waits."""
        del timeout
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> SimpleNamespace:
        """As the library's."""
        del topic, timeout
        if self._leaders is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        partitions = {p: SimpleNamespace(leader=leader) for p, leader in self._leaders.items()}
        topics = {"__transaction_state": SimpleNamespace(partitions=partitions)}
        return SimpleNamespace(topics=topics if partitions else {}, brokers={7: "h:2/7"})


def _said(error: KafkaError, leaders: dict[int, int] | None) -> str:
    return str(not_initialised(OF_BROKER, _Client(leaders), "a-stranger", error))  # type: ignore[arg-type]  # a part of it


def test_an_aborting_command_has_a_warning() -> None:
    """No advice aborts what may have been committed."""
    line = how_to_end(OF_BROKER, "log", 3, 17)
    tool = "kafka-transactions.sh --bootstrap-server h:1"
    assert f"`{tool} abort --topic log --partition 3 --start-offset 17`" in line
    assert "if it was aborted" in line
    assert "one that was committed must not be aborted" in line


@pytest.mark.parametrize(
    ("leaders", "named"),
    [
        ({0: 7, 1: 7, 2: 7, 3: 7}, "broker h:2/7 that leads __transaction_state partition 2 makes"),
        ({0: 7, 1: 7, 2: 9, 3: 7}, "the broker that leads __transaction_state partition 2 makes"),
        ({}, "restart of its coordinator makes"),
    ],
)
def test_the_coordinator_of_a_transaction_that_does_not_end_is_named(
    leaders: dict[int, int], named: str
) -> None:
    """As far as it is known, with the command that shows what is missing."""
    line = _said(ENDING, leaders)
    assert "it is still ending the last transaction of this id" in line
    assert "`kafka-transactions.sh --bootstrap-server h:1 describe --transactional-id a-" in line
    assert named in line
    late = _said(KafkaError(KafkaError._TIMED_OUT), leaders)
    assert "it may be still ending the last transaction of this id" in late


def test_of_a_kafka_that_is_away_no_transaction_is_reported() -> None:
    """Nor where it refuses the id."""
    for line in (_said(ENDING, None), _said(KafkaError(KafkaError.INVALID_REQUEST), {0: 7})):
        assert "initialising a-stranger" in line
        assert "check that the brokers run" in line
