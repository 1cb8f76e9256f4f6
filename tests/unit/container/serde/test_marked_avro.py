"""Avro values of several schemas in one store, by random evolutions; and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.serde.avro_serde import avro_read_fault, avro_serde, parsed_schema
from homeport.container.serde.evolution.avro_rules import avro_fault
from homeport.container.serde.evolution.marked_avro import avro_of_one_schema, mark_of, marked_avro
from homeport.container.serde.forms import form_of, shown
from homeport.container.serde.serdes import Serde


def _entry(schema: object) -> SchemaSerde:
    return SchemaSerde("avro", "rec", json.dumps(schema))


def _plain(schema: object) -> Serde:
    return avro_serde("key", json.dumps(schema))


def marked(schema: object, *writers: object) -> Serde:
    """The serde of ``schema`` in a store of these writers."""
    return marked_avro(_entry(schema), _plain(schema), [form_of(_entry(w)) for w in writers])


def _fault(writer: object, reader: object) -> str | None:
    return avro_fault(*(parsed_schema("key", json.dumps(s)) for s in (writer, reader)))


def _record(*fields: dict[str, Any], name: str = "R", **more: object) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def _field(name: str, kind: object, **more: object) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


A = _record(_field("n", "int"))
B = _record(_field("n", "int"), _field("m", "string", default="q"))


def test_values_of_two_schemas_live_in_one_store() -> None:
    """Those of the first as they are; those of the second with the mark of Avro's specification."""
    new, old = marked(B, A, B), marked(A, A, B)
    first, second = old.to_bytes({"n": 5}), new.to_bytes({"n": 6, "m": "x"})
    assert first == _plain(A).to_bytes({"n": 5})
    assert second == mark_of(form_of(_entry(B))) + _plain(B).to_bytes({"n": 6, "m": "x"})
    assert new.from_bytes(first) == {"n": 5, "m": "q"}
    assert new.from_bytes(second) == {"n": 6, "m": "x"}
    assert [old.from_bytes(data) for data in (first, second)] == [{"n": 5}, {"n": 6}]


def test_the_mark_is_that_of_single_object_encoding() -> None:
    """Avro 1.11: the fingerprint of "int" is 7275d51a3f395c8f, and little-endian in the header."""
    assert mark_of(form_of(_entry("int"))).hex() == "c3018f5c393f1ad57572"


def test_a_value_of_the_first_schema_may_begin_as_a_mark() -> None:
    """It gets one itself; without a known fingerprint behind, it is what it was."""
    fixed = _record(_field("f", {"type": "fixed", "name": "F", "size": 12}))
    more = {**fixed, "fields": [*fixed["fields"], _field("m", "int", default=0)]}
    serde = marked(fixed, fixed, more)
    for value in (mark_of(form_of(_entry(more))) + b"xx", b"\xc3\x01" + b"y" * 10):
        assert serde.from_bytes(serde.to_bytes({"f": value})) == {"f": value}
        assert marked(more, fixed, more).from_bytes(serde.to_bytes({"f": value}))["f"] == value
    unmarked = _plain(fixed).to_bytes({"f": b"\xc3\x01" + b"y" * 10})
    assert serde.from_bytes(unmarked) == {"f": unmarked}


def test_a_tool_reads_the_values_of_its_one_schema_alone() -> None:
    """Those of others are bytes to it, also where the first schema is another one."""
    old, new = _plain(A).to_bytes({"n": 5}), marked(B, A, B).to_bytes({"n": 6, "m": "x"})
    first = form_of(_entry(A))
    for schema, data in ((A, old), (A, mark_of(first) + old), (B, new)):
        serde = avro_of_one_schema(_entry(schema), _plain(schema), shown(first))
        assert serde.from_bytes(data) == ({"n": 5} if schema is A else {"n": 6, "m": "x"})
    for schema, data in ((A, new), (B, old)):
        serde = avro_of_one_schema(_entry(schema), _plain(schema), shown(first))
        with pytest.raises(WireError, match="of another schema: b'"):
            serde.from_bytes(data)
        assert (serde.columns, marked(schema, A, B).columns) == (None, None)
        assert _plain(schema).columns is not None


