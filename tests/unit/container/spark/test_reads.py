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
CATALYST = "org.apache.spark.sql.catalyst."

Node = dict[str, Any]


def column(number: int) -> list[Node]:
    """The column of that id."""
    reference = {"class": CATALYST + "expressions.AttributeReference", "num-children": 0}
    return [{**reference, "exprId": {"id": number}}]


def over(name: str, *parts: list[Node], **more: object) -> list[Node]:
    """An expression of others."""
    top = {"class": f"{CATALYST}expressions.{name}", "num-children": len(parts), **more}
    return [top, *(node for part in parts for node in part)]


def part_of(number: int, ordinal: int) -> list[Node]:
    """A field of a struct."""
    return over("GetStructField", column(number), ordinal=ordinal)


def step(name: str, *below: list[Node], **more: object) -> list[Node]:
    """A step of a plan, and what is below it."""
    top = {"class": CATALYST + "plans.logical." + name, "num-children": len(below), **more}
    return [top, *(node for part in below for node in part)]


def project(below: list[Node], *expressions: list[Node]) -> list[Node]:
    """What has these expressions alone."""
    return step("Project", below, projectList=list(expressions))


def leaf(first: int = TASK) -> list[Node]:
    """A place that reads the source."""
    name = {"class": "org.apache.spark.sql.execution.LogicalRDD", "num-children": 0}
    return [{**name, "output": [column(first + n) for n in range(3)]}]


def read(plan: list[Node], *leaves: Leaf) -> object:
    """What is read of source 7."""
    return reads_of(plan, leaves or [LEAF], {7: SCHEMA})[7]


def test_what_is_named_is_read() -> None:
    """Fields of a struct each by itself; a condition counts too."""
    late = step("Filter", leaf(), condition=over("GreaterThan", part_of(AT, 0), over("Literal")))
    found = read(project(late, column(TASK), over("Alias", part_of(AT, 2))))
    assert found == {"task": None, "value": frozenset({"a", "c"})}


def test_a_struct_that_is_named_is_read_whole() -> None:
    """Whatever else is named of it."""
    assert read(project(leaf(), part_of(AT, 0), over("Alias", column(AT)))) == {"value": None}


def test_whether_there_is_a_struct_reads_one_field_of_it() -> None:
    """The first, unless another one is read. Null of another column is that column."""
    there = step("Filter", leaf(), condition=over("IsNotNull", column(AT)))
    assert read(project(there, column(TASK))) == {"task": None, "value": frozenset({"a"})}
    null = step("Filter", leaf(), condition=over("IsNull", column(OFFSET)))
    assert read(project(null, part_of(AT, 1))) == {"value": frozenset({"b"}), "offset": None}


def test_an_aggregate_reads_what_it_names() -> None:
    """A group as well as a sum."""
    total = over("AggregateExpression", over("Sum", part_of(AT, 2)))
    named = {"groupingExpressions": [column(TASK)], "aggregateExpressions": [total]}
    assert read(step("Aggregate", leaf(), **named)) == {"task": None, "value": frozenset({"c"})}


@pytest.mark.parametrize("name", ["BatchEvalPython", "ArrowEvalPython"])
def test_functions_of_python_read_what_they_are_given(name: str) -> None:
    """What goes by them is read only where it is named above."""
    udfs = step(name, leaf(), udfs=[over("PythonUDF", part_of(AT, 1))])
    assert read(project(udfs, column(OFFSET))) == {"value": frozenset({"b"}), "offset": None}
    assert read(udfs) == ALL


def test_a_column_that_is_handed_on_is_read_where_it_is_named() -> None:
    """As Spark hands the struct on to a function of Python's that reads one field."""
    handed = project(leaf(), column(AT), column(OFFSET))
    udfs = step("BatchEvalPython", handed, udfs=[over("PythonUDF", part_of(AT, 1))])
    assert read(project(udfs, column(TASK))) == {"task": None, "value": frozenset({"b"})}
    assert read(project(step("Sort", handed), column(TASK))) == {
        "task": None,
        "value": None,
        "offset": None,
    }


@pytest.mark.parametrize("name", ["Sort", "MapInArrow", "Generate", "SomethingNew"])
def test_any_other_step_reads_all_that_comes_up_to_it(name: str) -> None:
    """Whatever is named above it."""
    assert read(project(step(name, leaf()), column(TASK))) == ALL
    below = project(leaf(), column(OFFSET))
    assert read(project(step(name, below), column(OFFSET))) == {"offset": None}


def test_what_leaves_at_the_top_is_read() -> None:
    """The source itself, and a filter over it."""
    assert read(leaf()) == ALL
    assert read(step("Filter", leaf(), condition=part_of(AT, 0))) == ALL


def test_two_places_that_read_one_source_add_up() -> None:
    """Of a join with itself, whose columns have other ids."""
    left, right = project(leaf(), column(TASK)), project(leaf(10), part_of(11, 1))
    plan = project(step("Join", left, right), column(TASK))
    assert read(plan, LEAF, Leaf(7, (10, 11, 12))) == {"task": None, "value": frozenset({"b"})}


def test_each_source_has_its_own() -> None:
    """Also one that nothing is read of: its rows are counted by one column."""
    plan = step("Union", project(leaf(), column(OFFSET)), project(leaf(10), over("Literal")))
    schemas = {7: SCHEMA, 8: pa.schema([*SCHEMA, ("partition", pa.int32())])}
    leaves = leaves_of("7 0 1 2\n8 10 11 12\n")
    expected = {7: {"offset": None}, 8: {"task": None}}
    assert reads_of(plan, leaves, {7: SCHEMA, 8: SCHEMA}) == expected
    # Nothing of it is left where Spark finds that no row can come.
    assert reads_of(step("LocalRelation"), [], schemas) == {
        7: {"task": None},
        8: {"partition": None},
    }


@pytest.mark.parametrize(
    "plan",
    [
        project(leaf(10), column(TASK)),
        leaf() + leaf(),
        step("Project", projectList=[])[:0],
        project([], column(TASK)),
        [{"class": CATALYST + "plans.logical.Project", "num-children": 0}],
        project(leaf(), [{"class": CATALYST + "expressions.AttributeReference"}]),
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
