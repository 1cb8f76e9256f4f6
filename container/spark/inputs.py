"""The frames that a pipeline is given: a whole micro-batch, or the part of each input stream.

PURE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.system_stream import SystemStream

ALL = "input"
"""The name of the frame with the rows of all streams."""

Takes = Mapping[str, SystemStream | None]
"""{name of a frame: the stream whose rows it has; None: of all}."""

WHOLE: Takes = {ALL: None}
"""One frame with all rows."""


@dataclass(frozen=True)
class Given:
    """What a pipeline gets. ``value_type``: of the column ``value``."""

    takes: Takes = field(default_factory=lambda: WHOLE)
    value_type: pa.DataType = field(default_factory=pa.binary)


AS_THEY_COME = Given()
"""One frame, whose values are bytes."""


def stream_names(inputs: Iterable[SystemStream]) -> dict[str, SystemStream]:
    """{name: stream} of each input once.

    The name is the stream's own. Where another input has that name, or it is ``input``, which
    stands for all, it is ``system.stream``. Case makes no difference to Spark.
    """
    streams = tuple(dict.fromkeys(inputs))
    own = [stream.stream.lower() for stream in streams]
    is_taken = {name for name in own if own.count(name) > 1 or (name == ALL and len(own) > 1)}
    return {str(s) if s.stream.lower() in is_taken else s.stream: s for s in streams}


def parts(table: pa.Table, takes: Takes) -> dict[str, pa.Table]:
    """{name: its rows of ``table``, in their order}; a table without rows where there are none."""
    return {name: _of_stream(table, stream) for name, stream in takes.items()}


def _of_stream(table: pa.Table, stream: SystemStream | None) -> pa.Table:
    if stream is None:
        return table
    is_system = pc.equal(table["system"], stream.system)
    found = table.filter(pc.and_(is_system, pc.equal(table["stream"], stream.stream)))
    # What is filtered away altogether has no chunks, which Spark does not take.
    return found if found.num_rows else table.schema.empty_table()


def with_task(rows: pa.Table, table: pa.Table) -> pa.Table:
    """``rows``, which came of ``table``, with a task for each.

    Where a row has none, as one of an aggregate, it is that of the first row of ``table``: one of
    the container's, in whose transaction all that its tasks send leaves.
    """
    first = table["task"][0] if table.num_rows else pa.scalar("")
    if "task" not in rows.column_names:
        return rows.append_column("task", pa.repeat(first, rows.num_rows))
    index = rows.column_names.index("task")
    return rows.set_column(index, "task", pc.fill_null(rows["task"], first))
