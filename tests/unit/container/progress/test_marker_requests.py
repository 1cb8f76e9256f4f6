"""Requests to the leaders of partitions and their answers, recorded with a broker of Kafka 4.3."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.container.progress.marker_requests import (
    Refused,
    fetch_request,
    first_batch,
    marker_answer,
    marker_request,
)
from homeport.container.progress.transaction_state import Batch, Ended, Outcome

OUT = ("out", 0)
ABORTED = Ended("an-id", Outcome.ABORTED, frozenset({OUT}), 1, 0, 0, {})
BATCH = Batch(1, 0, 1_795_414_852_333)

FETCH = bytes.fromhex(
    "0001000a000000010008686f6d65706f7274ffffffff0000000000000000000000010000000000ffffffff"
    "0000000100036f75740000000100000000ffffffff0000000000000009ffffffffffffffff0000000100000000"
)
"""A request for the record at offset 9 of ``out``."""
RECORDS = bytes.fromhex(
    "00000001000000000000000000000000000100036f757400000001000000000000000000000000000a"
    "00000000000000090000000000000000ffffffff00000046"
    "00000000000000090000003a000000000226fd5294001000000000000001a2071082ed000001a2071082ed"
    "00000000000000010000000000030000000110000000026b027600"
)
"""A transaction's batch, whose offset is 9."""
MARKER = bytes.fromhex(
    "00000001000000000000000000000000000100036f757400000001000000000000000000000000000a"
    "00000000000000090000000000000000ffffffff0000004e"
    "00000000000000010000004200000000021c1de608003000000000000001a207108110000001a207108110"
    "00000000000000010000ffffffff000000012000000008000000010c00000000000000"
)
"""The end of a transaction, whose offset is 1."""
OUT_OF_RANGE = bytes.fromhex(
    "00000001000000000000000000000000000100036f757400000001000000000001"
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffff00000000"
)
WRITE = bytes.fromhex(
    "001b0001000000010008686f6d65706f72740002000000000000000100000002046f7574020000000000000000000000"
)
WRITTEN = bytes.fromhex("000000010002000000000000000102046f75740200000000000000000000")
OLD_EPOCH = bytes.fromhex("000000010002000000000000000102046f75740200000000002f00000000")


def test_a_batch_is_requested_and_found() -> None:
    """Its producer, the producer's epoch, and when its first record was written."""
    assert fetch_request(OUT, 9) == FETCH
    assert first_batch(OUT, 9, RECORDS) == BATCH
    count = RECORDS.index(b"\xff\xff\xff\xff")
    listed = RECORDS[:count] + b"\0\0\0\1" + bytes(16) + RECORDS[count + 4 :]
    assert first_batch(OUT, 9, listed) == BATCH, "aborted transactions are passed over"


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (8, RECORDS),
        (1, MARKER),
        (9, RECORDS[: RECORDS.index(b"\0\0\0\x46")] + bytes(4)),
        (9, RECORDS.replace(b"\2\x26\xfd\x52\x94", b"\1\x26\xfd\x52\x94")),
        (9, RECORDS.replace(b"\x94\0\x10", b"\x94\0\0")),
    ],
)
def test_a_batch_that_is_not_the_first_of_a_transaction_is_none(offset: int, answer: bytes) -> None:
    """One that begins elsewhere, a marker, nothing, one of another form, one of no transaction."""
    assert first_batch(OUT, offset, answer) is None


def test_a_leader_refuses_a_fetch() -> None:
    """For the partition, or as a whole."""
    assert first_batch(OUT, 99, OUT_OF_RANGE) == Refused(1)
    assert first_batch(OUT, 9, RECORDS[:8] + b"\0\x23" + RECORDS[10:]) == Refused(35)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        RECORDS[:60],
        RECORDS[:100],
        RECORDS.replace(b"out", b"in1"),
        RECORDS.replace(b"\0\0\0\x01", b"\0\0\0\x02", 1),
    ],
)
def test_an_answer_of_no_known_form_is_an_error(answer: bytes) -> None:
    """Cut short, of another partition, or of another request."""
    with pytest.raises(WireError):
        first_batch(OUT, 9, answer)


def test_an_end_is_written_as_it_was_decided() -> None:
    """With producer, epochs and outcome; each byte of a name's length has seven bits of it."""
    assert marker_request(OUT, ABORTED) == WRITE
    committed = replace(
        ABORTED, outcome=Outcome.COMMITTED, producer_id=258, producer_epoch=3, coordinator_epoch=4
    )
    assert marker_request(OUT, committed) == WRITE[:19] + bytes.fromhex(
        "02000000000000010200030102046f7574020000000000000000040000"
    )
    for letters, length in ((200, b"\xc9\x01"), (127, b"\x80\x01"), (126, b"\x7f")):
        named = marker_request(("t" * letters, 7), ABORTED)
        assert b"\x02" + length + b"t" * letters + b"\x02\0\0\0\7" in named


def test_the_leader_says_whether_an_end_is_written() -> None:
    """Or why not."""
    assert marker_answer(OUT, ABORTED, WRITTEN) is None
    assert marker_answer(OUT, ABORTED, OLD_EPOCH) == Refused(47)


@pytest.mark.parametrize("answer", [b"", WRITTEN[:25], WRITTEN.replace(b"out", b"in1")])
def test_an_unknown_answer_to_an_end_is_an_error(answer: bytes) -> None:
    """Cut short, or of another partition: it is unknown whether the end is written."""
    with pytest.raises(WireError):
        marker_answer(OUT, ABORTED, answer)
