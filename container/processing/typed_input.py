"""TypedInput: the values of a micro-batch as columns, by the schema of its inputs.

PURE but for the log of ``BadRecords``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from homeport.container.api import BATCH_SCHEMA
from homeport.container.processing.records import BadRecords, Row
from homeport.container.serde.columns import Columns

Refused = Sequence[tuple[Row, str]]
"""Rows as they came, and why each is not of the schema; in their order."""
_VALUE = BATCH_SCHEMA.get_field_index("value")


class TypedInput:
    """One per container with a pipeline or a BatchTask whose inputs have a schema.

    Args:
        columns: how values become a column.
        serde: its name, for messages.
        bad: what becomes of records that are not of the schema.
    """

    def __init__(self, columns: Columns, serde: str, bad: BadRecords) -> None:
        self._columns = columns
        self._serde = serde
        self._bad = bad

    def of(self, table: pa.Table) -> tuple[pa.Table, Refused]:
        """``table`` with the column ``value`` as the schema says, without the rows that are not.

        Null in Kafka is null. What becomes of the others, ``refuse`` decides: the table may be of a
        batch that is far from being processed.
        """
        values = table.column(_VALUE).combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # where the table has no rows
            values = pa.concat_arrays(values.chunks)
        decoded = self._columns.decode(values)
        field = pa.field("value", decoded.column.type)
        typed = table.set_column(_VALUE, field, decoded.column)
        if not decoded.bad:
            return typed, ()
        places = sorted(decoded.bad)
        rows = table.take(places).to_pylist()
        kept = [place not in decoded.bad for place in range(table.num_rows)]
        reasons = (decoded.bad[place] for place in places)
        return typed.filter(pa.array(kept)), tuple(zip(rows, reasons, strict=True))

    def refuse(self, refused: Refused) -> None:
        """They are dropped by the rules for bad records, within the open transaction.

        Raises:
            UndecodableError: they may not be.
        """
        for row, reason in refused:
            self._bad.met(row, f"its value cannot be read by the serde {self._serde!r}: {reason}")
