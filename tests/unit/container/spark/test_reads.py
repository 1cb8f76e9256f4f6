"""Which columns a plan reads, by the plan as Spark writes it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from homeport.container.spark.reads import (
    Leaf,
    Reads,
    leaves_of,
    merged,
    read_part,
    read_schema,
    reads_of,
)

VALUE = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.float64())])
SCHEMA = pa.schema([("task", pa.string()), ("value", VALUE), ("offset", pa.int64())])
TASK, AT, OFFSET = 0, 1, 2
ALL = {"task": None, "value": None, "offset": None}
LEAF = Leaf(7, (TASK, AT, OFFSET))
OTHER_STEPS = ("Sort", "MapInArrow", "Generate", "SomethingNew")
CATALYST = "org.apache.spark.sql.catalyst."

Node = dict[str, Any]


def _column(number: int) -> list[Node]:
    reference = {"class": CATALYST + "expressions.AttributeReference", "num-children": 0}
    return [{**reference, "exprId": {"id": number}}]


def _over(name: str, *parts: list[Node], **more: object) -> list[Node]:
    top = {"class": f"{CATALYST}expressions.{name}", "num-children": len(parts), **more}
    return [top, *(node for part in parts for node in part)]


def _part_of(number: int, ordinal: int) -> list[Node]:
    return _over("GetStructField", _column(number), ordinal=ordinal)


def _step(name: str, *below: list[Node], **more: object) -> list[Node]:
    """A step of a plan, and what is below it."""
    top = {"class": CATALYST + "plans.logical." + name, "num-children": len(below), **more}
    return [top, *(node for part in below for node in part)]


def _project(below: list[Node], *expressions: list[Node]) -> list[Node]:
    return _step("Project", below, projectList=list(expressions))


def _leaf(first: int = TASK) -> list[Node]:
    name = {"class": "org.apache.spark.sql.execution.LogicalRDD", "num-children": 0}
    return [{**name, "output": [_column(first + n) for n in range(3)]}]


def _read(plan: list[Node], *leaves: Leaf) -> object:
    """What is read of source 7."""
    return reads_of(plan, leaves or [LEAF], {7: SCHEMA})[7]


LATE = _over("GreaterThan", _part_of(AT, 0), _over("Literal"))
TOTAL = _over("AggregateExpression", _over("Sum", _part_of(AT, 2)))
UDF = _over("PythonUDF", _part_of(AT, 1))
HANDED = _project(_leaf(), _column(AT), _column(OFFSET))
OFFSETS = _project(_leaf(), _column(OFFSET))
PART: Reads = {"value": frozenset({"b"}), "offset": None}


PLANS: list[tuple[list[Node], Reads]] = [
    # Fields of a struct each by itself; a condition counts too.
    (
        _project(
            _step("Filter", _leaf(), condition=LATE), _column(TASK), _over("Alias", _part_of(AT, 2))
        ),
        {"task": None, "value": frozenset({"a", "c"})},
    ),
    # A struct that is named is read whole, whatever else is named of it.
    (_project(_leaf(), _part_of(AT, 0), _over("Alias", _column(AT))), {"value": None}),
    (_project(_leaf(), _over("Alias", _column(AT)), _part_of(AT, 0)), {"value": None}),
    # Whether there is a struct reads its first field, unless another one is read.
    (
        _project(
            _step("Filter", _leaf(), condition=_over("IsNotNull", _column(AT))), _column(TASK)
        ),
        {"task": None, "value": frozenset({"a"})},
    ),
    # Null of another column is that column.
    (
        _project(
            _step("Filter", _leaf(), condition=_over("IsNull", _column(OFFSET))), _part_of(AT, 1)
        ),
        PART,
    ),
    # An aggregate reads what it names: a group as well as a sum.
    (
        _step(
            "Aggregate", _leaf(), groupingExpressions=[_column(TASK)], aggregateExpressions=[TOTAL]
        ),
        {"task": None, "value": frozenset({"c"})},
    ),
    # What goes by a function of Python's is read only where it is named above.
    (_project(_step("BatchEvalPython", _leaf(), udfs=[UDF]), _column(OFFSET)), PART),
    (_project(_step("ArrowEvalPython", _leaf(), udfs=[UDF]), _column(OFFSET)), PART),
    (_step("BatchEvalPython", _leaf(), udfs=[UDF]), ALL),
    # As Spark hands the struct on to a function of Python's that reads one field.
    (
        _project(_step("BatchEvalPython", HANDED, udfs=[UDF]), _column(TASK)),
        {"task": None, "value": frozenset({"b"})},
    ),
    (_project(_step("Sort", HANDED), _column(TASK)), ALL),
    # Any other step reads all that comes up to it, whatever is named above it.
    *((_project(_step(n, _leaf()), _column(TASK)), ALL) for n in OTHER_STEPS),
    *((_project(_step(n, OFFSETS), _column(OFFSET)), {"offset": None}) for n in OTHER_STEPS),
    # What leaves at the top is read: the source itself, and a filter over it.
    (_leaf(), ALL),
    (_step("Filter", _leaf(), condition=_part_of(AT, 0)), ALL),
    # Rows of the pipeline's own, as names to join with, are no source.
    (_step("Join", OFFSETS, _leaf(20)), {"offset": None}),
]


@pytest.mark.parametrize(("plan", "found"), PLANS)
def test_a_plan_reads_what_its_steps_name(plan: list[Node], found: Reads) -> None:
    """A struct by its fields, where no step takes it whole."""
    assert _read(plan) == found


def test_two_places_that_read_one_source_add_up() -> None:
    """Of a join with itself, whose columns have other ids."""
    left, right = _project(_leaf(), _column(TASK)), _project(_leaf(10), _part_of(11, 1))
    plan = _project(_step("Join", left, right), _column(TASK))
    assert _read(plan, LEAF, Leaf(7, (10, 11, 12))) == {"task": None, "value": frozenset({"b"})}


def test_each_source_has_its_own() -> None:
    """Also one that nothing is read of: its rows are counted by one column."""
    plan = _step("Union", _project(_leaf(), _column(OFFSET)), _project(_leaf(10), _over("Literal")))
    schemas = {7: SCHEMA, 8: pa.schema([*SCHEMA, ("partition", pa.int32())])}
    leaves = leaves_of("7 0 1 2\n8 10 11 12\n")
    expected = {7: {"offset": None}, 8: {"task": None}}
    assert reads_of(plan, leaves, {7: SCHEMA, 8: SCHEMA}) == expected
    # Nothing of it is left where Spark finds that no row can come.
    assert reads_of(_step("LocalRelation"), [], schemas) == {
        7: {"task": None},
        8: {"partition": None},
    }


@pytest.mark.parametrize(
    "plan",
    [
        _project(_leaf(10), _column(TASK)),
        _leaf() + _leaf(),
        _step("Project", projectList=[])[:0],
        _project([], _column(TASK)),
        [{"class": CATALYST + "plans.logical.Project", "num-children": 0}],
        _project(_leaf(), [{"class": CATALYST + "expressions.AttributeReference"}]),
        _project(_leaf(), [{**_column(TASK)[0], "exprId": {"id": "0"}}]),
    ],
)
def test_a_plan_of_another_form_says_nothing(plan: list[Node]) -> None:
    """An error, for which the caller sends all."""
    with pytest.raises((LookupError, TypeError, ValueError)):
        reads_of(plan, [LEAF], {7: SCHEMA})


def test_what_two_plans_read() -> None:
    """Of a struct both fields; all of it where either needs that."""
    one: Reads = {"task": None, "value": frozenset({"a"})}
    both = {"task": None, "value": frozenset({"a", "b"})}
    assert merged(one, {"value": frozenset({"b"})}) == both
    assert merged(one, {"value": None, "offset": None}) == ALL


def test_a_table_of_what_is_read() -> None:
    """Null stays null, rows are as many, and slices are those rows."""
    values = [{"a": 1, "b": "x", "c": 0.5}, None, {"a": 2, "b": None, "c": None}]
    table = pa.table({"task": ["t"] * 3, "value": values, "offset": [5, 6, 7]}, SCHEMA)
    reads: Reads = {"value": frozenset({"c", "a"}), "offset": None}
    kind = pa.struct([("a", pa.int32()), ("c", pa.float64())])
    found = read_part(table.slice(1), reads)
    assert found.schema == read_schema(SCHEMA, reads)
    assert found.schema.field("value").type == kind
    assert found.to_pylist() == [
        {"value": None, "offset": 6},
        {"value": {"a": 2, "c": None}, "offset": 7},
    ]
    assert read_part(table, ALL) is table
    assert read_part(found, reads) is found
    assert read_part(table.slice(0, 0), reads).num_rows == 0
