"""Records of the readers as rows of Arrow, with their headers."""

from __future__ import annotations

import logging
import operator
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from homeport.container.kafka.record_reader import Form
from homeport.container.native.record_queue import Polled, RecordQueue, Unnamed
from homeport.container.progress.transaction_plan import HeaderPairs

_LOG = logging.getLogger(__name__)

RECORDS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("headers", pa.map_(pa.string(), pa.binary())),
    ]
)
_PLAIN = pa.schema(list(RECORDS)[:-1])
_HEADERS = RECORDS.field("headers").type


def records_of(messages: Sequence[Message]) -> pa.RecordBatch:
    """Return ``messages`` as rows of ``RECORDS``."""
    # Null also where all headers are left out, whatever else the batch has.
    headers = [headers_of(m) or None for m in messages]
    columns = [
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([m.value() for m in messages], pa.binary()),
        pa.array([m.offset() for m in messages], pa.int64()),
        pa.array([m.timestamp()[1] for m in messages], pa.int64()),
        pa.array(headers, _HEADERS) if any(headers) else pa.nulls(len(messages), _HEADERS),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def _of_queue(queue: RecordQueue, polled: Polled) -> pa.RecordBatch:
    """Return what was ``polled`` as rows of ``RECORDS``."""
    for unnamed in polled.unnamed:
        _warn_of(queue.places[unnamed.place], unnamed)
    schema = RECORDS if polled.has_headers else _PLAIN
    records = pa.RecordBatch._import_from_c(queue.take_arrow(), schema)  # noqa: SLF001 - as Arrow's manual
    if not polled.has_headers:
        nothing = pa.nulls(polled.rows, _HEADERS)
        records = pa.RecordBatch.from_arrays([*records.columns, nothing], schema=RECORDS)
    return records


ARROW = Form(records_of, _of_queue)

_READ_HEADERS = operator.methodcaller("headers")


def headers_of(message: Message) -> HeaderPairs | None:
    """Return the headers whose names are text; log a record that has others.

    For a name that is not UTF-8 the library raises at the first call. Each further call returns a
    tuple without the name, whose first element ends the process. The library raises and returns a
    result; Python checks for that only in calls that it has not specialized. A plain
    ``message.headers()`` would be specialized.
    """
    pairs: Any  # the library's types allow dicts, too
    try:
        pairs = _READ_HEADERS(message)
    except SystemError:
        pairs = message.headers()
        known = [pair for pair in pairs if not repr(pair).startswith("(<NULL>")]
        message.set_headers(known)  # for the next call
        place = message.topic() or "", message.partition() or 0
        left_out = len(pairs) - len(known)
        _warn_of(place, Unnamed(0, left_out, len(pairs), message.offset() or 0))
        pairs = known
    found: HeaderPairs | None = pairs
    return found


def _warn_of(place: tuple[str, int], unnamed: Unnamed) -> None:
    _LOG.warning(
        "input %s partition %s offset %s: %d of its %d headers have names that are not UTF-8, "
        "and are left out",
        *place,
        unnamed.offset,
        unnamed.left_out,
        unnamed.headers,
    )
