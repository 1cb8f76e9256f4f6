"""The table of a micro-batch, made of records from the readers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from homeport.container.api import BATCH_SCHEMA
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class Piece(NamedTuple):
    """Rows ``row`` to ``row + rows`` of ``taken``, from one partition, for one task.

    Their values have ``size_bytes``; offsets ascend.
    """

    task: TaskName
    ssp: SystemStreamPartition
    taken: pa.RecordBatch
    row: int
    rows: int
    size_bytes: int

    @property
    def records(self) -> pa.RecordBatch:
        """Return the rows."""
        return self.taken.slice(self.row, self.rows)

    @property
    def first(self) -> int:
        """Return the first offset."""
        first: int = self.records["offset"][0].as_py()
        return first

    def since(self, offset: int) -> "Piece":
        """Return the rows with this offset or a higher one."""
        before = pc.sum(pc.less(self.records["offset"], offset)).as_py()
        rest = self._replace(row=self.row + before, rows=self.rows - before)
        sizes = pc.binary_length(rest.records["value"])
        return rest._replace(size_bytes=pc.sum(sizes).as_py() or 0)


def table_of(pieces: Sequence[Piece]) -> pa.Table:
    """Return the rows of ``pieces``, one at least, in their order, as rows of ``BATCH_SCHEMA``."""
    whole = pieces[0].taken
    begins, ends = [p.row for p in pieces], [p.row + p.rows for p in pieces]
    is_one = all(piece.taken is whole for piece in pieces)
    if is_one and [0, *ends] == [*begins, whole.num_rows]:
        records = pa.Table.from_batches([whole])
    else:
        records = pa.Table.from_batches([piece.records for piece in pieces]).combine_chunks()
    counts = [piece.rows for piece in pieces]
    columns = {
        "task": _repeated([piece.task for piece in pieces], counts, pa.string()),
        "system": _repeated([piece.ssp.system for piece in pieces], counts, pa.string()),
        "stream": _repeated([piece.ssp.stream for piece in pieces], counts, pa.string()),
        "partition": _repeated([piece.ssp.partition for piece in pieces], counts, pa.int32()),
    }
    named = [columns[name] if name in columns else records[name] for name in BATCH_SCHEMA.names]
    return pa.Table.from_arrays(named, schema=BATCH_SCHEMA)


def _repeated(values: Sequence[Any], counts: Sequence[int], type_: pa.DataType) -> pa.Array:
    """Return each value as often as its count, in order."""
    runs: list[tuple[Any, int]] = []
    for value, count in zip(values, counts, strict=True):
        if runs and runs[-1][0] == value:
            runs[-1] = value, runs[-1][1] + count
        else:
            runs.append((value, count))
    return pa.concat_arrays([pa.repeat(pa.scalar(v, type_), count) for v, count in runs])
