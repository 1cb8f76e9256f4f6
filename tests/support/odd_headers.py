"""A record with a header's name that is no text, as programs write it whose names are bytes.

The client for Python takes text alone, so that its library is called for it. The broker is the one
that the library itself has for tests.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, Message, TopicPartition

_PRODUCER = 0
_END, _TOPIC, _PARTITION, _VALUE, _HEADERS = 0, 1, 3, 4, 10
"""What an argument of ``rd_kafka_producev`` is."""
_WAIT_MS = 30_000


@contextmanager
def read_with(names: list[bytes]) -> Iterator[Message]:
    """The record that has a header of each name, as a consumer gives it."""
    library = _library()
    conf, reason = library.rd_kafka_conf_new(), ctypes.create_string_buffer(500)
    library.rd_kafka_conf_set(conf, b"test.mock.num.brokers", b"1", reason, 500)
    client = library.rd_kafka_new(_PRODUCER, conf, reason, 500)
    assert client, reason.value
    try:
        _produce(library, client, names)
        cluster = library.rd_kafka_handle_mock_cluster(client)
        servers = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "any"})
        consumer.assign([TopicPartition("in", 0, 0)])
        (message,) = consumer.consume(1, _WAIT_MS / 1000)
        assert message.error() is None
        yield message
        consumer.close()
    finally:
        library.rd_kafka_destroy(client)


def _produce(library: Any, client: int, names: list[bytes]) -> None:  # noqa: ANN401 - of C
    headers = library.rd_kafka_headers_new(len(names))
    for name in names:
        library.rd_kafka_header_add(headers, name, len(name), b"v", 1)
    # The library owns the headers from here on.
    arguments: list[Any] = [ctypes.c_void_p(client)]
    arguments += [ctypes.c_int(_TOPIC), ctypes.c_char_p(b"in")]
    arguments += [ctypes.c_int(_PARTITION), ctypes.c_int32(0)]
    arguments += [ctypes.c_int(_VALUE), ctypes.c_char_p(b""), ctypes.c_size_t(0)]
    arguments += [ctypes.c_int(_HEADERS), ctypes.c_void_p(headers)]
    assert library.rd_kafka_producev(*arguments, ctypes.c_int(_END)) == 0
    assert library.rd_kafka_flush(client, _WAIT_MS) == 0


def _library() -> Any:  # noqa: ANN401 - of C
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    (path,) = folder.glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ssize_t
    for name, result, arguments in (
        ("rd_kafka_conf_new", pointer, []),
        ("rd_kafka_conf_set", ctypes.c_int, [pointer, text, text, text, size]),
        ("rd_kafka_new", pointer, [ctypes.c_int, pointer, text, size]),
        ("rd_kafka_handle_mock_cluster", pointer, [pointer]),
        ("rd_kafka_mock_cluster_bootstraps", text, [pointer]),
        ("rd_kafka_headers_new", pointer, [size]),
        ("rd_kafka_header_add", ctypes.c_int, [pointer, text, size, text, size]),
        ("rd_kafka_flush", ctypes.c_int, [pointer, ctypes.c_int]),
        ("rd_kafka_destroy", None, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
