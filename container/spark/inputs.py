"""The rows of a micro-batch for a pipeline: its frames, and the order of its results. PURE."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.errors import HomeportError
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.frames import EntryColumns
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.reads import Fields

ORDER_COLUMNS = ("stream", "partition", "offset")
"""The columns that order the rows of one task."""
ALL = "input"
"""The name of the frame with the rows of all streams."""

Takes = Mapping[str, SystemStream | None]
"""{name of a frame: the stream of its rows; None: all streams}."""

WHOLE: Takes = {ALL: None}
"""One frame with all rows."""


_VALUE = BATCH_SCHEMA.get_field_index("value")


def batch_schema(value: pa.DataType) -> pa.Schema:
    """Return the schema of a micro-batch whose column ``value`` is of that type."""
    return BATCH_SCHEMA.set(_VALUE, pa.field("value", value))


def whole_schema(found: pa.Schema, given: pa.Schema) -> pa.Schema:
    """Return ``given`` if ``found`` differs from it only by missing fields of values; else it."""
    if found.names != given.names:
        return found
    values, all_values = found.field("value").type, given.field("value").type
    if not (pa.types.is_struct(values) and pa.types.is_struct(all_values)):
        return found
    is_part = set(values) <= set(all_values)
    rest = found.set(found.get_field_index("value"), given.field("value"))
    return given if is_part and rest.equals(given) else found


@dataclass(frozen=True)
class Given:
    """The input of a pipeline. ``types``: {frame: type of its column ``value``}, else binary.

    ``stores``: {adjunct store that it may ask for: how its entries become rows, or why not}.
    """

    takes: Takes = field(default_factory=lambda: WHOLE)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    stores: Mapping[str, EntryColumns | HomeportError] = field(default_factory=dict)

    def schemas(self) -> dict[str, pa.Schema]:
        """Return {frame: its columns}."""
        return {name: batch_schema(self.types.get(name, pa.binary())) for name in self.takes}


@dataclass(frozen=True)
class SplitRows:
    """The rows of a micro-batch by stream, as their values have different types; each in order."""

    by_stream: Mapping[SystemStream, pa.Table]

    @property
    def num_rows(self) -> int:
        """Return the sum of all streams."""
        return sum(table.num_rows for table in self.by_stream.values())

    @property
    def nbytes(self) -> int:
        """Return the sum of all streams."""
        return sum(table.nbytes for table in self.by_stream.values())

    @property
    def first(self) -> pa.Table | None:
        """Return the table of the first stream that has rows."""
        return next((table for table in self.by_stream.values() if table.num_rows), None)


Rows: TypeAlias = pa.Table | SplitRows
"""The rows of a micro-batch."""

Wanted = Mapping[SystemStream | None, Fields]
"""{stream, None for all: the fields that are read of its values}; no field of others is read."""


def fields_wanted(wanted: Wanted | None, stream: SystemStream | None) -> Fields:
    """Return the fields that are read of the values of ``stream``, None for all streams.

    ``wanted``: None: all fields may be read.
    """
    if wanted is None:
        return None
    asked = wanted.keys() if stream is None else wanted.keys() & {stream, None}
    found: set[str] = set()
    for name in asked:
        fields = wanted[name]
        if fields is None:
            return None
        found |= fields
    return frozenset(found)


AS_THEY_COME = Given()
"""One frame, whose values are bytes."""


def stream_names(inputs: Iterable[SystemStream]) -> dict[str, SystemStream]:
    """Return {name: stream} of each input once.

    The name is the stream's own. It is ``system.stream`` if another input has the same name, or if
    the name is ``input``, which stands for all. Spark ignores case.
    """
    streams = tuple(dict.fromkeys(inputs))
    own = [stream.stream.lower() for stream in streams]
    is_taken = {name for name in own if own.count(name) > 1 or (name == ALL and len(own) > 1)}
    return {str(s) if s.stream.lower() in is_taken else s.stream: s for s in streams}


def parts(rows: Rows, given: Given) -> dict[str, pa.Table]:
    """Return {frame: its rows, in their order}; a table without rows where there are none."""
    if isinstance(rows, SplitRows):
        found = {
            name: rows.by_stream.get(stream) if stream is not None else None
            for name, stream in given.takes.items()
        }
        schemas = given.schemas()
        return {
            name: schemas[name].empty_table() if table is None or not table.num_rows else table
            for name, table in found.items()
        }
    return {name: _of_stream(rows, stream) for name, stream in given.takes.items()}


def _of_stream(table: pa.Table, stream: SystemStream | None) -> pa.Table:
    if stream is None:
        return table
    is_system = pc.equal(table["system"], stream.system)
    found = table.filter(pc.and_(is_system, pc.equal(table["stream"], stream.stream)))
    # A filter that keeps no row leaves no chunk, which Spark does not take.
    return found if found.num_rows else table.schema.empty_table()


def with_task(rows: pa.Table, given: Rows) -> pa.Table:
    """Return ``rows``, which a pipeline made of ``given``, with a task for each.

    A row without a task, as of an aggregate, gets the task of the first row of ``given``. It is one
    of the container's, and all its tasks send in one transaction.
    """
    table = given.first if isinstance(given, SplitRows) else given
    first = table["task"][0] if table is not None and table.num_rows else pa.scalar("")
    if "task" not in rows.column_names:
        return rows.append_column("task", pa.repeat(first, rows.num_rows))
    index = rows.column_names.index("task")
    return rows.set_column(index, "task", pc.fill_null(rows["task"], first))


def sorted_rows(table: pa.Table, *, unordered: bool) -> pa.Table:
    """Sort ``table`` by task, stream, partition, offset; by task alone where ``unordered``.

    Rows that compare equal keep their order. A table that is sorted already is not copied.
    """
    names = ("task",) if unordered else ("task", *ORDER_COLUMNS)
    keys = [_sortable(table.column(name)) for name in names]
    if table.num_rows < 2 or _is_sorted(keys):  # noqa: PLR2004 - one row is sorted
        return table
    return table.take(pa.array(np.lexsort(keys[::-1])))


def _sortable(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if pa.types.is_integer(column.type):
        numbers: npt.NDArray[np.int64] = column.to_numpy()
        return numbers
    encoded = column.combine_chunks().dictionary_encode()
    words = encoded.dictionary
    ranks = np.empty(len(words), dtype=np.int64)
    ranks[pc.sort_indices(words).to_numpy()] = np.arange(len(words))
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    sortable: npt.NDArray[np.int64] = ranks[indices] if len(words) else indices
    return sortable


def _is_sorted(keys: list[npt.NDArray[np.int64]]) -> bool:
    undecided = np.ones(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        steps = key[1:] >= key[:-1]
        if not steps[undecided].all():
            return False
        undecided &= key[1:] == key[:-1]
    return True
