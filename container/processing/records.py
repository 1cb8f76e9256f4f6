"""Rows of a micro-batch: by task, and as messages for a StreamTask; and the bad records.

PURE but for the log.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.errors import HomeportError
from homeport.container.api import BATCH_SCHEMA, Headers, IncomingMessage, MessageCollector
from homeport.container.callables import TaskFailedError
from homeport.container.serde.columns import reason_of
from homeport.container.serde.serdes import Serde, SerdeFailedError, SerdesOf
from homeport.container.spark.faults import Named

_LOG = logging.getLogger(__name__)

REASON_HEADER = "homeport.reason"
TOPIC_HEADER = "homeport.source.topic"
PARTITION_HEADER = "homeport.source.partition"
OFFSET_HEADER = "homeport.source.offset"

_PLACE = ("system", "stream", "partition")
_REST = ("offset", "timestamp", "headers")
_EMPTY: Mapping[str, tuple[type, str | int]] = {
    "system": (str, ""),
    "stream": (str, ""),
    "partition": (int, -1),
    "offset": (int, -1),
    "timestamp": (int, -1),
}
_HEADERS = BATCH_SCHEMA.field("headers").type
_ROWS, _BYTES = 1024, 1024 * 1024
"""So much is decoded at once; objects take several times their bytes."""

_DROP_KEY = "task.drop.deserialization.errors"

Row = Mapping[str, Any]
Messages = Callable[[pa.Table], Iterator[IncomingMessage]]
"""From rows to their messages, in their order."""


class UndecodableError(HomeportError):
    """An input record that its serde cannot read, and that may not be dropped."""


def place_of(row: Row) -> str:
    """Return where an input record is, in messages."""
    return f"{row['system']}.{row['stream']} partition {row['partition']} offset {row['offset']}"


def rows_by_task(table: pa.Table, pipeline: Named) -> Iterator[tuple[str, pa.Table]]:
    """Yield (task, its rows) of a table that is sorted by task; slices, not copies.

    ``pipeline``: the maker of the table, for messages.

    Raises:
        ConfigError: a row has no task.
    """
    tasks = table.column("task")
    if tasks.null_count:
        raise pipeline.fault(
            f"{tasks.null_count} rows came out of the pipeline without a task",
            "keep the column 'task' as it came in",
        )
    runs = pc.run_end_encode(tasks.combine_chunks())
    start = 0
    for task, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield task, table.slice(start, end - start)
        start = end


class BadRecords:
    """Handles records that their serdes cannot read. One per container.

    With ``drop`` they are skipped, and go to the stream ``dead_letter``, if any, within the
    transaction. Else the first one is an error.
    """

    def __init__(self, collector: MessageCollector, dead_letter: str | None, *, drop: bool) -> None:
        self._collector = collector
        self._dead_letter = dead_letter
        self._drop = drop
        self.dropped = 0

    def met(self, row: Row, reason: str) -> None:
        """Skip the record, count it, log it, and send it to the dead letters where there are any.

        Raises:
            UndecodableError: nothing may be dropped.
        """
        place = place_of(row)
        if not self._drop:
            raise UndecodableError(
                f"input {place}: {reason}; correct its writer, or set {_DROP_KEY}=true to skip "
                "such records"
            )
        self.dropped += 1
        _LOG.warning("dropped %s: %s (%d so far)", place, reason, self.dropped)
        if self._dead_letter is None:
            return
        own = {
            REASON_HEADER: reason,
            TOPIC_HEADER: row["stream"],
            PARTITION_HEADER: str(row["partition"]),
            OFFSET_HEADER: str(row["offset"]),
        }
        headers = [
            *(pair for pair in row["headers"] or () if pair[0] not in own),
            *((name, text.encode()) for name, text in own.items()),
        ]
        try:
            self._collector.send(self._dead_letter, row["value"], row["key"], headers=headers)
        except ValueError as error:
            raise UndecodableError(
                f"input {place}: {reason}; its dead letter cannot be sent: {error}"
            ) from None


class ReadRecords(NamedTuple):
    """Records of one partition whose keys and values are read, in their order.

    ``rows``: the same records, a row each.
    """

    system: str
    stream: str
    keys: list[Any]
    values: list[Any]
    rows: pa.Table

    def messages(self) -> Iterator[IncomingMessage]:
        """Return the records as messages."""
        partition = self.rows.column("partition")[0].as_py()
        offsets, timestamps, headers = (_list(self.rows.column(name)) for name in _REST)
        place = repeat(self.system), repeat(self.stream), repeat(partition)
        fields = zip(*place, offsets, self.keys, self.values, timestamps, headers)  # noqa: B905 - the place has no end
        return _messages(fields)


class InputMessages:
    """Messages of rows as they came from Kafka, read by the column.

    Where an element of a column cannot be read, the rows are read one by one: each message leaves
    before the next one is read. So are the rows of a stream with a serde of the job's own.

    ``bad`` gets each record that cannot be read, and why; it may raise to end the container.
    """

    def __init__(self, serdes_of: SerdesOf, bad: Callable[[Row, str], None]) -> None:
        self._serdes_of = serdes_of
        self._bad = bad
        self._known: dict[tuple[str, str], tuple[Serde | None, Serde | None]] = {}

    def of(self, rows: pa.Table) -> Iterator[IncomingMessage]:
        """Return the messages of ``rows`` that can be read, in their order.

        Raises:
            UndecodableError: one cannot be read, and may not be dropped.
        """
        return chain.from_iterable(
            part.messages() if isinstance(part, ReadRecords) else part for part in self.parts(rows)
        )

    def parts(self, rows: pa.Table) -> Iterator[ReadRecords | Iterator[IncomingMessage]]:
        """Yield ``rows`` in parts: records that are read, or messages that are read as they leave.

        Raises:
            UndecodableError: (from the messages) as ``of``.
        """
        return map(self._part, _parts(rows))

    def _part(self, part: pa.Table) -> ReadRecords | Iterator[IncomingMessage]:
        system, stream = (part.column(name)[0].as_py() for name in ("system", "stream"))
        known = self._known.get((system, stream))
        if known is None:
            known = self._known[system, stream] = self._serdes_of(system, stream)
        key, value = known
        if any(serde is not None and serde.is_own for serde in known):
            return self._one_by_one(part, known)
        try:
            keys, values = _read(part.column("key"), key), _read(part.column("value"), value)
        except Exception:  # noqa: BLE001 - one by one it comes again, at its place
            return self._one_by_one(part, known)
        return ReadRecords(system, stream, keys, values, part)

    def _one_by_one(
        self, part: pa.Table, serdes: tuple[Serde | None, Serde | None]
    ) -> Iterator[IncomingMessage]:
        for row in part.drop_columns(["task"]).to_pylist():
            message = self._message(row, serdes)
            if message is not None:
                yield message

    def _message(
        self, row: Row, serdes: tuple[Serde | None, Serde | None]
    ) -> IncomingMessage | None:
        decoded = []
        for part, serde in zip(("key", "value"), serdes, strict=True):
            data = row[part]
            if data is not None and serde is not None:
                try:
                    data = serde.from_bytes(data)
                except SerdeFailedError as error:
                    raise SerdeFailedError(f"input {place_of(row)}: its {part}: {error}") from error
                except (HomeportError, ValueError, RecursionError) as error:
                    said = f"its {part} cannot be read by the serde {serde.name!r}"
                    self._bad(row, f"{said}: {reason_of(error)}")
                    return None
            decoded.append(data)
        return IncomingMessage(
            row["system"],
            row["stream"],
            row["partition"],
            row["offset"],
            decoded[0],
            decoded[1],
            row["timestamp"],
            Headers.of(row["headers"] or ()),
        )


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield ``rows`` in slices of one partition each, of at most ``_ROWS`` and ``_BYTES``."""
    rows = rows.combine_chunks()
    ends: set[int] = {rows.num_rows}
    for name in _PLACE:
        for array in rows.column(name).chunks:
            ends.update(pc.run_end_encode(array).run_ends.to_pylist())
    start = 0
    for end in sorted(ends):
        for first in range(start, end, _ROWS):
            yield from _small(rows.slice(first, min(_ROWS, end - first)))
        start = end


