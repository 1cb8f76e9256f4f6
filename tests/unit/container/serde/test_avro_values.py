"""Avro's values and back: nothing is cast, rounded or mistaken for another branch of a union."""

from __future__ import annotations

import datetime as dt
import io
import time
import uuid
from decimal import Context, Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from homeport.config.errors import WireError
from homeport.container.serde.avro_values import to_avro
from homeport.container.serde.protobuf_values import PreciseTime
from tests.unit.container.serde.avro_schemas import array, logical, record, serde_of

UTC = dt.UTC
EAST = dt.timezone(dt.timedelta(hours=5))
AT = dt.datetime(2013, 1, 2, 3, 4, 5, 6000, UTC)


def _record(name: str, kind: Any, field: str = "f") -> dict[str, Any]:  # noqa: ANN401 - JSON
    return record(name, **{field: kind})


PRICE = logical("decimal", "bytes", precision=4, scale=2)
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
MAP = {"type": "map", "values": "int"}
LIST = array("string")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *(("long", Decimal(1)), ("double", "1"), ("null", 5), (MAP, "ab"), (LIST, "abc")),
        *((LIST, {"a"}), (LIST, [None]), (logical("timestamp-millis"), AT.replace(microsecond=1))),
        *((logical("timestamp-millis"), AT.date()), (logical("timestamp-millis"), True)),
        *(
            (logical("time-micros"), dt.time(1, tzinfo=UTC)),
            (PRICE, 100),
            (PRICE, Decimal("1E+9999")),
        ),
        *((logical("timestamp-micros"), 2**62), (logical("time-micros"), -1)),
        *((logical("time-millis", "int"), 86_400_000), (PRICE, Decimal("NaN")), (PRICE, b"\1")),
        *((logical("timestamp-millis"), AT.replace(year=1, month=1, day=1, tzinfo=EAST)),),
        *((PRICE, True), (["int", "string"], 1.5), (["null", "int", "string"], b"a")),
        *((_record("R", "int"), {}), (_record("R", "int"), {"f": 1, "g": 2})),
        *((_record("R", "int"), {"f": "1"}), (_record("R", "int"), None)),
    ],
)
def test_what_the_schema_cannot_carry_is_refused_and_never_cast(
    schema: object, value: object
) -> None:
    """At the put or send."""
    with pytest.raises(TypeError, match=r"the schema of the serde 'avro' cannot carry it: ."):
        serde_of(schema).to_bytes(value)


def test_digits_below_a_microsecond_are_refused() -> None:
    """A Timestamp of Protobuf has them."""
    precise = PreciseTime(2013, 1, 2, tzinfo=UTC)
    precise.nanosecond = 1
    with pytest.raises(TypeError, match="has digits that the schema has not"):
        serde_of(logical("timestamp-micros")).to_bytes(precise)


@pytest.mark.parametrize(
    ("schema", "value", "read"),
    [
        ("int", np.int64(5), 5),
        ("double", np.float32(0.5), 0.5),
        ("double", 3, 3.0),
        ("boolean", np.bool_(1), True),
        ("float", float("-inf"), float("-inf")),
        ("bytes", bytearray(b"a"), b"a"),
        (MAP, [("a", 1)], {"a": 1}),
        (logical("timestamp-millis"), AT, AT),
        (logical("timestamp-micros"), 5, dt.datetime(1970, 1, 1, 0, 0, 0, 5, UTC)),
        (logical("local-timestamp-micros"), AT.replace(tzinfo=None), AT.replace(tzinfo=None)),
        (logical("date", "int"), AT.date(), AT.date()),
        (logical("time-millis", "int"), dt.time(1, 2, 3, 4000), dt.time(1, 2, 3, 4000)),
        (logical("uuid", "string"), str(uuid.UUID(int=5)), uuid.UUID(int=5)),
        (PRICE, 5, Decimal("5.00")),
        (PRICE, Decimal("-12.3"), Decimal("-12.30")),
        (PRICE, Decimal("1.2300"), Decimal("1.23")),
        (logical("decimal", "int", precision=4, scale=2), 5, 5),
        (logical("decimal", "string", precision=4), "5", "5"),
        (logical("decimal", "bytes"), b"a", b"a"),
        (logical("date", "string"), "x", "x"),
        (logical("timestamp-millis", "int"), 5, 5),
        ([PRICE, "double"], 100, 100.0),
        (
            [PRICE, logical("decimal", "fixed", name="W", size=9, precision=9)],
            100,
            ("W", Decimal(100)),
        ),
        ([logical("time-millis", "int"), "long"], 86_400_000, 86_400_000),
        (logical("duration", "fixed", name="D", size=12), b"a" * 12, b"a" * 12),
        (["null", PRICE], Decimal("1.00"), Decimal("1.00")),
        (["null", "long", "double"], 5, 5),
        (["double", "long"], 5, 5),
        ([PRICE, "int"], 5, 5),
        ([PRICE, logical("timestamp-nanos")], 5, 5),
        ([logical("date", "int"), "long", "float"], 5, 5),
        ([logical("date", "int"), "double"], 0.5, 0.5),
        (["float", "double"], 0.1, 0.1),
        (["null", LIST, MAP], [("a", 1)], {"a": 1}),
        (
            ["null", LIST, {"type": "map", "values": PRICE}],
            {"a": Decimal("1.00")},
            {"a": Decimal("1.00")},
        ),
        (array([PRICE, "null", "string"]), [Decimal(1), None, "x"], [1, None, "x"]),
    ],
)
def test_what_it_carries_is_read_as_it_was(schema: object, value: object, read: object) -> None:
    """Numbers of NumPy, pairs of a map's column, and the number that carries a logical type."""
    serde = serde_of(schema)
    found = serde.from_bytes(serde.to_bytes(value))
    assert (type(found), found) == (type(read), read)
    assert serde.to_bytes(found) == serde.to_bytes(value)


