"""How long Kafka may be silent on a container's host, by a clock that the test moves."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.incarnation import kafka_watch
from homeport.container.incarnation.kafka_watch import watch_kafka
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.model.silence import Silence

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "away:1"}), "k")
LIMIT_MS = 1000
LONG_AFTER_MS = 100 * LIMIT_MS
LIMIT_S = 10


class _World:
    """The clock, which goes on where the watch pauses, and the brokers, which take no time.

    ``answers``: to the first questions; afterwards there is none.
    """

    def __init__(self, answers: Iterable[bool]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.now_ms = 0.0
        self.causes: list[str] = []
        self.ended_by: list[threading.Thread] = []
        self._over = threading.Event()

    def wait(self, seconds: float) -> None:
        self.now_ms += seconds * 1000
        if self.now_ms > LONG_AFTER_MS:
            self._over.set()
            raise SystemExit

    def list_topics(self, topic: str, timeout: float) -> None:
        assert timeout > 0
        self.asked.append(topic)
        if not (self.answers and self.answers.pop(0)):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no broker"))

    def end(self, cause: str) -> None:
        self.causes.append(cause)
        self.ended_by.append(threading.current_thread())
        self._over.set()

    def watched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in = SimpleNamespace(Thread=threading.Thread, Event=lambda: self)
        monkeypatch.setattr(kafka_watch, "threading", stand_in)
        monkeypatch.setattr(clients, "admin", lambda _: self)
        monkeypatch.setattr(kafka_watch, "boot_ms", lambda: int(self.now_ms))
        watch_kafka(SYSTEM, "topic", Silence(LIMIT_MS), self.end)
        assert self._over.wait(LIMIT_S)
        for thread in self.ended_by:
            thread.join(LIMIT_S)
            assert not thread.is_alive()


def test_a_silence_that_lasts_for_the_limit_ends_the_container_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The watch names the cause soon after the limit: it asks Kafka often in that time.

    Its thread is a daemon, with a name by which a dump of the threads shows it.
    """
    world = _World([])
    world.watched(monkeypatch)
    (cause,) = world.causes
    assert "Kafka at away:1 has not answered on this host for 1000 ms" in cause
    assert LIMIT_MS <= world.now_ms <= LIMIT_MS * 1.2
    assert set(world.asked) == {"topic"}
    (thread,) = world.ended_by
    assert (thread.daemon, thread.name) == (True, "kafka-watch")


def test_an_answer_ends_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer the limit begins at the next question that Kafka does not answer."""
    before = [*[False] * 9, True] * 3 + [True] * 20
    world = _World(before)
    world.watched(monkeypatch)
    assert len(world.causes) == 1
    assert world.answers == []
    assert world.now_ms - len(before) * LIMIT_MS / 10 >= LIMIT_MS
