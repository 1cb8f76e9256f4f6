"""Columns of classes whose fields have types."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError
from homeport.config.settings.input_serdes import InputSerde
from homeport.container.classes import load_columns, with_classes
from homeport.container.serde.columns import Columns
from tests.unit.container.serde import test_class_serde

KEY = "systems.kafka.streams.orders.samza.msg.serde"


class Colour(enum.Enum):
    """One of several texts."""

    RED = "red"


class Size(enum.IntEnum):
    """One of several numbers."""

    L = 3


class Part(msgspec.Struct, rename="camel"):
    """Its JSON has other names."""

    part_no: int = 7


class Note(TypedDict, total=False):
    """What may be missing."""

    text: str


class Sparse(msgspec.Struct, omit_defaults=True):
    """JSON without what is as by default."""

    count: int = 5


@dataclass
class Order:
    """Each kind of field."""

    name: str
    price: float
    at: dt.datetime
    day: dt.date
    due: Decimal
    id: uuid.UUID
    colour: Colour
    size: Size
    state: Literal["open", "done"]
    raw: bytes
    is_paid: bool
    parts: list[Part]
    tags: tuple[str | None, ...]
    counts: dict[str, int]
    note: Note | None = None
    stars: Annotated[int, msgspec.Meta(ge=0)] | None = 5
    sparse: Sparse = field(default_factory=Sparse)
    codes: set[int] = field(default_factory=set)


TYPE = pa.struct(
    [
        ("name", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("due", pa.decimal128(38, 18)),
        ("id", pa.string()),
        ("colour", pa.string()),
        ("size", pa.int64()),
        ("state", pa.string()),
        ("raw", pa.binary()),
        ("is_paid", pa.bool_()),
        ("parts", pa.list_(pa.struct([("partNo", pa.int64())]))),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("note", pa.struct([("text", pa.string())])),
        ("stars", pa.int64()),
        ("sparse", pa.struct([("count", pa.int64())])),
        ("codes", pa.list_(pa.int64())),
    ]
)


class Empty(msgspec.Struct):
    """No field."""


class AnyField(msgspec.Struct):
    """A field of any type."""

    what: Any


class Either(msgspec.Struct):
    """A field of two types."""

    what: int | str


class Mixed(msgspec.Struct):
    """A choice of two types."""

    what: Literal["a", 1]


def _columns(name: str) -> Columns:
    item = InputSerde(KEY, "kafka", "orders", f"{__name__}:{name}")
    (found,) = with_classes([item])
    assert found.has_schema
    return load_columns(found)


ROW = (
    b'{"name":"a","price":1,"at":"2013-01-02T03:04:05Z","day":"2013-01-02","due":"1.5",'
    b'"id":"00000000-0000-0000-0000-000000000005","colour":"red","size":3,"state":"open",'
    b'"raw":"aGk=","is_paid":true,"parts":[{}],"tags":["x",null],"counts":{"k":1},"more":0}'
)


def test_a_field_of_each_type_has_a_column() -> None:
    """Missing fields have their defaults, as in the objects; others are passed over."""
    columns = _columns("Order")
    assert columns.type == TYPE
    decoded = columns.decode(pa.array([ROW, None, b"{}", ROW]))
    assert decoded.bad == {2: "Object missing required field `name`"}
    found = decoded.column.to_pylist()
    assert found[0] == {
        "name": "a",
        "price": 1.0,
        "at": dt.datetime(2013, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "day": dt.date(2013, 1, 2),
        "due": Decimal("1.5"),
        "id": str(uuid.UUID(int=5)),
        "colour": "red",
        "size": 3,
        "state": "open",
        "raw": b"hi",
        "is_paid": True,
        "parts": [{"partNo": 7}],
        "tags": ["x", None],
        "counts": [("k", 1)],
        "note": None,
        "stars": 5,
        "sparse": {"count": 5},
        "codes": [],
    }
    assert found[1:] == [None, None, found[0]]


def test_fields_that_are_not_asked_for_are_judged_too() -> None:
    """The others are returned."""
    decoded = _columns("Part").decode(pa.array([b'{"partNo":1}', b'{"partNo":"x"}']), frozenset())
    assert decoded.column.to_pylist() == [{"partNo": 1}, None]
    assert [*decoded.bad] == [1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Empty", "Empty has no field"),
        ("AnyField", "no column has the type of the field what, AnyType"),
        ("Either", "no column has the type of the field what, UnionType"),
        ("Mixed", "no column has the type of the field what, LiteralType"),
    ],
)
def test_a_class_without_columns_is_refused(name: str, reason: str) -> None:
    """Before a record is read, by the key of the stream."""
    with pytest.raises(ConfigError) as refused:
        _columns(name)
    assert str(refused.value) == (
        f"{KEY} = '{__name__}:{name}': a pipeline or BatchTask needs columns: {reason}; give its "
        "fields types that columns have, or read bytes: remove the stream's samza.msg.serde"
    )


def test_a_serde_of_the_jobs_own_has_no_columns() -> None:
    """Whatever its fields."""
    item = InputSerde(KEY, "kafka", "orders", f"{test_class_serde.__name__}:Scaled")
    assert not with_classes([item])[0].has_schema
