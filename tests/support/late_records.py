"""Records that reach a broker after the transaction that they belong to has ended, by raw requests.

No client sends such a record, but the network may deliver one late. The broker refuses it while it
asks the transaction coordinator first, which ``without_verification`` ends. It then begins a
transaction in the partition that no coordinator knows of: one that hangs.

Format: Kafka's Produce request version 7, with one record batch of magic 2.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

from confluent_kafka.admin import ResourceType
from producer_ids import Batch
from topic_records import alter

_VERIFICATION = "transaction.partition.verification.enable"
_PRODUCE, _VERSION = 0, 7
_TRANSACTIONAL = 0x10
_MAGIC = 2
_LIMIT_S = 30.0
_CASTAGNOLI = 0x82F63B78


@contextlib.contextmanager
def without_verification(servers: str) -> Iterator[None]:
    """The brokers do not ask whether a transaction is open, as brokers before Kafka 3.6."""
    alter(servers, "1", {_VERIFICATION: "false"}, ResourceType.BROKER)
    try:
        yield
    finally:
        alter(servers, "1", {_VERIFICATION: None}, ResourceType.BROKER)


def send_late(
    servers: str, transactional_id: str, place: tuple[str, int], after: Batch, entry: bytes
) -> int:
    """One more record of the writer of the batch ``after``, key and value ``entry``; its offset."""
    topic, partition = place
    records = _batch(after.producer_id, after.producer_epoch, 1, entry)
    body = b"".join(
        (
            _text(transactional_id),
            struct.pack(">hii", -1, 10_000, 1),
            _text(topic),
            struct.pack(">iii", 1, partition, len(records)),
            records,
        )
    )
    head = struct.pack(">hhi", _PRODUCE, _VERSION, 1) + _text("late")
    host, port = servers.partition(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), _LIMIT_S) as connection:
        connection.sendall(struct.pack(">i", len(head + body)) + head + body)
        answer = _received(connection, struct.unpack(">i", _received(connection, 4))[0])
    # Correlation id, one topic of that name, one partition: its number, an error, the offset.
    at = 4 + 4 + 2 + len(topic.encode()) + 4
    _, error, offset = struct.unpack_from(">ihq", answer, at)
    assert error == 0, f"the broker refused the late record: error {error}"
    return int(offset)


def _received(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        assert part, "the broker closed the connection"
        found += part
    return found


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _batch(producer_id: int, epoch: int, sequence: int, entry: bytes) -> bytes:
    now_ms = int(time.time() * 1000)
    length = _varint(len(entry))
    record = b"\0" + _varint(0) + _varint(0) + length + entry + length + entry + _varint(0)
    record = _varint(len(record)) + record
    fields = (_TRANSACTIONAL, 0, now_ms, now_ms, producer_id, epoch, sequence, 1)
    checked = struct.pack(">hiqqqhii", *fields) + record
    tail = struct.pack(">ibI", -1, _MAGIC, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def _varint(value: int) -> bytes:
    """Of a number that is not below 0, in zigzag."""
    rest, found = value << 1, b""
    while rest > 0x7F:
        found += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return found + bytes([rest])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
