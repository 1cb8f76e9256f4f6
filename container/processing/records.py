"""Rows of a micro-batch as messages for a StreamTask, and what becomes of those that are no such.

PURE but for the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from homeport.config.errors import HomeportError
from homeport.container.api import BATCH_SCHEMA, IncomingMessage, MessageCollector
from homeport.container.serde.serdes import Serde, SerdeFailedError

_LOG = logging.getLogger(__name__)

REASON_HEADER = "homeport.reason"
TOPIC_HEADER = "homeport.source.topic"
PARTITION_HEADER = "homeport.source.partition"
OFFSET_HEADER = "homeport.source.offset"

_DROP_KEY = "task.drop.deserialization.errors"

Row = Mapping[str, Any]
SerdesOf = Callable[[str, str], tuple[Serde | None, Serde | None]]
"""(system, stream) to the serdes of its keys and of its values; None: they stay bytes."""


class UndecodableError(HomeportError):
    """An input record that its serde cannot read, and that may not be dropped."""


class Messages(Protocol):
    """How rows become messages."""

    def of(self, rows: pa.Table) -> Iterator[IncomingMessage]:
        """The messages of ``rows``, in their order."""


class BadRecords:
    """What becomes of records that their serdes cannot read. One per container.

    Args:
        drop: whether they are skipped; if not, the first one is an error.
        dead_letter: ``system.stream`` that skipped ones are sent to, within the transaction.
        collector: where they are sent.
    """

    def __init__(self, collector: MessageCollector, dead_letter: str | None, *, drop: bool) -> None:
        self._collector = collector
        self._dead_letter = dead_letter
        self._drop = drop
        self.dropped = 0

    def met(self, row: Row, reason: str) -> None:
        """The record is skipped, counted, logged, and sent to the dead letters where there are any.

        Raises:
            UndecodableError: nothing may be dropped.
        """
        place = (
            f"{row['system']}.{row['stream']} partition {row['partition']} offset {row['offset']}"
        )
        if not self._drop:
            raise UndecodableError(
                f"input {place}: {reason}; correct its writer, or set {_DROP_KEY}=true to skip "
                "such records"
            )
        self.dropped += 1
        _LOG.warning("dropped %s: %s (%d so far)", place, reason, self.dropped)
        if self._dead_letter is None:
            return
        self._collector.send(
            self._dead_letter,
            row["value"],
            row["key"],
            headers={
                **dict(row["headers"] or ()),
                REASON_HEADER: reason.encode(),
                TOPIC_HEADER: row["stream"].encode(),
                PARTITION_HEADER: str(row["partition"]).encode(),
                OFFSET_HEADER: str(row["offset"]).encode(),
            },
        )


class InputMessages:
    """Messages of rows as they came from Kafka."""

    def __init__(self, serdes_of: SerdesOf, bad: BadRecords) -> None:
        self._serdes_of = serdes_of
        self._bad = bad
        self._known: dict[tuple[str, str], tuple[Serde | None, Serde | None]] = {}

    def of(self, rows: pa.Table) -> Iterator[IncomingMessage]:
        """The messages of ``rows`` that can be read, in their order.

        Raises:
            UndecodableError: one cannot be read, and may not be dropped.
        """
        names = [name for name in BATCH_SCHEMA.names if name != "task"]
        columns = [rows.column(name).to_pylist() for name in names]
        for values in zip(*columns, strict=True):
            row = dict(zip(names, values, strict=True))
            message = self._message(row)
            if message is not None:
                yield message

    def _message(self, row: Row) -> IncomingMessage | None:
        stream = (row["system"], row["stream"])
        serdes = self._known.get(stream)
        if serdes is None:
            serdes = self._known[stream] = self._serdes_of(*stream)
        decoded = []
        for part, serde in zip(("key", "value"), serdes, strict=True):
            data = row[part]
            if data is not None and serde is not None:
                try:
                    data = serde.from_bytes(data)
                except SerdeFailedError:
                    raise
                except (HomeportError, ValueError, RecursionError) as error:
                    reason = " ".join(str(error).split())
                    said = f"its {part} cannot be read by the serde {serde.name!r}: {reason}"
                    self._bad.met(row, said)
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
            dict(row["headers"] or ()),
        )


class PipelineMessages:
    """Messages of rows that a pipeline made: the row is the value."""

    def of(self, rows: pa.Table) -> Iterator[IncomingMessage]:
        """The messages of ``rows``, in their order."""
        for row in rows.drop_columns(["task"]).to_pylist():
            yield IncomingMessage(
                _text(row.get("system")),
                _text(row.get("stream")),
                _number(row.get("partition")),
                _number(row.get("offset")),
                row.get("key"),
                row,
                _number(row.get("timestamp")),
                dict(row.get("headers") or ()),
            )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1
