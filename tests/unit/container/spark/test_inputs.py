"""Which frames a pipeline gets, and which rows are in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.inputs import ALL, WHOLE, parts, stream_names, with_task
from homeport.container.spark.work import FunctionWork

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
    found = parts(table, {**NAMES, ALL: None})
    assert {name: part.num_rows for name, part in found.items()} == {
        "orders": 1,
        "late-orders": 0,
        ALL: 2,
    }
    assert found["late-orders"].schema == BATCH_SCHEMA
    assert found["late-orders"].column("key").combine_chunks().to_pylist() == []


def test_rows_of_no_task_get_one_of_the_batch() -> None:
    """Where a pipeline's rows leave by themselves."""
    table = pa.Table.from_pylist([_row("orders")], BATCH_SCHEMA)
    rows = pa.table({"n": [1, 2]})
    assert with_task(rows, table)["task"].to_pylist() == ["Partition 0"] * 2
    some = rows.append_column("task", pa.array([None, "Partition 1"]))
    assert with_task(some, table)["task"].to_pylist() == ["Partition 0", "Partition 1"]
    assert with_task(rows.slice(0, 0), BATCH_SCHEMA.empty_table())["task"].to_pylist() == []


@pytest.fixture(autouse=True)
def functions(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - a path
    """They are in a module of the job's."""
    (tmp_path / "frames_job.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_function_gets_what_its_parameters_name() -> None:
    """One frame with all rows, all frames by their names, or those that it names."""
    one = FunctionWork.load("frames_job:one", NAMES)
    call: Any = one
    assert (one.takes, call({ALL: "all"})) == (WHOLE, "all")
    call = FunctionWork.load("frames_job:named", NAMES)
    assert (call.takes, call({"b": 1, "a": 2})) == (NAMES, ["a", "b"])
    call = FunctionWork.load("frames_job:each", NAMES)
    assert call({"orders": 1, "late-orders": 2}) == [2, 1]
    assert call.takes == NAMES
    assert FunctionWork.load("frames_job:many", NAMES).takes == WHOLE
    line = "called with one: missing a required argument: 'payments'; the streams are orders, late_"
    with pytest.raises(ConfigError, match=line):
        FunctionWork.load("frames_job:other", NAMES)
