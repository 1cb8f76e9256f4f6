"""What is made of the library's words about its brokers."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata

from homeport.job_coordinator.kafka.connection import Connection, SaidOnce


class Client:
    """A producer whose library has something to say, and whose broker answers or not."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.words: list[int] = []
        self.is_up = True
        self.asked = 0

    def poll(self, _timeout: float) -> int:
        """The words are said."""
        said, self.words = self.words, []
        for code in said:
            self._connection.heard(KafkaError(code))
        return len(said)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """An answer, or the library's error."""
        del topic, timeout
        self.asked += 1
        if not self.is_up:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return ClusterMetadata()


def test_without_a_loss_there_is_no_request() -> None:
    """Neither by silence, nor by words about other things."""
    connection = Connection()
    client = Client(connection)
    client.words = [KafkaError._MAX_POLL_EXCEEDED]
    assert connection.recovered(client)
    assert client.asked == 0


def test_a_loss_lasts_until_a_broker_answers() -> None:
    """However often it is checked."""
    connection = Connection()
    client = Client(connection)
    client.words, client.is_up = [KafkaError._ALL_BROKERS_DOWN], False
    assert not connection.recovered(client)
    assert connection.lost(client) is not None
    client.is_up = True
    assert connection.recovered(client)
    assert connection.lost(client) is None
    assert client.asked == 2


def test_errors_that_differ_in_numbers_only_are_logged_once() -> None:
    """A library that tries every second says so once a minute."""
    once = SaidOnce()

    def stated(text: str) -> bool:
        return once.filter(logging.LogRecord("n", logging.ERROR, "f", 1, text, None, None))

    assert stated("connect to broker 1 failed after 3 ms")
    assert not stated("connect to broker 2 failed after 12 ms")
    assert stated("authentication failed")