def test_damaged_bytes_are_refused() -> None:
    """In each of the forms."""
    serde = marked(B, A, B)
    for data in (b"", mark_of(form_of(_entry(B))), mark_of(form_of(_entry(A))) + b"\x02\x02"):
        with pytest.raises(WireError, match="not of the serde 'avro'"):
            serde.from_bytes(data)


def _decimal(precision: int) -> dict[str, Any]:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 0}
    return _field("d", kind)


@pytest.mark.parametrize("after", [[], [_field("m", "int", default=0)]])
@pytest.mark.parametrize("is_first", [True, False])
def test_decimals_with_more_digits_have_the_mark_of_those_with_fewer(
    after: list[dict[str, Any]], *, is_first: bool
) -> None:
    """A fingerprint of Avro's canonical form leaves precisions out: the widest schema reads all."""
    narrow, wide = (_record(_decimal(precision)) for precision in (2, 9))
    last = _record(_decimal(9), *after)
    first = narrow if is_first else _record()
    data = marked(wide, first, wide, narrow).to_bytes({"d": Decimal(123456789)})
    assert marked(last, first, wide, narrow, last).from_bytes(data)["d"] == 123456789


OTHER = _record(_field("o", "string"), name="S")


_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4}


def _enum(*symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols)}


def _fixed(name: str, size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def _in_array(of: object) -> object:
    return {"type": "array", "items": of}


def _in_map(of: object) -> object:
    return {"type": "map", "values": of}


def _in_union(of: object) -> object:
    return [of, "null"]


@pytest.mark.parametrize(
    ("wrap", "value", "found"),
    [
        (_in_array, [{}], [{"b": b"\xff"}]),
        (_in_map, {"k": {}}, {"k": {"b": b"\xff"}}),
        (_in_union, {}, {"b": b"\xff"}),
    ],
)
def test_a_default_of_a_record_in_a_value_that_is_no_record(
    wrap: Callable[[object], object], value: object, found: object
) -> None:
    """The library parses such a schema at each value, and has checked defaults as JSON."""
    was, now = wrap(_record()), wrap(_record(_field("b", "bytes", default="\u00ff")))
    assert marked(now, was, now).from_bytes(_plain(was).to_bytes(value)) == found


def test_a_default_that_is_no_value_of_its_field_is_refused() -> None:
    """Before any value is written, not at the first old value."""
    time = {"type": "int", "logicalType": "time-millis"}
    fault = avro_read_fault(A, _record(_field("n", "int"), _field("t", time, default=-7)))
    assert fault == "it cannot be read by this schema (ValueError: -7 is no time of a day)"
    union = ["int", {"type": "map", "values": "int"}]
    fault = avro_read_fault(A, _record(_field("n", "int"), _field("u", union, default=[1])))
    assert fault == "it cannot be read by this schema (ValueError: [1] is no value of the union)"


def test_the_default_of_a_union_may_be_of_its_second_type() -> None:
    """As Avro 1.12 has it."""
    new = _record(_field("n", "int"), _field("m", ["int", "string"], default="q"))
    old = _plain(A).to_bytes({"n": 5})
    assert marked(new, A, new).from_bytes(old) == {"n": 5, "m": "q"}


def test_a_record_within_itself_is_compared_once() -> None:
    """As a list of nodes, each of which has the next one."""

    def node(kind: str) -> dict[str, Any]:
        return _record(_field("next", ["null", "R"], default=None), _field("x", kind))

    assert _fault(node("int"), node("long")) is None
    assert _fault(node("int"), node("string")) == "field x: int is no string"


def test_arrays_of_unions_in_a_union_are_compared() -> None:
    """The branch of the reader that may fit is found, whatever its items are."""

    def arrays(kind: str) -> dict[str, Any]:
        return _record(_field("n", ["null", {"type": "array", "items": ["null", kind]}]))

    assert _fault(arrays("int"), arrays("long")) is None
    assert _fault(arrays("int"), arrays("string")) == "field n.[]: int is no type of the union"


def test_a_long_schema_has_the_mark_of_its_own() -> None:
    """No form holds it; its values are shown as those of any other."""
    long = _record(*(_field(f"f{n:05}", "null") for n in range(1500)))
    value = {f["name"]: None for f in long["fields"]}
    form = form_of(_entry(long))
    assert len(form) < 100
    assert avro_of_one_schema(_entry(long), _plain(long), form).from_bytes(b"") == value


NESTED = _record(_field("x", "int", default=3), _field("y", "bytes", default="\u00ff"), name="N")
DEFAULTS = [
    (_field("f", "bytes", default="\u00ffa"), b"\xffa"),
    (_field("f", {"type": "int", "logicalType": "date"}, default=1), "1970-01-02"),
    (_field("f", NESTED, default={"x": 4}), {"x": 4, "y": b"\xff"}),
    (_field("f", {"type": "array", "items": NESTED}, default=[{}]), [{"x": 3, "y": b"\xff"}]),
    (_field("f", {"type": "map", "values": "double"}, default={"a": 1}), {"a": 1.0}),
    (_field("f", ["null", NESTED], default=None), None),
    (_field("f", [NESTED, "null"], default={}), {"x": 3, "y": b"\xff"}),
    (_field("f", ["string", "int"], default="a"), "a"),
    (_field("f", "boolean", default=True), True),
    (_field("f", "float", default=1), 1.0),
    (_field("f", [NESTED, {**NESTED, "name": "O"}], default={}), ("N", {"x": 3, "y": b"\xff"})),
]


@pytest.mark.parametrize(("field", "value"), DEFAULTS)
def test_a_default_is_a_value_as_the_serde_reads_it(field: dict[str, Any], value: object) -> None:
    """JSON has text for bytes and numbers for times; the value can be written, and changed."""
    wide = _record(_field("n", "int"), field)
    serde = marked(wide, A, wide)
    data = _plain(A).to_bytes({"n": 5})
    found = serde.from_bytes(data)
    assert found["f"] == value or str(found["f"]) == value
    assert serde.from_bytes(serde.to_bytes(found)) == found
    if isinstance(found["f"], list | dict):
        found["f"].clear()
        assert serde.from_bytes(data)["f"] == value


@pytest.mark.parametrize(
    ("reader", "fault"),
    [
        (_record(_field("n", "int"), _field("m", "int")), "field m: it is missing in older"),
        (_record(_field("n", "string")), "field n: int is no string"),
        (_record(_field("n", "float")), "field n: a number of int may be another one as float"),
        (_record(_field("n", "int"), name="S"), "record R is no record S, which has no such alias"),
        (_record(_field("n", "int"), name="S", aliases=["R"]), None),
        (_record(_field("m", "int", aliases=["n"])), None),
        (_record(_field("n", "double")), None),
        (_record(_field("n", ["null", "long"])), None),
        (_record(_field("n", ["null", "string"])), "field n: int is no type of the union"),
        (_record(_field("n", {"type": "int", "logicalType": "date"})), "field n: int is no date"),
        (_record(), None),
        ("int", "record is no int"),
    ],
)
def test_the_rule_names_the_field(reader: object, fault: str | None) -> None:
    """And what is accepted is read."""
    found = _fault(A, reader)
    if fault is None:
        assert found is None
        marked(reader, A, reader).from_bytes(_plain(A).to_bytes({"n": 5}))
    else:
        assert (found or "").startswith(fault)


OTHER_RULES: list[tuple[Any, Any, str | None]] = [
    (["null", A], A, "a union is read as a union alone"),
    (A, [A, B | {"name": "S"}], "record R is read as a union of it and null alone"),
    (
        _record(_field("a", "int"), _field("b", "int")),
        _record(_field("b", "int", aliases=["a"])),
        "field b: two fields are read as this one",
    ),
    (
        {"type": "fixed", "name": "F", "size": 1},
        {"type": "fixed", "name": "F", "size": 2},
        "1 bytes are no 2",
    ),
    (_enum("A", "B"), _enum("A"), "symbol B is missing"),
    (_enum("A", "B"), _enum("A") | {"default": "A"}, None),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        None,
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 3},
        "a decimal keeps its scale",
    ),
    (
        {"type": "map", "values": "int"},
        {"type": "map", "values": "string"},
        "field {}: int is no string",
    ),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, None),
    ("bytes", "string", "bytes is no string"),
    ("string", "bytes", None),
    ("string", ["null", "bytes"], None),
    ("string", ["bytes", "string"], "a string of the union would be read as bytes"),
    (["bytes", "string"], ["bytes", "string"], "a string of the union would be read"),
    (["string", "null"], ["string", "bytes"], "null is no type of the union"),
    (["int", "long"], "long", None),
    (A, ["null", A], None),
    ([A, "null"], [OTHER, A, "null"], None),
    ("int", A, "int is no record"),
    ("int", [A, "int"], None),
    ({"type": "enum", "name": "R", "symbols": ["A"]}, A, "enum R is no record R"),
    ({"type": "int", "logicalType": "date"}, "long", "date is no long"),
    ("int", {"type": "long", "logicalType": "timestamp-millis"}, "int is no timestamp-millis"),
    (_fixed("a.F", 1), {**_fixed("b.G", 1), "aliases": ["a.F"]}, None),
    (_fixed("F", 1), {**_fixed("b.G", 1), "aliases": ["F"]}, None),
    (_fixed("a.F", 1), {**_fixed("a.G", 1), "aliases": ["F"]}, None),
    (_enum("A", "B"), _enum("B", "C", "A"), None),
    (_DECIMAL, {**_DECIMAL, "scale": 0}, None),
    ({**_DECIMAL, "scale": 0}, _DECIMAL, None),
    ([_fixed("a.F", 1), "null"], [_fixed("b.F", 2), _fixed("a.F", 1), "null"], None),
    (_in_array(["int"]), ["null", _in_array("long")], None),
    (_in_array("int"), ["null", _in_array(["long", "null"])], None),
    (_in_array("string"), ["null", _in_array("int")], "field []: string is no int"),
]


