"""What is known of transactions by the records of Kafka's transaction coordinators.

``test_hanging_transactions`` reads those of a real broker.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from homeport.container.progress.transaction_state import (
    Ended,
    Outcome,
    Place,
    TransactionEnds,
    transactional_id_of,
)

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT = 0, 1, 2, 3, 5
LOG = ("a-changelog", 3)
OUT = ("out" * 50, 200)
BOTH = frozenset({LOG, OUT})


def _key(name: str, version: int = 0) -> bytes:
    return struct.pack(">hh", version, len(name.encode())) + name.encode()


def _plain(status: int, places: list[Place]) -> bytes:
    """Of version 0."""
    data = struct.pack(">hqhibi", 0, 7, 1, 10_000, status, len(places))
    for topic, partition in places:
        data += struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">ii", 1, partition)
    return data + struct.pack(">qq", 5, 4)


def _flexible(status: int, places: list[Place]) -> bytes:
    """Of version 1, with tagged fields wherever there may be some."""
    tags = b"\x01" + b"\x02" + b"\x03" + b"abc"
    data = struct.pack(">hqhib", 1, 7, 1, 10_000, status) + _variable(len(places) + 1)
    for topic, partition in places:
        data += _variable(len(topic) + 1) + topic.encode()
        data += _variable(2) + struct.pack(">i", partition) + tags
    return data + struct.pack(">qq", 5, 4) + tags


def _variable(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])


@pytest.mark.parametrize("value", [_plain, _flexible])
def test_a_transaction_has_the_end_that_was_prepared(
    value: Callable[[int, list[Place]], bytes],
) -> None:
    """In every partition of it; what comes after, complete or empty, takes nothing back."""
    ends = TransactionEnds()
    for name, status in (("one", PREPARE_COMMIT), ("two", PREPARE_ABORT)):
        ends.take(_key(name), value(ONGOING, [LOG, OUT]))
        assert name not in {ended.transactional_id for ended in ends.in_place(LOG)}
        ends.take(_key(name), value(status, [LOG, OUT]))
    ends.take(_key("two"), value(COMPLETE_ABORT, []))
    ends.take(_key("two"), value(EMPTY, []))
    expected = [Ended("two", Outcome.ABORTED, BOTH), Ended("one", Outcome.COMMITTED, BOTH)]
    assert ends.in_place(LOG) == ends.in_place(OUT) == expected
    assert ends.in_place(("a-changelog", 2)) == []


def test_the_last_transaction_of_an_id_in_a_partition_counts() -> None:
    """One that is open there will end what was left open; elsewhere the one before it counts."""
    ends = TransactionEnds()
    ends.take(_key("one"), _plain(PREPARE_ABORT, [LOG, OUT]))
    ends.take(_key("one"), _plain(ONGOING, [LOG]))
    assert ends.in_place(LOG) == []
    assert ends.in_place(OUT) == [Ended("one", Outcome.ABORTED, BOTH)]
    ends.take(_key("one"), _plain(PREPARE_COMMIT, [LOG]))
    assert ends.in_place(LOG) == [Ended("one", Outcome.COMMITTED, frozenset({LOG}))]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\x00\x02" + _plain(PREPARE_ABORT, [LOG])[2:],
        _plain(PREPARE_ABORT, [LOG])[:20],
        _flexible(PREPARE_ABORT, [LOG])[:22],
        _plain(PREPARE_ABORT, [LOG]).replace(b"a-ch", b"\xff\xff\xff\xff"),
    ],
)
def test_what_is_of_no_known_form_is_passed_over(value: bytes | None) -> None:
    """A later version, a record that is cut short, a deletion."""
    ends = TransactionEnds()
    ends.take(_key("one"), value)
    assert ends.in_place(LOG) == []


def test_a_key_is_an_id_of_the_known_form() -> None:
    """Of another version, cut short, or of another length than it says, it is none."""
    assert transactional_id_of(_key("an-id")) == "an-id"
    assert transactional_id_of(_key("an-id", version=1)) is None
    assert transactional_id_of(_key("an-id")[:-1]) is None
    assert transactional_id_of(b"\x00") is None
    assert transactional_id_of(b"\x00\x00\x00\x01\xff") is None
    ends = TransactionEnds()
    ends.take(b"", _plain(PREPARE_ABORT, [LOG]))
    assert ends.in_place(LOG) == []
