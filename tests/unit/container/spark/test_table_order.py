"""Rows by task, in order."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import ConfigError
from homeport.container.processing.records import rows_by_task
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import sorted_rows

NAMED = Named("the.key", "m:f")
ROW = st.tuples(
    st.sampled_from(["a", "b", "é"]),
    st.sampled_from(["s", "t"]),
    st.integers(0, 3),
    st.integers(0, 5),
)


def _table(rows: list[tuple[str, str, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    table = pa.table(
        {
            "task": pa.array(columns[0], pa.string()),
            "stream": pa.array(columns[1], pa.string()),
            "partition": pa.array(columns[2], pa.int32()),
            "offset": pa.array(columns[3], pa.int64()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )
    half = len(rows) // 2
    return pa.concat_tables([table.slice(0, half), table.slice(half)])


@given(st.lists(ROW, max_size=20))
def test_rows_are_sorted_and_equal_ones_keep_their_order(
    rows: list[tuple[str, str, int, int]],
) -> None:
    """By task, stream, partition and offset, in the bytes' order of texts."""
    numbered = [(*row, i) for i, row in enumerate(rows)]
    expected = sorted(numbered, key=lambda row: (row[0].encode(), row[1].encode(), *row[2:4]))
    found = sorted_rows(_table(rows), unordered=False)
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


@given(st.lists(ROW, max_size=20))
def test_each_task_gets_its_rows_once(rows: list[tuple[str, str, int, int]]) -> None:
    """An unordered table is only brought together by task, in the order it came."""
    found = {
        task: part.column("row").to_pylist()
        for task, part in rows_by_task(sorted_rows(_table(rows), unordered=True), NAMED)
    }
    expected: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        expected.setdefault(row[0], []).append(i)
    assert found == expected


def test_a_sorted_table_is_not_copied() -> None:
    """Most batches come out of a pipeline as they went in."""
    table = _table([("a", "s", 0, 1), ("a", "s", 1, 0), ("b", "s", 0, 0)])
    assert sorted_rows(table, unordered=False) is table


def test_a_row_without_a_task_is_refused() -> None:
    """It belongs to no task."""
    table = pa.table({"task": pa.array(["a", None], pa.string())})
    with pytest.raises(ConfigError, match=r"^the\.key = 'm:f': 1 rows came out"):
        list(rows_by_task(table, NAMED))
