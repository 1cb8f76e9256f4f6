"""A broker inside this process: the one that librdkafka has for tests, with records of any form.

The client for Python refuses some records that other programs write; the library takes them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import Consumer, Message, TopicPartition

_PRODUCER = 0
_END, _TOPIC, _PARTITION, _VALUE, _KEY, _TIMESTAMP, _HEADERS, _FLAGS = 0, 1, 3, 4, 5, 8, 10, 7
"""What an argument of ``rd_kafka_producev`` is."""
_COPY = 2
_WAIT_MS = 30_000


class Record(NamedTuple):
    """What a producer sends; the names of headers are bytes, as the protocol has them."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    timestamp_ms: int = 0


@dataclass(frozen=True)
class MockCluster:
    """One broker at ``servers``; it keeps the last 5 MB of each partition."""

    library: Any
    client: int
    servers: str

    def send(self, topic: str, records: Sequence[Record], *, waits: bool = True) -> None:
        """Have all ``records`` in the topic's partitions; or only on their way."""
        for record in records:
            self._produce(topic, record)
        if not waits:
            return
        assert self.library.rd_kafka_flush(self.client, _WAIT_MS) == 0

    def _produce(self, topic: str, record: Record) -> None:
        arguments: list[Any] = [ctypes.c_void_p(self.client)]
        arguments += [ctypes.c_int(_TOPIC), ctypes.c_char_p(topic.encode())]
        arguments += [ctypes.c_int(_PARTITION), ctypes.c_int32(record.partition)]
        arguments += [ctypes.c_int(_FLAGS), ctypes.c_int(_COPY)]
        for kind, data in ((_VALUE, record.value), (_KEY, record.key)):
            arguments += [ctypes.c_int(kind), ctypes.c_char_p(data)]
            arguments += [ctypes.c_size_t(len(data or b""))]
        arguments += [ctypes.c_int(_TIMESTAMP), ctypes.c_int64(record.timestamp_ms)]
        if record.headers:
            headers = self.library.rd_kafka_headers_new(len(record.headers))
            for name, value in record.headers:
                size = len(value or b"")
                self.library.rd_kafka_header_add(headers, name, len(name), value, size)
            # The library owns the headers from here on.
            arguments += [ctypes.c_int(_HEADERS), ctypes.c_void_p(headers)]
        assert self.library.rd_kafka_producev(*arguments, ctypes.c_int(_END)) == 0


@contextmanager
def mock_cluster(partitions: int = 4) -> Iterator[MockCluster]:
    """A cluster whose topics have so many partitions; it ends with the block."""
    library = _library()
    conf, reason = library.rd_kafka_conf_new(), ctypes.create_string_buffer(500)
    for name, value in (
        (b"test.mock.num.brokers", b"1"),
        (b"message.max.bytes", b"20000000"),
        (b"queue.buffering.max.messages", b"1000000"),
        (b"log_level", b"0"),
    ):
        assert library.rd_kafka_conf_set(conf, name, value, reason, 500) == 0, reason.value
    client = library.rd_kafka_new(_PRODUCER, conf, reason, 500)
    assert client, reason.value
    try:
        cluster = library.rd_kafka_handle_mock_cluster(client)
        library.rd_kafka_mock_topic_create(cluster, b"in", partitions, 1)
        servers = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        yield MockCluster(library, client, servers)
    finally:
        library.rd_kafka_destroy(client)


@contextmanager
def read_with(names: list[bytes]) -> Iterator[Message]:
    """The record that has a header of each name, as a consumer gives it."""
    with mock_cluster(1) as cluster:
        cluster.send("in", [Record(0, None, b"", [(name, b"v") for name in names])])
        consumer = Consumer({"bootstrap.servers": cluster.servers, "group.id": "any"})
        consumer.assign([TopicPartition("in", 0, 0)])
        (message,) = consumer.consume(1, _WAIT_MS / 1000)
        assert message.error() is None
        yield message
        consumer.close()


def _library() -> Any:  # noqa: ANN401 - of C
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    (path,) = folder.glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ssize_t
    number = ctypes.c_int
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, []),
        ("rd_kafka_conf_set", number, [pointer, text, text, text, size]),
        ("rd_kafka_new", pointer, [number, pointer, text, size]),
        ("rd_kafka_handle_mock_cluster", pointer, [pointer]),
        ("rd_kafka_mock_topic_create", number, [pointer, text, number, number]),
        ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
        ("rd_kafka_headers_new", pointer, [size]),
        ("rd_kafka_header_add", number, [pointer, text, size, text, size]),
        ("rd_kafka_flush", number, [pointer, number]),
        ("rd_kafka_destroy", None, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