@pytest.mark.parametrize(("writer", "reader", "fault"), OTHER_RULES)
def test_other_rules(writer: object, reader: object, fault: str | None) -> None:
    """One by one."""
    found = _fault(writer, reader)
    assert found is None if fault is None else (found or "").startswith(fault)


@pytest.mark.parametrize("wrap", [lambda of: of, _in_array, _in_map, _in_union])
def test_a_type_that_is_named_before_is_compared_by_its_definition(
    wrap: Callable[[object], object],
) -> None:
    """A schema defines a name once, perhaps within a field that the other one lacks."""

    def named(kind: str) -> dict[str, Any]:
        return _record(_field("x", kind), name="N")

    was = _record(_field("a", wrap(named("int"))), _field("b", "N"))
    assert _fault(was, _record(_field("b", named("long")))) is None
    assert _fault(was, _record(_field("b", named("string")))) == "field b.x: int is no string"


LEAVES = st.sampled_from(["int", "long", "float", "double", "string", "bytes", "boolean", "null"])
_LOGICAL = st.sampled_from(
    [
        {"type": "int", "logicalType": "date"},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        {"type": "enum", "name": "E", "symbols": ["B", "A", "C"], "default": "C"},
        {"type": "fixed", "name": "F", "size": 2},
    ]
)