TWINS = [
    "null",
    "string",
    {"type": "fixed", "name": "F", "size": 2},
    "bytes",
    ENUM,
    _record("n.Created", "int"),
    _record("n.Deleted", "int"),
    _record("n.Other", ["null", "n.Deleted", "n.Other", PRICE], "g"),
]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (("n.Deleted", {"f": 1}), ("n.Deleted", {"f": 1})),
        ({"f": 1}, ("n.Created", {"f": 1})),
        (("E", "A"), ("E", "A")),
        ("A", "A"),
        (("F", b"ab"), ("F", b"ab")),
        (b"abc", b"abc"),
        ({"g": {"g": {"f": 1}}}, {"g": {"g": {"f": 1}}}),
        ({"g": {"g": Decimal("1.50")}}, {"g": {"g": Decimal("1.50")}}),
        (None, None),
    ],
)
def test_branches_of_a_union_that_look_alike_come_with_their_names(
    value: object, read: object
) -> None:
    """Records with the same fields, an enum beside text: sent on, each is what it was."""
    serde = serde_of(TWINS)
    data = serde.to_bytes(value)
    assert serde.from_bytes(data) == read
    assert serde.to_bytes(serde.from_bytes(data)) == data


def test_two_enums_or_fixed_of_one_size_look_alike_too() -> None:
    """Others do not."""
    other = {"type": "enum", "name": "G", "symbols": ["B", "C"]}
    sizes = [{"type": "fixed", "name": f"F{n}", "size": n // 2} for n in (2, 3, 4)]
    for union, value in (([ENUM, other], ("G", "B")), (sizes, ("F3", b"a"))):
        serde = serde_of(union)
        assert serde.from_bytes(serde.to_bytes(value)) == value
    assert serde_of(sizes).from_bytes(serde_of(sizes).to_bytes(b"ab")) == b"ab"
    serde = serde_of([_record("R", "int"), MAP])
    assert serde.from_bytes(serde.to_bytes(("R", {"f": 1}))) == ("R", {"f": 1})


def test_what_comes_without_its_name_goes_out_as_the_branch_that_has_none() -> None:
    """A map beside a record, text beside an enum, bytes beside a fixed, an array beside a map."""
    enum = {"type": "enum", "name": "E", "symbols": ["A"]}
    fixed = {"type": "fixed", "name": "F", "size": 1}
    nulls = {"type": "map", "values": "null"}
    nothings = array("null")
    cases: list[tuple[Any, Any, object]] = [
        (enum, "string", "A"), (fixed, "bytes", b"a"), (record("R"), nulls, {})
    ]  # fmt: skip
    either = serde_of([nulls, nothings])
    assert either.from_bytes(either.to_bytes([])) == []
    assert either.from_bytes(either.to_bytes({})) == {}
    for named, plain, value in cases:
        for union in ([named, plain], [plain, named]):
            serde = serde_of(union)
            for branch in (0, 1):
                data = io.BytesIO()
                schema = fastavro.parse_schema(_record("Root", union))
                label = plain["type"] if isinstance(plain, dict) else plain
                name = (label, named["name"])[union[branch] is named]
                fastavro.schemaless_writer(data, schema, {"f": (name, value)})
                assert serde.to_bytes(serde.from_bytes(data.getvalue())) == data.getvalue()


@pytest.mark.parametrize("precision", [4, 9])
def test_a_decimal_beyond_the_precision_is_undecodable_in_both(precision: int) -> None:
    """A task never gets it rounded."""
    schema = _record("R", {"type": "map", "values": PRICE})
    data = io.BytesIO()
    wide = _record("R", {"type": "map", "values": PRICE | {"precision": precision}})
    number = Decimal("12.34") if precision == 4 else Decimal("123456.78")
    fastavro.schemaless_writer(data, fastavro.parse_schema(wide), {"f": {"a": number}})
    serde = serde_of(schema)
    assert serde.columns is not None
    decoded = serde.columns().decode(pa.array([data.getvalue()], pa.binary()))
    if precision == 4:
        assert serde.from_bytes(data.getvalue()) == {"f": {"a": number}}
        assert decoded.column.to_pylist() == [{"f": [("a", number)]}]
        return
    assert list(decoded.bad) == [0]
    with pytest.raises(WireError, match="12345678 has more digits than the precision 4"):
        serde.from_bytes(data.getvalue())


@pytest.mark.parametrize("number", [-1, 86_400_000])
@pytest.mark.parametrize("around", [lambda kind: kind, lambda kind: ["null", kind, "long"]])
def test_a_number_beyond_a_day_is_no_time(number: int, around: Any) -> None:  # noqa: ANN401 - JSON to JSON
    """The library makes another time of it."""
    for kind, unit in (("time-millis", 1), ("time-micros", 1000)):
        own = "int" if kind == "time-millis" else "long"
        union = around(logical(kind, own))
        if own == "long" and isinstance(union, list):
            union[2] = "int"
        data = io.BytesIO()
        place = b"\2" if isinstance(union, list) else b""
        fastavro.schemaless_writer(data, {"type": own}, number * unit)
        with pytest.raises(WireError, match="is no time of a day"):
            serde_of(union).from_bytes(place + data.getvalue())


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (logical("decimal", "int", precision=4), 5),
        (logical("decimal", "bytes"), b"a"),
        (logical("timestamp-millis", "string"), "x"),
        (logical("date", "long"), 2**40),
    ],
)
def test_a_logical_type_on_another_type_than_its_own_is_none(schema: object, value: object) -> None:
    """As the specification has it; in a column too."""
    serde = serde_of(_record("R", schema))
    wire = serde.to_bytes({"f": value})
    assert serde.columns is not None
    found = serde.columns().decode(pa.array([wire], pa.binary()))
    assert (found.column.to_pylist(), found.bad) == ([{"f": value}], {})
    assert serde.from_bytes(wire) == {"f": value}