def _small(part: pa.Table) -> Iterator[pa.Table]:
    if part.num_rows == 1 or part.nbytes <= _BYTES:
        yield part
        return
    half = part.num_rows // 2
    yield from _small(part.slice(0, half))
    yield from _small(part.slice(half))


def _messages(fields: Iterable[tuple[Any, ...]]) -> Iterator[IncomingMessage]:
    """Return messages of all their fields, in order; the class's own call takes twice as long."""
    return map(tuple.__new__, repeat(IncomingMessage), fields)


def _list(column: pa.ChunkedArray) -> list[Any]:
    """Return the elements as objects of Python; headers as ``Headers``."""
    if column.type != _HEADERS:
        elements: list[Any] = column.to_pylist()
        return elements
    if column.null_count == len(column):
        return [Headers() for _ in range(len(column))]
    return [Headers.of(pairs or ()) for pairs in column.to_pylist()]


def _read(column: pa.ChunkedArray, serde: Serde | None) -> list[Any]:
    elements: list[Any] = column.to_pylist()
    if serde is None:
        return elements
    if serde.from_many is not None and not column.null_count:
        return serde.from_many(elements)
    from_bytes = serde.from_bytes
    return [None if data is None else from_bytes(data) for data in elements]


def pipeline_messages(rows: pa.Table) -> Iterator[IncomingMessage]:
    """Return the messages of rows that a pipeline made, in their order: the row is the value."""
    batches = rows.drop_columns(["task"]).to_batches(_ROWS)
    return chain.from_iterable(map(_of_pipeline, batches))


def _of_pipeline(rows: pa.RecordBatch) -> Iterator[IncomingMessage]:
    """Return messages; fields whose column is absent, or of another type, are empty."""
    names = rows.schema.names
    columns = dict(zip(names, map(_objects, names, rows.columns), strict=True))
    values = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    absent = [None] * rows.num_rows
    fields = {name: columns.get(name, absent) for name in IncomingMessage._fields}
    fields["value"] = values or [{} for _ in absent]
    for name, (kind, empty) in _EMPTY.items():
        fields[name] = [v if isinstance(v, kind) else empty for v in fields[name]]
    fields["headers"] = [Headers.of(pairs or ()) for pairs in fields["headers"]]
    return _messages(zip(*fields.values(), strict=True))


def _objects(name: str, column: pa.Array) -> list[Any]:
    try:
        elements: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as error:
        raise TaskFailedError(
            f"the column {name!r} of the pipeline's rows has a value that Python has not "
            f"({reason_of(error)}): leave such rows out, or cast them to text or a number"
        ) from None
    return elements