def _types(depth: int) -> st.SearchStrategy[Any]:
    """A schema; no name stands twice in one, except where the strategy below sorts that out."""
    if depth == 0:
        return LEAVES
    inner = _types(depth - 1)
    return st.one_of(
        LEAVES,
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda values: {"type": "map", "values": values}, inner),
        st.lists(LEAVES, min_size=1, max_size=3, unique=True),
    )


_JSON_DEFAULTS: dict[str, object] = {
    "int": 1,
    "long": 2,
    "float": 1.5,
    "double": 2.5,
    "string": "s",
    "bytes": "\u00fe" * 5,
    "boolean": False,
    "null": None,
}


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A record of some of the fields a to d, in any order; some have defaults."""
    names = draw(st.permutations(["a", "b", "c", "d"]))
    fields = []
    for name in names[: draw(st.integers(0, 4))]:
        kind = draw(_types(2))
        field = _field(name, kind)
        first = kind[0] if isinstance(kind, list) else kind
        if isinstance(first, str) and draw(st.booleans()):
            field["default"] = _JSON_DEFAULTS[first]
        fields.append(field)
    if draw(st.booleans()):
        fields.append(_field("e", draw(_LOGICAL)))
    return _record(*fields)


Draw = Callable[[st.SearchStrategy[Any]], Any]
_NAMED = {"enum": st.sampled_from("B"), "fixed": st.binary(min_size=2, max_size=2)}


def _value(draw: Draw, schema: Any) -> Any:  # noqa: ANN401 - JSON
    """A value of the schema."""
    if isinstance(schema, list):
        return _value(draw, draw(st.sampled_from(schema)))
    if isinstance(schema, str):
        return draw(_VALUES[schema])
    kind = schema["type"]
    if kind == "record":
        return {f["name"]: _value(draw, f["type"]) for f in schema["fields"]}
    if kind == "array":
        return [_value(draw, schema["items"]) for _ in range(draw(st.integers(0, 2)))]
    if kind == "map":
        return {k: _value(draw, schema["values"]) for k in draw(st.sets(st.sampled_from("xy")))}
    return draw(_NAMED.get(kind, st.just(5)))


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=3),
    "bytes": st.binary(max_size=3),
    "boolean": st.booleans(),
    "null": st.none(),
}


_WIDER = {"int": "long", "float": "double", "string": "bytes", "long": "double"}


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A record, and what it became: fields went, came, moved, widened, got null; or another one."""
    writer = draw(records())
    if draw(st.integers(0, 4)) == 0:
        return writer, draw(records())
    fields = [dict(field) for field in writer["fields"] if draw(st.integers(0, 3))]
    for field in fields:
        kind = field["type"]
        change = draw(st.integers(0, 5))
        if change == 0 and isinstance(kind, str):
            field["type"] = _WIDER.get(kind, kind)
            field.pop("default", None)
        elif change == 1 and kind != "null" and not isinstance(kind, list):
            field["type"] = ["null", kind]
            field.pop("default", None)
        elif change == 2:
            field.update(name=f"{field['name']}2", aliases=[field["name"]])
    for name in draw(st.lists(st.sampled_from("gh"), unique=True)):
        kind = draw(LEAVES)
        has_default = draw(st.integers(0, 3)) > 0
        default = {"default": _JSON_DEFAULTS[kind]} if has_default else {}
        fields.append(_field(name, kind, **default))
    return writer, _record(*draw(st.permutations(fields)))


