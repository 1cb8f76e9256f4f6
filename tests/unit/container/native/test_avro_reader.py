"""Avro into columns natively: what it reads and refuses is what the serde in Python does."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import avro_fuzz
import pyarrow as pa
from avro_fuzz import any_object, any_schema, compare
from sanitized_builds import run_sanitized

from homeport.container.native.column_reader import ColumnReader, natively
from homeport.container.serde.avro_serde import avro_serde

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "n", "type": "long"}, {"name": "k", "type": ["null", "string"]}],
    }
)
VALUES = [{"n": -1, "k": "a"}, {"n": 1 << 60, "k": None}]


def test_values_and_refusals_are_the_same_as_in_python() -> None:
    """Of 14,000 values: most fit, some are damaged."""
    left, values = map(sum, zip(*map(compare, range(300)), strict=True))
    assert values > 14_000
    assert 0 < left < values // 3


def test_values_that_fit_are_read_natively() -> None:
    """But those that have more bytes than a number needs, or the first and last years."""
    for seed in range(50):
        random_ = random.Random(seed)  # noqa: S311 - of a test
        schema = any_schema(random_)
        serde = avro_serde("key", json.dumps(schema))
        assert serde.columns is not None
        columns = serde.columns()
        assert columns.layout is not None
        written = [serde.to_bytes(any_object(random_, schema)) for _ in range(20)]
        reader = ColumnReader(columns.type, columns.type, columns.layout)
        assert reader.read(pa.array(written, pa.binary()))[1] == []


def test_values_behind_a_header_are_read_where_it_is_the_one_of_the_first() -> None:
    """Others, and those that are shorter than a header, are left to Python."""
    serde = avro_serde("key", SCHEMA)
    assert serde.columns is not None
    columns = serde.columns()
    assert columns.layout is not None
    data = [serde.to_bytes(value) for value in VALUES]
    values = [b"abcde" + data[0], None, b"abcdf" + data[1], b"abcde" + data[1], b"ab", b"abcde"]
    reader = ColumnReader(columns.type, columns.type, columns.layout)
    found, left = reader.read(pa.array(values, pa.binary()), b"abcde")
    assert left == [2, 4, 5]
    assert [found[place].as_py() for place in (0, 1, 3)] == [VALUES[0], None, VALUES[1]]


def test_where_the_schema_is_another_one_python_reads_all() -> None:
    """The question comes with the header of the first value."""
    serde = avro_serde("key", SCHEMA)
    assert serde.columns is not None
    asked: list[bytes] = []

    def is_known(header: bytes) -> bool:
        asked.append(header)
        return False

    columns = natively(replace(serde.columns(), has_layout=is_known))
    values = pa.array([None, serde.to_bytes(VALUES[0]), b""], pa.binary())
    decoded = columns.decode(values)
    assert decoded.column.to_pylist() == [None, VALUES[0], None]
    assert list(decoded.bad) == [2]
    assert columns.decode(pa.array([None], pa.binary())).column.to_pylist() == [None]
    assert asked == [values[1].as_py()[:5], b""]


def test_no_value_makes_it_touch_other_memory(tmp_path: Path) -> None:
    """Sanitizers watch a build of it."""
    run_sanitized(avro_fuzz, tmp_path, "60")
