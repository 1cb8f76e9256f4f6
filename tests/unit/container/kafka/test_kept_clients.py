"""Which clients of Kafka a process takes over from its last start, and which ones it closes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import log_reader
from homeport.container.kafka.kept_clients import MOST_RECORDS, KeptClients
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore

KEYS = {
    "job.name": "j",
    "job.default.system": "k",
    "systems.k.consumer.bootstrap.servers": "a:1",
    "systems.m.consumer.bootstrap.servers": "b:1",
}


@dataclass
class _Client:
    """An admin client or a consumer, which knows whether it is closed."""

    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True


@dataclass
class _Stream:
    """A coordinator stream with so many records, and what was done with it."""

    record_count: int = 3
    done: list[str] = field(default_factory=list)

    def rest(self) -> None:
        self.done.append("rest")

    def close(self) -> None:
        self.done.append("close")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[_Client]:
    """Each consumer that was made."""
    found: list[_Client] = []

    def make(*_: object) -> _Client:
        found.append(_Client())
        return found[-1]

    monkeypatch.setattr(clients, "admin", lambda _: _Client())
    monkeypatch.setattr(log_reader, "consumer", make)
    return found


def _systems(names: str, **more: str) -> dict[str, SystemConfig]:
    config = Config({**KEYS, **{k.replace("_", "."): v for k, v in more.items()}})
    return {name: SystemConfig.of(config, name) for name in names}


def test_readers_are_taken_over_by_the_next_start(made: list[_Client]) -> None:
    """They ask the next start whether they may go on; one of a system it has not is closed."""
    kept, asked = KeptClients(), list[str]()
    with kept.readers(_systems("km"), time.sleep) as first:
        pass
    assert len(made) == 2
    with kept.readers(_systems("k"), lambda _: asked.append("second")) as second:
        assert second == {"k": first["k"]}
        second["k"]._may_go_on(0)
    assert asked == ["second"]
    assert [client.is_closed for client in made] == [False, True]
    kept.close()
    assert [client.is_closed for client in made] == [True, True]


def test_readers_of_other_properties_are_not_taken_over(made: list[_Client]) -> None:
    """Such as other brokers, or another user: the next start gets new ones."""
    kept = KeptClients()
    with kept.readers(_systems("k"), time.sleep) as first:
        pass
    more = {"systems_k_consumer_client.id": "other"}
    with kept.readers(_systems("k", **more), time.sleep) as second:
        assert second["k"] is not first["k"]
    assert [client.is_closed for client in made] == [True, False]


def test_a_start_that_fails_keeps_no_client(made: list[_Client]) -> None:
    """What it has met may be a fault of theirs."""
    kept, stream = KeptClients(), _Stream()
    with (
        pytest.raises(OSError, match="no"),
        kept.readers(_systems("k"), time.sleep),
        kept.stream(Config(KEYS), lambda: cast("CoordinatorStreamStore", stream)),
    ):
        raise OSError("no")
    assert stream.done == ["close"]
    assert [client.is_closed for client in made] == [True]
    with kept.readers(_systems("k"), time.sleep):
        assert len(made) == 2


def _read(kept: KeptClients, config: Config, new: list[_Stream]) -> _Stream:
    """The stream that a start gets; ``new``: those that it may open."""
    with kept.stream(config, cast("Any", lambda: new.pop(0))) as stream:
        return cast("_Stream", stream)


def test_the_coordinator_stream_is_read_on_by_the_next_start() -> None:
    """It rests between them; a job of another stream opens its own."""
    kept, first, other = KeptClients(), _Stream(), _Stream()
    assert _read(kept, Config(KEYS), [first]) is first
    assert _read(kept, Config(KEYS), []) is first
    assert first.done == ["rest", "rest"]
    assert _read(kept, Config({**KEYS, "job.name": "other"}), [other]) is other
    assert first.done == ["rest", "rest", "close"]
    kept.close()
    assert other.done == ["rest", "close"]


class _Input(_Client):
    """A consumer of input, and what it is assigned."""

    assigned: object = "partitions"
    is_fatal = False

    def unassign(self) -> None:
        if self.is_fatal:
            raise KafkaException(KafkaError(KafkaError._FATAL))
        self.assigned = None


def test_a_consumer_of_input_is_taken_over_with_the_same_properties(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is assigned nothing meanwhile; one that has failed, or that nothing takes, is closed."""
    monkeypatch.setattr(clients, "consumer", lambda *_: _Input())
    kept, system = KeptClients(), _systems("k")["k"]

    def taken(size: int) -> _Input:
        return cast("_Input", kept.input_client(system, {"fetch.size": size}))

    first, beside = taken(1), taken(1)
    assert first is not beside
    kept.give_back(cast("Consumer", first))
    assert first.assigned is None
    other = taken(2)
    assert other is not first
    assert taken(1) is first
    beside.is_fatal = True
    kept.give_back(cast("Consumer", beside))
    assert beside.is_closed
    assert taken(1) is not beside
    kept.give_back(cast("Consumer", other))
    kept.close()
    assert (first.is_closed, other.is_closed) == (False, True)


def test_a_large_coordinator_stream_is_not_kept() -> None:
    """Its state would take much memory for as long as the container works."""
    kept, large, small = KeptClients(), _Stream(MOST_RECORDS + 1), _Stream(MOST_RECORDS)
    assert _read(kept, Config(KEYS), [large]) is large
    assert large.done == ["close"]
    assert _read(kept, Config(KEYS), [small]) is small
    assert small.done == ["rest"]


def test_a_system_is_asked_by_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the readers, and by all that asks about topics."""
    admins: list[_Client] = []

    def make(_: SystemConfig) -> _Client:
        admins.append(_Client())
        return admins[-1]

    monkeypatch.setattr(clients, "admin", make)
    monkeypatch.setattr(log_reader, "consumer", lambda *_: _Client())
    kept, systems = KeptClients(), _systems("km")
    asked = [kept.topics(systems["k"], 5.0) for _ in range(2)]
    assert [cast("Any", topics)._admin for topics in asked] == admins * 2
    with kept.readers(systems, time.sleep) as readers:
        assert cast("Any", readers["k"])._admin is admins[0]
        assert cast("Any", readers["m"])._admin is admins[1]
    assert len(admins) == 2
