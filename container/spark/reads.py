"""The columns that a plan of Spark's reads of its inputs, and batches with these alone. PURE.

A column that no step of the optimized plan names does not change its rows. ``Project`` and
``Aggregate`` pass on what they name; ``Filter`` and functions of Python pass on all of their input.
Any other step counts as reading all of its input. Spark's own optimizer puts a ``Project`` below
each step that needs less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from homeport.container.serde.columns import narrowed, part_type

Fields = frozenset[str] | None
"""Names of fields of a struct; None: all, or the column is no struct."""
Reads = Mapping[str, Fields]
"""{column: the fields that are read of it}; other columns are not read."""

_CATALYST = "org.apache.spark.sql.catalyst."
_NAMED = {
    f"{_CATALYST}plans.logical.Project": ("projectList",),
    f"{_CATALYST}plans.logical.Aggregate": ("groupingExpressions", "aggregateExpressions"),
}
"""Steps whose rows have only these expressions."""
_PASSING = {
    f"{_CATALYST}plans.logical.Filter": ("condition",),
    f"{_CATALYST}plans.logical.BatchEvalPython": ("udfs",),
    f"{_CATALYST}plans.logical.ArrowEvalPython": ("udfs",),
}
"""Steps that read these expressions, and pass on all of their input to the step above."""
_ATTRIBUTE = f"{_CATALYST}expressions.AttributeReference"
_FIELD = f"{_CATALYST}expressions.GetStructField"
_PRESENCE = frozenset({f"{_CATALYST}expressions.IsNull", f"{_CATALYST}expressions.IsNotNull"})
_SMALLEST = "partition"
"""The column to send where none is read: the rows are counted."""

_Node = Mapping[str, Any]


@dataclass(frozen=True)
class Leaf:
    """A node of a plan that reads a source. ``ids``: its columns' ids, in the schema's order."""

    source: int
    ids: tuple[int, ...]


def leaves_of(text: str) -> list[Leaf]:
    """Read the text of ``Plans.leaves``: a line for each, the source and its columns' ids."""
    numbers = ([int(word) for word in line.split()] for line in text.splitlines())
    return [Leaf(source, tuple(ids)) for source, *ids in numbers]


_Found = dict[tuple[int, str], set[str] | None]
"""{(source, column): the fields that are read of it; None: the whole column}."""


def reads_of(
    plan: Sequence[_Node], leaves: Sequence[Leaf], schemas: Mapping[int, pa.Schema]
) -> dict[int, Reads]:
    """Return {source: the columns that ``plan`` reads of it}.

    Shapes: ``plan`` an optimized plan as Spark's ``toJSON`` has it: its nodes from the top, each
    before those below it; ``schemas`` {source: its columns}.

    Raises:
        ValueError: the plan has another form, so that nothing is known.
    """
    columns = {
        number: (leaf.source, schemas[leaf.source].field(place))
        for leaf in leaves
        for place, number in enumerate(leaf.ids)
    }
    found: _Found = {}
    met: set[tuple[int, ...]] = set()
    for node, is_all_read in _steps(plan):
        for name in _NAMED.get(node["class"]) or _PASSING.get(node["class"]) or ():
            is_one = name == "condition"
            for expression in [node[name]] if is_one else node[name]:
                # A column that is only passed on is read where a step above names it.
                if is_all_read or name != "projectList" or len(expression) > 1:
                    _note(expression, columns, found)
        if node["num-children"] or "output" not in node:
            continue
        ids = tuple(_id(column) for (column,) in node["output"])
        met.add(ids)
        for number in ids if is_all_read else ():
            if number in columns:
                source, column = columns[number]
                found[source, column.name] = None
    if not met.issuperset(leaf.ids for leaf in leaves):
        raise ValueError("a place that reads a source is not among the plan's nodes")
    return {source: _of_source(source, schema, found) for source, schema in schemas.items()}


def _steps(plan: Sequence[_Node]) -> Iterator[tuple[_Node, bool]]:
    """Yield (node, whether all of its rows count as read), from the top."""
    waiting = [True]
    for node in plan:
        if not waiting:
            raise ValueError("the plan has nodes that belong to none")
        is_all_read = waiting.pop()
        yield node, is_all_read
        below = is_all_read if node["class"] in _PASSING else node["class"] not in _NAMED
        waiting += [below] * node["num-children"]
    if waiting:
        raise ValueError("the plan lacks nodes")


def _note(
    expression: Sequence[_Node], columns: Mapping[int, tuple[int, pa.Field]], found: _Found
) -> None:
    above: _Node = {"class": ""}
    for node in expression:
        known = columns.get(_id(node)) if node["class"] == _ATTRIBUTE else None
        if known is not None:
            source, column = known
            fields = found.setdefault((source, column.name), set())
            is_struct = pa.types.is_struct(column.type)
            if is_struct and above["class"] == _FIELD:
                if fields is not None:
                    fields.add(column.type.field(above["ordinal"]).name)
            elif not (is_struct and above["class"] in _PRESENCE):
                found[source, column.name] = None
        above = node


def _id(attribute: _Node) -> int:
    number = attribute["exprId"]["id"]
    if not isinstance(number, int):
        raise TypeError(f"an attribute has the id {number!r}")
    return number


def _of_source(source: int, schema: pa.Schema, found: _Found) -> dict[str, Fields]:
    result: dict[str, Fields] = {}
    for column in schema:
        if (source, column.name) not in found:
            continue
        fields = found[source, column.name]
        if fields is None:
            result[column.name] = None
        else:  # without a field only whether the struct is null: its first field shows it
            kept = part_type(column.type, frozenset(fields))
            result[column.name] = frozenset(own.name for own in kept)
    if not result:
        names = schema.names
        result[_SMALLEST if _SMALLEST in names else names[0]] = None
    return result


def merged(one: Reads, other: Reads) -> Reads:
    """Return the union of both."""
    result = {**one, **other}
    for name in one.keys() & other.keys():
        first, second = one[name], other[name]
        result[name] = None if first is None or second is None else first | second
    return result


def read_schema(schema: pa.Schema, reads: Reads) -> pa.Schema:
    """Return the columns and fields of ``schema`` that are read, in its order."""
    return pa.schema([_part(own, reads[own.name]) for own in schema if own.name in reads])


def _part(column: pa.Field, fields: Fields) -> pa.Field:
    if fields is None:
        return column
    return column.with_type(part_type(column.type, fields))


def read_part(table: pa.Table, reads: Reads) -> pa.Table:
    """Return the columns and fields of ``table`` that are read, as far as it has them."""
    schema = read_schema(table.schema, reads)
    if schema.equals(table.schema):
        return table
    return pa.table([_column(table.column(c.name), c) for c in schema], schema)


def _column(column: pa.ChunkedArray, wanted: pa.Field) -> pa.ChunkedArray:
    if column.type.equals(wanted.type):
        return column
    return pa.chunked_array([narrowed(part, wanted.type) for part in column.chunks], wanted.type)
