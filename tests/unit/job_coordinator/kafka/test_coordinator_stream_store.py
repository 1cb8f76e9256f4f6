"""How the coordinator stream is read; a list of what the library hands out stands for Kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, TopicPartition

from homeport.config.config import Config
from homeport.config.errors import ConfigError, InvariantViolation, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "nowhere:1"}), "k")


@dataclass
class Event:
    """What the library hands out: a record, or an error in the place of one."""

    place: int
    name: str = ""
    code: int | None = None
    text: str = "1"

    def offset(self) -> int:
        """Its offset."""
        return self.place

    def error(self) -> KafkaError | None:
        """None for a record."""
        return None if self.code is None else KafkaError(self.code)

    def key(self) -> bytes:
        """Of a configuration key."""
        return wire.encode(wire.set_config(self.name, "1"))[0]

    def value(self) -> bytes | None:
        """Of a configuration key."""
        return wire.encode(wire.set_config(self.name, self.text))[1]


END = KafkaError._PARTITION_EOF
GONE = KafkaError.UNKNOWN_TOPIC_OR_PART


@dataclass
class Fetched:
    """A consumer that has these batches in hand, one after the other."""

    batches: list[list[Event]]
    asked: list[tuple[int, bool]] = field(default_factory=list)
    assigned: list[list[int]] = field(default_factory=list)

    def assign(self, places: list[TopicPartition]) -> None:
        """Notes the offsets."""
        self.assigned.append([place.offset for place in places])

    def unassign(self) -> None:
        """Notes it as an assignment of nothing."""
        self.assigned.append([])

    def consume(self, count: int, timeout: float) -> list[Event]:
        """Up to ``count`` of the first batch."""
        self.asked.append((count, timeout > 0))
        if timeout > 0:
            self.batches = [batch for batch in self.batches if batch]
        taken = self.batches[0][:count] if self.batches else []
        if self.batches:
            self.batches[0] = self.batches[0][count:]
        return taken

    def close(self) -> None:
        """Nothing to do."""


CONFIG = Config(
    {
        "job.name": "etl-daily",
        "job.default.system": "k",
        "systems.k.consumer.bootstrap.servers": "nowhere:1",
    }
)
ROOT = Path(__file__).resolve().parents[4]


def _store(
    patch: pytest.MonkeyPatch, head: int, *batches: list[Event]
) -> tuple[CoordinatorStreamStore, Fetched]:
    fetched = Fetched(list(batches))
    patch.setattr(clients, "admin", lambda _: None)
    patch.setattr(clients, "consumer", lambda _, __: fetched)
    patch.setattr(TopicAdmin, "validate", lambda *_: None)
    patch.setattr(TopicAdmin, "end_offset", lambda *_: head)
    return CoordinatorStreamStore(SYSTEM, "t", source="test", timeout_s=5), fetched


def test_fetched_records_are_read_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record is waited for, those that came with it are not; the end ends the reading."""
    records = [Event(n, f"k{n}") for n in range(5)]
    store, fetched = _store(monkeypatch, 5, records[:3], [*records[3:], Event(5, code=END)])
    store.bootstrap()
    assert list(store.latest("set-config")) == [f"k{n}" for n in range(5)]
    waited = [count for count, waits in fetched.asked if waits]
    at_once = [count for count, waits in fetched.asked if not waits]
    assert waited == [1, 1]
    assert len(at_once) == 2
    assert min(at_once) >= 1000


def test_a_store_that_has_rested_reads_on_from_where_it_stood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the head at that time, by the same client; what it had before is still there."""
    store, fetched = _store(monkeypatch, 2, [Event(0, "a"), Event(1, "b")])
    store.bootstrap()
    store.rest()
    with pytest.raises(InvariantViolation, match=r"or rest\(\)"):
        store.catch_up()
    monkeypatch.setattr(TopicAdmin, "end_offset", lambda *_: 4)
    fetched.batches = [[Event(2, "a", text="2"), Event(4, code=END)]]
    store.bootstrap()
    assert fetched.assigned == [[0], [], [2]]
    assert store.record_count == 2
    assert list(store.latest("set-config")) == ["b", "a"]


def test_records_fetched_beside_a_failure_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were handed out once and are not handed out again: they are in the state."""
    first = [Event(0, "a"), Event(0, code=GONE), Event(1, "b"), Event(2, code=END)]
    store, _ = _store(monkeypatch, 3, first, [Event(2, "c"), Event(3, code=END)])
    with pytest.raises(UnavailableError, match="nowhere:1"):
        store.bootstrap()
    assert list(store.latest("set-config")) == ["a", "b"]
    assert [m.key for m in store.catch_up()] == ["c"]
    assert list(store.latest("set-config")) == ["a", "b", "c"]


def test_a_stream_that_was_not_bootstrapped_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """G27: a reader before the bootstrap, or after the end, gets no half of a state."""
    store, _ = _store(monkeypatch, 0)
    with pytest.raises(InvariantViolation, match="before bootstrap"):
        store.catch_up()
    store.close()
    with pytest.raises(InvariantViolation, match="after close"):
        store.catch_up()


@pytest.mark.parametrize("name", ["etl_daily", "etl-daily"])
def test_a_stream_of_another_job_is_refused_when_it_has_been_read(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By each process that opens it, before it can act on it or write to it."""
    batch = [Event(0, "job.name", text=name), Event(1, code=END)]
    _store(monkeypatch, 1, batch)
    with CoordinatorStreamStore.of(CONFIG, source="test") as store:
        if name == "etl-daily":
            store.bootstrap()
            return
        with pytest.raises(ConfigError, match=r"belongs to the job with job\.name = 'etl_daily'"):
            store.bootstrap()


def test_the_product_opens_no_stream_without_checking_its_owner() -> None:
    """``CoordinatorStreamStore.of`` is the one way that it uses for the stream of a job."""
    folders = ("appmaster", "config", "container", "job_coordinator")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    files.remove(ROOT / "job_coordinator/kafka/deleted_jobs.py")  # its topic is of all jobs
    assert files
    calls = re.compile(r"CoordinatorStreamStore\(")
    assert not [p.name for p in files if calls.search(p.read_text(encoding="utf-8"))]