def _by_library(writer: object, reader: object, data: bytes) -> Any:  # noqa: ANN401 - a value
    was, now = (fastavro.parse_schema(json.loads(json.dumps(s))) for s in (writer, reader))
    return fastavro.schemaless_reader(io.BytesIO(data), was, now)


@settings(max_examples=60)
@given(evolutions(), st.data())
def test_what_is_accepted_is_read_as_the_library_resolves_it(
    pair: tuple[dict[str, Any], dict[str, Any]], data: st.DataObject
) -> None:
    """But for defaults, which the library leaves as JSON has them; and is written again."""
    writer, reader = pair
    value = _value(data.draw, writer)
    plain = _plain(writer).to_bytes(value)
    fault = _fault(writer, reader)
    event("accepted" if fault is None else "refused")
    if fault is not None:
        return
    serde = marked(reader, writer, reader)
    found, resolved = serde.from_bytes(plain), _by_library(writer, reader, plain)
    for name, part in resolved.items():
        assert found[name] == (b"\xfe" * 5 if part == _JSON_DEFAULTS["bytes"] else part)
    assert found.keys() == resolved.keys()
    assert serde.from_bytes(serde.to_bytes(found)) == found


@settings(max_examples=60)
@given(evolutions(), st.data())
def test_what_is_refused_is_not_read_or_is_another_value(
    pair: tuple[dict[str, Any], dict[str, Any]], data: st.DataObject
) -> None:
    """A field that is missing stops every value; a type alone, those that have such a part."""
    writer, reader = pair
    fault = _fault(writer, reader)
    if fault is None:
        return
    plain = _plain(writer).to_bytes(_value(data.draw, writer))
    is_of_part = any(part in fault for part in ("[]", "{}", "union", "another one", "bytes"))
    if is_of_part or any(isinstance(field["type"], list) for field in writer["fields"]):
        return  # some values have no such part, or one that fits
    with pytest.raises(WireError):
        marked(reader, writer, reader).from_bytes(plain)
