"""Schemas as DDL: Spark's words, and what is refused with which sentence."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from homeport.container.serde.ddl import struct_of_ddl


def test_each_type_of_the_subset_has_its_arrow_type() -> None:
    """In any case, with names in backticks, with NOT NULL and COMMENT, which say nothing here."""
    text = """
        a STRING NOT NULL COMMENT 'its, not', b int, `c-d` BIGINT, e long, f smallint, g byte,
        h double, i float, j boolean, k binary, l date, m timestamp, n decimal(12,3), o decimal,
        p array<int>, q map<string, double>, r struct<x: int, y: array<struct<z string>>>,
        `array` decimal(5)
    """
    utc = pa.timestamp("us", "UTC")
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))])
    assert struct_of_ddl(text) == pa.struct(
        [
            ("a", pa.string()),
            ("b", pa.int32()),
            ("c-d", pa.int64()),
            ("e", pa.int64()),
            ("f", pa.int16()),
            ("g", pa.int8()),
            ("h", pa.float64()),
            ("i", pa.float32()),
            ("j", pa.bool_()),
            ("k", pa.binary()),
            ("l", pa.date32()),
            ("m", utc),
            ("n", pa.decimal128(12, 3)),
            ("o", pa.decimal128(10, 0)),
            ("p", pa.list_(pa.int32())),
            ("q", pa.map_(pa.string(), pa.float64())),
            ("r", inner),
            ("array", pa.decimal128(5, 0)),
        ]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a name is expected where 'the end' stands"),
        ("a", "'the end' is no type: write string, tinyint"),
        ("a strng", "'strng' is no type"),
        ("a `int`", "'int' is no type"),
        ("a int b int", "',' is expected where 'b' stands"),
        ("a int,", "a name is expected where 'the end' stands"),
        ("a int, A string", "the field 'A' stands there twice"),
        ("a array<int", "'>' is expected where 'the end' stands"),
        ("a array int", "'<' is expected where 'int' stands"),
        ("a map<double, int>", "the key of a map is a string or a whole number"),
        ("a decimal(39)", "a decimal has 1 to 38 digits"),
        ("a decimal(5, 6)", "a decimal has 1 to 38 digits"),
        ("a decimal(x)", "a number is expected where 'x' stands"),
        ("a int not", "'null' is expected where 'the end' stands"),
        ("a int comment x", "COMMENT needs a text in single quotes"),
        ("a int; drop", "'; drop' is not of a schema"),
        ("a " + "array<" * 60 + "int" + ">" * 60, "types are nested deeper than 50"),
        ('{"type": "record"}', "is not of a schema"),
    ],
)
def test_what_is_no_schema_is_refused(text: str, expected: str) -> None:
    """With what is wrong and where."""
    with pytest.raises(ValueError, match=re.escape(expected)):
        struct_of_ddl(text)
