"""Records of ``__transaction_state``, as Kafka's transaction coordinators write them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT = 0, 1, 2, 3, 5


def key(name: str, version: int = 0) -> bytes:
    """Of an id."""
    return struct.pack(">hh", version, len(name.encode())) + name.encode()


def plain(
    status: int,
    places: Iterable[tuple[str, int]],
    producer: tuple[int, int] = (7, 1),
    updated_ms: int = 5,
) -> bytes:
    """A value of version 0. ``producer``: its id and epoch."""
    places = list(places)
    data = struct.pack(">hqhibi", 0, *producer, 10_000, status, len(places))
    for topic, partition in places:
        data += struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">ii", 1, partition)
    return data + struct.pack(">qq", updated_ms, 4)


def flexible(status: int, places: Iterable[tuple[str, int]]) -> bytes:
    """A value of version 1, with tagged fields wherever there may be some."""
    places = list(places)
    tags = b"\x01" + b"\x02" + b"\x03" + b"abc"
    data = struct.pack(">hqhib", 1, 7, 1, 10_000, status) + _variable(len(places) + 1)
    for topic, partition in places:
        data += _variable(len(topic) + 1) + topic.encode()
        data += _variable(2) + struct.pack(">i", partition) + tags
    return data + struct.pack(">qq", 5, 4) + tags


def _variable(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])
