"""Requests to the leader of a partition that no client library sends, and their answers.

PURE. Source of the form: Kafka's Fetch version 10 and WriteTxnMarkers version 1, their request
headers 1 and 2, response headers 0 and 1, and its record batch of magic 2. A request is about one
partition only, so that every field of an answer has its place.
"""

import struct
from dataclasses import dataclass

from homeport.config.errors import WireError
from homeport.container.progress.transaction_state import Batch, Ended, Outcome, Place

_FETCH, _FETCH_VERSION = 1, 10
_WRITE_MARKERS, _MARKERS_VERSION = 27, 1
_CORRELATION_ID = 1
_CLIENT = b"homeport"
_NOBODY, _NO_SESSION, _NO_EPOCH, _NO_OFFSET = -1, (0, -1), -1, -1
_MAX_BYTES = 1
"""Kafka answers with one whole batch, however large."""
_ERROR = struct.Struct(">h")
_BATCH = struct.Struct(">qiibIhiqqqh")
_MAGIC = 2
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_MORE = 0x80


@dataclass(frozen=True, slots=True)
class Refused:
    """The leader did not do it; ``code``: Kafka's."""

    code: int


def fetch_request(place: Place, offset: int) -> bytes:
    """Return a request for the batch at the offset, whether it is committed or not."""
    topic, partition = place
    return b"".join(
        (
            struct.pack(">hhi", _FETCH, _FETCH_VERSION, _CORRELATION_ID),
            _text(_CLIENT),
            struct.pack(">iiiibii", _NOBODY, 0, 0, _MAX_BYTES, 0, *_NO_SESSION),
            struct.pack(">i", 1) + _text(topic.encode()) + struct.pack(">i", 1),
            struct.pack(">iiqqi", partition, _NO_EPOCH, offset, _NO_OFFSET, _MAX_BYTES),
            struct.pack(">i", 0),
        )
    )


def first_batch(place: Place, offset: int, answer: bytes) -> Batch | Refused | None:
    """Return the transaction's batch that begins at the offset; None where none does.

    WireError: the answer is not of the form that is known here.
    """
    topic, partition = place
    try:
        correlation, _throttled, error, _session = struct.unpack_from(">iihi", answer)
        if error:
            return Refused(error)
        named = struct.pack(">i", 1) + _text(topic.encode()) + struct.pack(">ii", 1, partition)
        at = struct.calcsize(">iihi")
        if correlation != _CORRELATION_ID or answer[at : at + len(named)] != named:
            raise WireError(f"a Fetch of {topic} partition {partition} was answered for another")
        at += len(named)
        error, _head, _stable, _start, aborted = struct.unpack_from(">hqqqi", answer, at)
        if error:
            return Refused(error)
        at += struct.calcsize(">hqqqi") + struct.calcsize(">qq") * max(aborted, 0)
        (size,) = struct.unpack_from(">i", answer, at)
        if size <= 0:
            return None
        found = _BATCH.unpack_from(answer, at + struct.calcsize(">i"))
    except struct.error:
        raise WireError(f"the answer to a Fetch of {topic} partition {partition} is cut") from None
    first, _length, _epoch, magic, _crc, attributes, _delta, written_ms, _max, producer, epoch = (
        found
    )
    is_records = attributes & (_TRANSACTIONAL | _CONTROL) == _TRANSACTIONAL
    if magic != _MAGIC or first != offset or not is_records:
        return None
    return Batch(producer, epoch, written_ms)


def marker_request(place: Place, ended: Ended) -> bytes:
    """Return a request to write the end of a transaction, with its outcome, into one partition."""
    topic, partition = place
    is_commit = ended.outcome is Outcome.COMMITTED
    return b"".join(
        (
            struct.pack(">hhi", _WRITE_MARKERS, _MARKERS_VERSION, _CORRELATION_ID),
            _text(_CLIENT),
            _NO_TAGS,
            _ONE + struct.pack(">qh?", ended.producer_id, ended.producer_epoch, is_commit),
            _ONE + _short_text(topic) + _ONE + struct.pack(">i", partition) + _NO_TAGS,
            struct.pack(">i", ended.coordinator_epoch) + _NO_TAGS,
            _NO_TAGS,
        )
    )


def marker_answer(place: Place, ended: Ended, answer: bytes) -> Refused | None:
    """Return why the end was not written; None: it was. WireError: the answer has no known form."""
    topic, partition = place
    named = b"".join(
        (
            struct.pack(">i", _CORRELATION_ID) + _NO_TAGS,
            _ONE + struct.pack(">q", ended.producer_id),
            _ONE + _short_text(topic) + _ONE + struct.pack(">i", partition),
        )
    )
    if not answer.startswith(named) or len(answer) < len(named) + _ERROR.size:
        raise WireError(f"WriteTxnMarkers for {topic} partition {partition}: no known answer")
    (error,) = _ERROR.unpack_from(answer, len(named))
    return Refused(error) if error else None


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


def _short_text(value: str) -> bytes:
    data = value.encode()
    return _variable(len(data) + 1) + data


def _variable(value: int) -> bytes:
    found = b""
    while value >= _MORE:
        found += bytes([value & ~_MORE & 0xFF | _MORE])
        value >>= 7
    return found + bytes([value])


_NO_TAGS = b"\0"
_ONE = _variable(2)
"""The length of a list with one element, in a version with variable lengths."""
