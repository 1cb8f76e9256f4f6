"""Outputs that leave at once: what is heard of them before a checkpoint may follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import plain_producer
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.transactional_producer import RecordRefusedError
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.kafka.topics import TopicAdmin

SYSTEMS = {
    name: SystemConfig.of(
        Config(
            {
                f"systems.{name}.consumer.bootstrap.servers": f"{name}:1",
                f"systems.{name}.producer.acks": "1",
            }
        ),
        name,
    )
    for name in ("kafka", "other")
}
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT, "timed out")

Delivered = Callable[[KafkaError | None, Any], None]


@dataclass
class _Message:
    """One that was not delivered."""

    stream: str
    content: bytes

    def topic(self) -> str:
        return self.stream

    def key(self) -> None:
        """It has none."""

    def value(self) -> bytes:
        return self.content

    def headers(self) -> None:
        """It has none."""


class _Library:
    """A producer of the library. ``reports``: {value: what its delivery report will say}.

    ``on_flush``: in the place of a flush after which all is delivered but ``remaining``.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self.properties = properties
        self.sent: list[tuple[str, bytes]] = []
        self.reports: dict[bytes, KafkaError] = {}
        self.remaining = 0
        self.refuses: KafkaError | None = None
        self.on_flush: Callable[[], int] | None = None
        self._callbacks: list[tuple[Delivered, _Message]] = []

    def list_topics(self, topic: str = "", timeout: float = 0) -> object:
        """Every topic is there but ``absent``."""
        del timeout
        code = KafkaError.UNKNOWN_TOPIC_OR_PART
        found = SimpleNamespace(error=KafkaError(code) if topic == "absent" else None)
        return SimpleNamespace(topics={topic: found})

    def produce(
        self,
        topic: str,
        value: bytes,
        _key: object,
        _partition: int,
        on_delivery: Delivered,
        *_rest: object,
    ) -> None:
        if self.refuses is not None:
            raise KafkaException(self.refuses)
        self.sent.append((topic, value))
        self._callbacks.append((on_delivery, _Message(topic, value)))

    def poll(self, _timeout: float) -> int:
        return 0

    def flush(self, _timeout: float) -> int:
        if self.on_flush is not None:
            return self.on_flush()
        for heard, message in self._callbacks:
            if message.content in self.reports:
                heard(self.reports[message.content], message)
        return self.remaining

    def loses_connection(self) -> None:
        self.properties["error_cb"](KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, _Library]:
    """{system: its producer}, once there is one."""
    found: dict[str, _Library] = {}

    def make(system: SystemConfig, properties: Mapping[str, Any]) -> _Library:
        found[system.name] = _Library(properties)
        return found[system.name]

    monkeypatch.setattr(plain_producer, "producer", make)
    monkeypatch.setattr("homeport.container.kafka.sending._LOOK_PAUSE_S", 0)
    monkeypatch.setattr(TopicAdmin, "__init__", lambda *_: None)
    monkeypatch.setattr(TopicAdmin, "topic_config", lambda *_: {"max.message.bytes": "100"})
    return found


def _never(_seconds: float) -> None:
    raise AssertionError("nothing has to be waited for")


def test_each_record_goes_to_its_system_in_order(made: dict[str, _Library]) -> None:
    """One that names none goes where the checkpoints are; producers are made when needed."""
    outputs = PlainOutputs(SYSTEMS, "kafka")
    outputs.send([Send("a", None, b"1"), Send("b", None, b"2")])
    assert set(made) == {"kafka"}
    outputs.send([Send("c", None, b"3", system="other")])
    outputs.deliver(_never)
    assert made["kafka"].sent == [("a", b"1"), ("b", b"2")]
    assert made["other"].sent == [("c", b"3")]


def test_the_producer_is_always_idempotent(made: dict[str, _Library]) -> None:
    """Its reports would say little otherwise; and it has no transactional id."""
    PlainOutputs(SYSTEMS, "kafka").send([Send("a", None, b"1")])
    properties = made["kafka"].properties
    assert (properties["enable.idempotence"], properties["acks"]) == (True, "all")
    assert "transactional.id" not in properties


def _settled(prepare: Callable[[_Library], None], made: dict[str, _Library]) -> None:
    outputs = PlainOutputs(SYSTEMS, "kafka")
    outputs.send([Send("out", None, b"small"), Send("out", None, b"x" * 500)])
    prepare(made["kafka"])
    outputs.deliver(_never)


