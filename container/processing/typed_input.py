"""TypedInput: the values of a micro-batch as columns, by the schemas of its inputs.

PURE, except for the log of ``BadRecords``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.system_stream import SystemStream
from homeport.container.api import BATCH_SCHEMA
from homeport.container.processing.records import BadRecords, Row
from homeport.container.serde.columns import Columns
from homeport.container.spark.inputs import Rows, SplitRows, Wanted, fields_wanted
from homeport.container.spark.reads import Fields

Refused = Sequence[tuple[Row, str]]
"""Rows as they came, and why each is not of the schema; in their order."""
_VALUE = BATCH_SCHEMA.get_field_index("value")


@dataclass(frozen=True)
class Typing:
    """The ``Columns`` of values. ``serde``: its name, for messages."""

    columns: Columns
    serde: str


class TypedInput:
    """One per container with a pipeline or a BatchTask whose inputs have a schema.

    ``typings`` {stream: the typing of its values}; values of others stay bytes. Or {None: the
    typing of all values}: then a batch stays one table. ``wanted``: from a number of rows to the
    fields that a batch of so many needs; None: all.
    """

    def __init__(
        self,
        typings: Mapping[SystemStream | None, Typing],
        bad: BadRecords,
        wanted: Callable[[int], Wanted | None] = lambda _rows: None,
    ) -> None:
        self._typings = typings
        self._bad = bad
        self._wanted = wanted

    def of(self, table: pa.Table) -> tuple[Rows, Refused]:
        """Return ``table`` with typed values, and the rows that do not fit their schema.

        Values have only the fields that are read; null in Kafka is null. ``refuse`` handles the
        other rows later: the batch of the table may be processed much later.
        """
        wanted = self._wanted(table.num_rows)
        typing = self._typings.get(None)
        if typing is not None:
            typed, bad = _typed(table, typing, fields_wanted(wanted, None))
            return typed, tuple(bad.values())
        by_stream: dict[SystemStream, pa.Table] = {}
        refused: dict[int, tuple[Row, str]] = {}
        for stream, places in _places(table).items():
            rows, typing = table.take(places), self._typings.get(stream)
            if typing is not None:
                rows, bad = _typed(rows, typing, fields_wanted(wanted, stream))
                refused.update((places[place].as_py(), row) for place, row in bad.items())
            by_stream[stream] = rows
        return SplitRows(by_stream), tuple(refused[place] for place in sorted(refused))

    def refuse(self, refused: Refused) -> None:
        """Drop these rows by the rules for bad records, within the open transaction.

        Raises:
            UndecodableError: they may not be dropped.
        """
        for row, reason in refused:
            self._bad.met(row, reason)


def _typed(
    table: pa.Table, typing: Typing, fields: Fields
) -> tuple[pa.Table, dict[int, tuple[Row, str]]]:
    """Return the typed rows, and {place: (row, reason)} of the others, in their order."""
    values = table.column(_VALUE).combine_chunks()
    decoded = typing.columns.decode(values, fields)
    typed = table.set_column(_VALUE, pa.field("value", decoded.column.type), decoded.column)
    if not decoded.bad:
        return typed, {}
    places = sorted(decoded.bad)
    said = f"its value cannot be read by the serde {typing.serde!r}"
    rows = zip(places, table.take(places).to_pylist(), strict=True)
    refused = {place: (row, f"{said}: {decoded.bad[place]}") for place, row in rows}
    kept = [place not in decoded.bad for place in range(table.num_rows)]
    return typed.filter(pa.array(kept)), refused


def _places(table: pa.Table) -> dict[SystemStream, pa.Array]:
    found = table.select(["system", "stream"]).group_by(["system", "stream"]).aggregate([])
    places: dict[SystemStream, pa.Array] = {}
    for row in found.to_pylist():
        is_system = pc.equal(table["system"], row["system"])
        mask = pc.and_(is_system, pc.equal(table["stream"], row["stream"]))
        places[SystemStream(row["system"], row["stream"])] = pc.indices_nonzero(mask)
    return places
