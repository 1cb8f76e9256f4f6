"""JSON into columns natively: what it reads and refuses is what the serde in Python does."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Required, TypedDict

import json_fuzz
import msgspec
import pyarrow as pa
import pytest
from json_fuzz import any_object, any_type, compare
from sanitized_builds import run_sanitized

from homeport.container.native import column_reader, library
from homeport.container.native.column_reader import ColumnReader, natively
from homeport.container.native.library import NoLibraryError
from homeport.container.serde.class_columns import class_columns
from homeport.container.serde.columns import JSON, Columns, Layout, object_columns
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns

KIND = struct_of_ddl("a STRING, b BIGINT, c STRUCT<d: DOUBLE, e: BOOLEAN>")


def test_values_and_refusals_are_the_same_as_in_python() -> None:
    """Of 18,000 values: some fit, some are odd, some are damaged."""
    left, values = map(sum, zip(*map(compare, range(400)), strict=True))
    assert values > 18_000
    assert 0 < left < values


class Struct(msgspec.Struct, rename={"number": "f2"}):
    """Its JSON has another name."""

    f0: str
    number: int
    f1: float = 1.5


@dataclass
class Data:
    """Fields that may lack, and such as may be null."""

    f0: str | None
    f1: int | None = None
    f2: dt.datetime | None = None
    f3: bool = False
    f4: list[int] = field(default_factory=list)


@dataclass
class Plain:
    """The same, without lists."""

    f0: dt.date | None
    f1: int | None = None
    f2: dt.datetime | None = None
    f3: bool = False
    f4: str = "x"


class Entry(TypedDict, total=False):
    """All of it may lack."""

    f0: str
    f1: bool | None
    f2: Required[float | None]


@pytest.mark.parametrize("record", [Struct, Plain, Entry])
def test_values_of_classes_are_the_same_as_in_python(record: type) -> None:
    """Python alone knows what a field is that JSON lacks, or has as null."""
    columns = class_columns(record, msgspec.json.Decoder(record).decode)
    left, values = map(sum, zip(*(compare(s, columns) for s in range(60)), strict=True))
    assert 0 < left < values


class Tagged(msgspec.Struct, tag=True):
    """Its JSON has its name."""

    f0: str


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    """It has no other fields."""

    f0: str


class Positive(msgspec.Struct):
    """It has bounds."""

    f0: Annotated[int, msgspec.Meta(gt=0)]


class Checked(msgspec.Struct):
    """It judges itself."""

    f0: int

    def __post_init__(self) -> None:
        """Refuse any."""
        raise ValueError("never")


@pytest.mark.parametrize("record", [Tagged, Closed, Positive, Checked, Data])
def test_a_class_with_rules_of_its_own_stays_in_python(record: type) -> None:
    """The library knows types alone."""
    columns = class_columns(record, msgspec.json.Decoder(record).decode)
    assert natively(columns) is columns


def test_it_leaves_nothing_that_programs_write_to_python() -> None:
    """Numbers of any size, escapes, times with and without a zone."""
    for seed in range(100):
        random_ = random.Random(seed)  # noqa: S311 - of a test
        kind = any_type(random_)
        values = [any_object(random_, kind, is_odd=False).encode() for _ in range(50)]
        assert ColumnReader(kind, kind, Layout(JSON)).read(pa.array(values, pa.binary()))[1] == []


@pytest.mark.search
def test_no_value_reads_or_writes_past_its_memory(tmp_path: Path) -> None:
    """By a build that two sanitizers of the compiler watch."""
    run_sanitized(json_fuzz, tmp_path, "60")


def test_values_left_to_python_come_in_their_places() -> None:
    """Beside nulls, values that are bad, and values that are read natively."""
    values = [b'{"a": "x"}', None, b'{"b": -0}', b'{"b": "1"}', b'{"a": "y", "c": {"d": 2}}', b"{"]
    array = pa.array([b"before", *values], pa.binary()).slice(1)
    python = json_columns(KIND)
    native = natively(python)
    assert native.read is not None
    assert native.read(array, KIND)[1] == [2, 3, 5]
    found = native.decode(array)
    assert found == python.decode(array)
    assert list(found.bad) == [3, 5]
    assert found.column[4].as_py() == {"a": "y", "b": None, "c": {"d": 2.0, "e": None}}


def test_no_values_are_an_empty_column() -> None:
    """Of all fields, and of some."""
    nothing = pa.array([], pa.binary())
    for only in (None, frozenset("b")):
        found, expected = (
            c.decode(nothing, only) for c in (natively(json_columns(KIND)), json_columns(KIND))
        )
        assert found == expected


@pytest.mark.parametrize(
    "kind",
    [
        struct_of_ddl("a STRING, b DECIMAL(3,1)"),
        struct_of_ddl("a STRUCT<b: ARRAY<INT>>"),
        pa.struct([(f"f{n}", pa.int64()) for n in range(65)]),
    ],
)
def test_a_schema_that_the_library_lacks_stays_in_python(kind: pa.StructType) -> None:
    """Of other types, or of more fields than it counts."""
    columns = json_columns(kind)
    assert natively(columns) is columns


def test_other_serdes_stay_as_they_are() -> None:
    """Their bytes are no JSON."""
    columns: Columns = object_columns(KIND, lambda _: {})
    assert natively(columns) is columns


def test_without_the_library_python_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else changes."""

    def missing() -> None:
        raise NoLibraryError("not here")

    monkeypatch.setattr(library, "load", missing)
    column_reader._native.cache_clear()
    columns = json_columns(KIND)
    try:
        assert natively(columns) is columns
    finally:
        column_reader._native.cache_clear()
