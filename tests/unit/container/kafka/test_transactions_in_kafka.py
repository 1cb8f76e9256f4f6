"""What becomes of a request to a leader that answers, refuses, breaks off, or is not there."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import transactions_in_kafka
from homeport.container.kafka.transactions_in_kafka import PartitionLeaders
from homeport.container.progress.marker_requests import marker_request
from homeport.container.progress.transaction_state import Ended, Outcome

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "h:1"}), "k")
OUT = ("out", 0)
ABORTED = Ended("an-id", Outcome.ABORTED, frozenset({OUT}), 1, 0, 0, {})
ANSWER = bytes.fromhex("000000010002000000000000000102046f757402000000000000000000")
"""Written; its error has offset 24."""


def _answer(error: int) -> bytes:
    data = bytearray(ANSWER + b"\0")
    data[24:26] = struct.pack(">h", error)
    return struct.pack(">i", len(data)) + bytes(data)


@pytest.fixture(name="leader")
def _leader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], list[bytes]]]:
    """Makes the partition's leader one that answers with these bytes. Returns its requests."""
    server = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def make(answer: bytes) -> list[bytes]:
        asked: list[bytes] = []

        def serve() -> None:
            with server.accept()[0] as connection:
                (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
                asked.append(connection.recv(length, socket.MSG_WAITALL))
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        _know(monkeypatch, server.getsockname()[1])
        return asked

    yield make
    for thread in threads:
        thread.join()
    server.close()


def _know(monkeypatch: pytest.MonkeyPatch, port: int, leader: int = 1) -> None:
    topic = SimpleNamespace(partitions={0: SimpleNamespace(leader=leader)})
    brokers = {1: SimpleNamespace(host="127.0.0.1", port=port)}
    known = SimpleNamespace(topics={"out": topic}, brokers=brokers)
    client = SimpleNamespace(list_topics=lambda *_: known)
    monkeypatch.setattr(transactions_in_kafka, "admin", lambda _: client)


def _write() -> None:
    PartitionLeaders(SYSTEM).write_marker(OUT, ABORTED)


def test_an_end_is_written_by_one_request(leader: Callable[[bytes], list[bytes]]) -> None:
    """The request of the pure part, whole."""
    asked = leader(_answer(0))
    _write()
    assert asked == [marker_request(OUT, ABORTED)]


def test_a_refusal_says_why(leader: Callable[[bytes], list[bytes]]) -> None:
    """Of a principal that may not, also what it needs."""
    leader(_answer(KafkaError.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(UnavailableError, match=r"in out partition 0: .*needs the ACL Alter"):
        _write()
    leader(_answer(KafkaError.INVALID_PRODUCER_EPOCH))
    with pytest.raises(UnavailableError, match="old epoch"):
        _write()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it closed the connection"),
        (_answer(0)[:-1], "it closed the connection"),
        (struct.pack(">i", -1), "an answer of -1 bytes"),
        (struct.pack(">i", 1 << 30), "an answer of 1073741824 bytes"),
    ],
)
def test_a_leader_that_breaks_off_is_away(
    leader: Callable[[bytes], list[bytes]], answer: bytes, why: str
) -> None:
    """As where it does not know the request: Kafka then closes the connection."""
    leader(answer)
    with pytest.raises(UnavailableError, match=f"which leads out partition 0: {why}"):
        _write()


def test_without_a_leader_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """None there, none known, or no broker that answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    _know(monkeypatch, port)
    with pytest.raises(UnavailableError, match=f"asking 127.0.0.1:{port}"):
        _write()
    _know(monkeypatch, port, leader=-1)
    with pytest.raises(UnavailableError, match="it has none now"):
        _write()

    def fail(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(transactions_in_kafka, "admin", lambda _: SimpleNamespace(list_topics=fail))
    with pytest.raises(UnavailableError, match="asking for the leader of out partition 0"):
        _write()