def _unheard(library: _Library) -> None:
    library.remaining = 1


POLICY = KafkaError(KafkaError.POLICY_VIOLATION, "invalid")
LACKING = KafkaError(KafkaError.NOT_ENOUGH_REPLICAS, "too few in sync")


@pytest.mark.parametrize(
    ("error", "kind", "expected"),
    [
        # Also where others of its batch were reported first.
        (TOO_LARGE, RecordRefusedError, "a record of 500 bytes exceeds the limit of 100 bytes"),
        (POLICY, RecordRefusedError, "invalid"),
        # Too few replicas in sync are no failure of the job's.
        (TIMED_OUT, UnavailableError, "timed out"),
        (LACKING, UnavailableError, "too few in sync"),
    ],
    ids=["too large", "invalid", "not in time", "too few replicas"],
)
def test_an_error_in_a_report_stops_the_checkpoint(
    error: KafkaError, kind: type[Exception], expected: str, made: dict[str, _Library]
) -> None:
    """The error names the stream, and the record that is too large."""

    def fails(library: _Library) -> None:
        library.reports = {b"small": error, b"x" * 500: error}

    line = f"output stream out: {expected}.*; the transaction of its input is not committed"
    with pytest.raises(kind, match=line):
        _settled(fails, made)


def test_a_missing_report_stops_the_checkpoint(made: dict[str, _Library]) -> None:
    """It is unknown then whether the record is in Kafka."""
    with pytest.raises(UnavailableError, match="outputs: not delivered within 30 s"):
        _settled(_unheard, made)


def test_replicas_that_are_missing_are_waited_for(
    made: dict[str, _Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As brokers are: what was sent before is delivered once they are in sync again."""
    looks: list[str] = []

    def lacks(_system: object, library: _Library, places: object) -> str:
        assert places == {("out", None)}
        looks.append("look")
        if len(looks) == 2:
            library.remaining = 0
        return "topic 'out' partition 0 has 1 of 3 replicas in sync"

    monkeypatch.setattr(plain_producer, "shortage", lacks)
    _settled(_unheard, made)
    assert len(looks) == 2


def test_brokers_that_go_in_mid_flush_are_waited_for(made: dict[str, _Library]) -> None:
    """However often they go: what was sent before is delivered when they are back."""
    flushes: list[str] = []

    def goes(library: _Library) -> None:
        def flush() -> int:
            flushes.append("flush")
            if len(flushes) < 200:  # longer than a record may take while all brokers answer
                library.loses_connection()
                return 1
            return 0

        library.on_flush = flush

    _settled(goes, made)
    assert len(flushes) == 200


def test_a_lost_connection_is_kafkas_absence(made: dict[str, _Library]) -> None:
    """A report that fails for it is not charged to the container."""

    def is_away(library: _Library) -> None:
        def flush() -> int:
            library.loses_connection()
            raise KafkaException(TIMED_OUT)

        library.on_flush = flush

    with pytest.raises(UnavailableError, match=r"the connection was lost \(all down\)"):
        _settled(is_away, made)


@pytest.mark.parametrize("fatal", [SystemError(), KafkaException(KafkaError(KafkaError._FATAL))])
def test_a_fatal_error_stops_the_checkpoint(fatal: Exception, made: dict[str, _Library]) -> None:
    """Python calls the one that comes inside of a report an error of its own."""

    def breaks(library: _Library) -> None:
        library.on_flush = Mock(side_effect=fatal)

    with pytest.raises(TransactionError, match="outputs: "):
        _settled(breaks, made)


def test_a_record_that_the_library_refuses_is_reported_at_once(made: dict[str, _Library]) -> None:
    """A record above the producer's own limit never leaves; nor does one for an absent topic."""
    outputs = PlainOutputs(SYSTEMS, "kafka")
    with pytest.raises(TransactionError, match="no such topic in Kafka: 'absent'; create it"):
        outputs.send([Send("absent", None, b"1")])
    made["kafka"].refuses = TOO_LARGE
    with pytest.raises(RecordRefusedError, match="a record of 101 bytes exceeds the limit of 100"):
        outputs.send([Send("out", None, b"x" * 101)])
    with pytest.raises(RecordRefusedError, match="a record of 101 bytes"):
        outputs.deliver(_never)
