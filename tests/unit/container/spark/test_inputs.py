"""Which frames a pipeline gets, which rows are in them, and the order of what it returns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.container.api import BATCH_SCHEMA
from homeport.container.processing.records import rows_by_task
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import (
    ALL,
    WHOLE,
    Given,
    SplitRows,
    batch_schema,
    fields_wanted,
    parts,
    sorted_rows,
    stream_names,
    whole_schema,
    with_task,
)
from homeport.container.spark.work import function_work

ORDERS, LATE = SystemStream("kafka", "orders"), SystemStream("kafka", "late-orders")
NAMES = {"orders": ORDERS, "late-orders": LATE}
MODULE = """
def one(frame, limit=3): return frame
def named(frames): return sorted(frames)
def each(late_orders, orders): return [late_orders, orders]
def other(orders, payments): return orders
def many(*frames): return frames
"""


def _row(stream: str, system: str = "kafka") -> dict[str, Any]:
    row = {"task": "Partition 0", "system": system, "stream": stream}
    return {**row, "partition": 0, "offset": 0, "timestamp": 0}


def test_a_frame_is_named_by_its_stream() -> None:
    """Where two names are the same to Spark, or ``input``, both systems are named too."""
    assert stream_names([ORDERS, LATE, ORDERS]) == NAMES
    own, other = SystemStream("kafka", "Orders"), SystemStream("other", "orders")
    assert stream_names([own, other]) == {"kafka.Orders": own, "other.orders": other}
    all_rows = SystemStream("kafka", "input")
    assert stream_names([all_rows, ORDERS]) == {"kafka.input": all_rows, "orders": ORDERS}
    assert stream_names([all_rows]) == {"input": all_rows}


def test_each_frame_has_the_rows_of_its_stream() -> None:
    """A stream without rows has a frame all the same, of the same schema."""
    table = pa.Table.from_pylist([_row("orders"), _row("orders", "other")], BATCH_SCHEMA)
    found = parts(table, Given({**NAMES, ALL: None}))
    assert {name: part.num_rows for name, part in found.items()} == {
        "orders": 1,
        "late-orders": 0,
        ALL: 2,
    }
    assert found["late-orders"].schema == BATCH_SCHEMA
    assert found["late-orders"].column("key").combine_chunks().to_pylist() == []


def test_split_rows_go_to_the_frames_of_their_streams() -> None:
    """Each frame has the type of its stream's values, also without rows."""
    late, raw = pa.struct([("n", pa.int32())]), SystemStream("kafka", "raw")
    given = Given({**NAMES, "raw": raw}, {"late-orders": late})
    table = pa.Table.from_pylist([_row("orders")], BATCH_SCHEMA)
    rows = SplitRows({LATE: batch_schema(late).empty_table(), ORDERS: table})
    found = parts(rows, given)
    assert {name: part.num_rows for name, part in found.items()} == {
        "orders": 1,
        "late-orders": 0,
        "raw": 0,
    }
    assert {name: part.schema for name, part in found.items()} == given.schemas()
    assert given.schemas()["late-orders"].field("value").type == late
    assert (rows.num_rows, rows.nbytes, rows.first) == (1, table.nbytes, table)
    assert SplitRows({}).first is None


def test_a_schema_that_lacks_fields_of_values_stands_for_the_whole() -> None:
    """Any other difference is another schema."""
    a, b = pa.field("a", pa.int32()), pa.field("b", pa.string())
    whole = batch_schema(pa.struct([a, b]))
    assert whole_schema(batch_schema(pa.struct([b])), whole) is whole
    for other in (
        BATCH_SCHEMA,
        batch_schema(pa.struct([a, pa.field("c", pa.string())])),
        batch_schema(pa.struct([pa.field("a", pa.int64())])),
        whole.append(pa.field("more", pa.string())),
        whole.set(0, pa.field("task", pa.string())),
    ):
        assert whole_schema(other, whole) is other
    assert whole_schema(whole, BATCH_SCHEMA) is whole


def test_what_is_wanted_of_a_stream() -> None:
    """By its own frame, and by that of all; of all streams what is wanted of any."""
    a, b = frozenset("a"), frozenset("b")
    assert fields_wanted(None, ORDERS) is None
    assert fields_wanted({ORDERS: a, LATE: b}, ORDERS) == a
    assert fields_wanted({ORDERS: a, None: b}, ORDERS) == a | b
    assert fields_wanted({ORDERS: a, LATE: b}, None) == a | b
    assert fields_wanted({ORDERS: a, None: None}, ORDERS) is None
    assert fields_wanted({ORDERS: a}, LATE) == frozenset()


def test_rows_of_no_task_get_one_of_the_batch() -> None:
    """Where a pipeline's rows leave by themselves."""
    table = pa.Table.from_pylist([_row("orders")], BATCH_SCHEMA)
    rows = pa.table({"n": [1, 2]})
    assert with_task(rows, table)["task"].to_pylist() == ["Partition 0"] * 2
    some = rows.append_column("task", pa.array([None, "Partition 1"]))
    assert with_task(some, table)["task"].to_pylist() == ["Partition 0", "Partition 1"]
    assert with_task(rows.slice(0, 0), BATCH_SCHEMA.empty_table())["task"].to_pylist() == []
    assert with_task(rows, SplitRows({ORDERS: table}))["task"].to_pylist() == ["Partition 0"] * 2
    assert with_task(rows.slice(0, 0), SplitRows({}))["task"].to_pylist() == []


@pytest.fixture(autouse=True)
def functions(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - a path
    """They are in a module of the job's."""
    (tmp_path / "frames_job.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_function_gets_what_its_parameters_name() -> None:
    """One frame with all rows, all frames by their names, or those that it names."""
    work: Any = function_work("frames_job:one", NAMES)
    assert (work.takes, work.call({ALL: "all"})) == (WHOLE, "all")
    work = function_work("frames_job:named", NAMES)
    assert (work.takes, work.call({"b": 1, "a": 2})) == (NAMES, ["a", "b"])
    work = function_work("frames_job:each", NAMES)
    assert work.call({"orders": 1, "late-orders": 2}) == [2, 1]
    assert work.takes == NAMES
    assert function_work("frames_job:many", NAMES).takes == WHOLE
    line = "called with one: missing a required argument: 'payments'; the streams are orders, late_"
    with pytest.raises(ConfigError, match=line):
        function_work("frames_job:other", NAMES)


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