def test_a_time_without_a_zone_is_one_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library takes it for one of the host's."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    serde = serde_of(logical("timestamp-micros"))
    try:
        assert serde.from_bytes(serde.to_bytes(AT.replace(tzinfo=None))) == AT
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_type_that_is_named_again_is_read_as_the_first_time() -> None:
    """With decimals in it, which this reads itself."""
    number = logical("decimal", "bytes", precision=1, scale=0)
    ours = serde_of(record("R", f=record("N", f=number), g="N"))
    wire = b"\x02\x05\x02\x03"
    value = ours.from_bytes(wire)
    assert value == {"f": {"f": Decimal(5)}, "g": {"f": Decimal(3)}}
    assert ours.to_bytes(value) == wire


def test_a_decimal_of_many_digits_is_read_as_it_was() -> None:
    """Whatever precision the schema has."""
    serde = serde_of(logical("decimal", "bytes", precision=2000, scale=1500))
    number = Decimal(int("7" * 1999)).scaleb(-1500, Context(prec=2000))
    assert serde.from_bytes(serde.to_bytes(number)) == number


def test_a_value_for_a_registrys_schema_goes_to_the_record_that_is_nearest() -> None:
    """The latest schema may have fields that the job does not know; what is no record stays."""
    short, long = _record("S", "int"), _record("L", "int")
    long["fields"].append({"name": "g", "type": "int", "default": 0})
    convert = to_avro(fastavro.parse_schema([short, long, "string"]), is_whole=False)
    assert convert({"f": 1}) == ("S", {"f": 1})
    assert convert({"f": 1, "g": 2}) == ("L", {"f": 1, "g": 2})
    assert convert("x") == ("string", "x")
