"""Jobs in Python with a pipeline: real Spark, Kafka in memory."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from python_job_of_all import NAME, Flight, job

from homeport import Job
from homeport.config.errors import ConfigError
from homeport.testing import TestRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLIGHTS, PLANES = f"{NAME}-flights", f"{NAME}-planes"


def test_a_job_of_every_kind_is_exact_over_crashes() -> None:
    """A pipeline, its reference, windows and late records, at each step of a commit."""
    with TestRunner(job) as runner:
        runner.send(PLANES, key="N1", value="737")
        for number, step in enumerate(runner.commit_steps):
            runner.send(PLANES, key="N9", value=step)
            runner.send(FLIGHTS, key="a", value=Flight("N1", 2), timestamp=number)
            runner.send(FLIGHTS, key="b", value=Flight("N2", 5), timestamp=number)
            runner.send(FLIGHTS, key="b", value=Flight("N2", 0), timestamp=number)
            runner.crash_before(step)
            runner.restart()
            runner.run()
        runner.send(FLIGHTS, key="a", value=Flight("N1", 7), timestamp=61_000)
        runner.run()
        runner.send(FLIGHTS, key="b", value=Flight("N2", 3), timestamp=1)
        runner.run()
        steps = number + 1
        assert {(r.key, r.value["miles"]) for r in runner.output(f"{NAME}-summed")} == {
            ("N1 737", 2 * steps),
            ("N2 None", 5 * steps),
        }
        late = [(r.key, r.value, r.timestamp) for r in runner.output(f"{NAME}-lost")]
        assert late == [("N2 None", 3, 1)]


in_sql = Job("in-sql", keys={"cluster-manager.container.cpu.cores": 1})
orders = in_sql.input("orders", key=str, value=Flight)
prices = in_sql.output("prices", key=str, value=dict)
in_sql.sql("SELECT key, value.miles * 2 AS miles FROM orders WHERE value.miles > 1", output=prices)

of_batches = Job("of-batches", keys={"cluster-manager.container.cpu.cores": 1})
first = of_batches.input("first", key=str, value=Flight)
second = of_batches.input("second", key=str)
total = of_batches.store("total", key=str, value=int)


@of_batches.pipeline(second, first)
def both(texts: DataFrame, found: DataFrame) -> DataFrame:
    """Frames come in the order of the decorator; each has the values of its input."""
    own = texts.selectExpr(
        "task", "stream", "partition", "offset", "decode(value, 'UTF-8') AS tail", "1 AS miles"
    )
    place = ("task", "stream", "partition", "offset")
    return found.select(*place, "value.tail", "value.miles").unionByName(own)


@of_batches.batch(both)
def add(table: pa.Table) -> None:
    """Sum up by columns."""
    for row in table.group_by("tail").aggregate([("miles", "sum")]).to_pylist():
        total[row["tail"]] = total.get(row["tail"], 0) + row["miles_sum"]


def test_one_statement_is_a_job() -> None:
    """Its rows leave by the output."""
    with TestRunner(in_sql) as runner:
        for miles in (1, 2, 3):
            runner.send("orders", key="a", value=Flight("N1", miles))
        runner.run()
        assert [(r.key, r.value) for r in runner.output("prices")] == [
            ("a", {"miles": 4}),
            ("a", {"miles": 6}),
        ]


def test_batches_get_the_rows_of_a_pipeline() -> None:
    """Over two inputs whose values differ."""
    with TestRunner(of_batches) as runner:
        runner.send("first", key="a", value=Flight("N1", 5))
        runner.send("second", key="a", value=b"N1")
        runner.send("second", key="a", value=b"N2")
        runner.run()
        assert dict(runner.store("total").all()) == {"N1": 6, "N2": 1}


def test_a_wrong_column_is_one_line_before_any_input() -> None:
    """It names the job, and has Spark's reason."""
    with pytest.raises(ConfigError, match="No such struct field `colour`") as refused:
        TestRunner(wrong).__enter__()
    assert str(refused.value).startswith(f"task.pipeline.class = '{__name__}:wrong': ")


wrong = Job("wrong", keys={"cluster-manager.container.cpu.cores": 1})
source: Any = wrong.input("in", value=Flight)
rows = wrong.pipeline(source)(lambda frame: frame.select("value.colour"))
wrong.each(rows)(lambda _message: None)


def test_the_pipeline_of_the_page_runs_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/python-parts.md: late flights by the model of their plane."""
    page = (Path(__file__).parents[2] / "docs" / "python-parts.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n((?:(?!```).)*pyspark.*?)```", page, re.DOTALL)
    module: Any = types.ModuleType("late_models")
    monkeypatch.setitem(sys.modules, "late_models", module)
    exec(compile(code, "late_models.py", "exec"), vars(module))  # noqa: S102 - the page's own
    with TestRunner(module.job) as runner:
        runner.send("planes", key="N1", value="737")
        for tail, delay in (("N1", 61), ("N1", 5), ("N1", 90), ("N2", 90)):
            runner.send("flights", value=module.Flight(tail, delay))
        runner.run()
        assert dict(runner.store("count").all()) == {"737": 2}
