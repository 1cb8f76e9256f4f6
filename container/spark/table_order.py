"""The order of a micro-batch's rows: by task, as they were written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

ORDER_COLUMNS = ("stream", "partition", "offset")
"""What orders the rows of one task."""


def sorted_rows(table: pa.Table, *, unordered: bool) -> pa.Table:
    """``table`` sorted by task, stream, partition, offset; by task alone where ``unordered``.

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
