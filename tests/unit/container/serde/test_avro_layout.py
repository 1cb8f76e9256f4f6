"""The layout of an Avro schema, or that it has none."""

from __future__ import annotations

from typing import Any

import fastavro
import pytest

from homeport.container.serde.avro_layout import avro_layout
from homeport.container.serde.columns import AVRO, MILLIS, NULL_SECOND, OPTIONAL, Layout


def _record(*kinds: Any, name: str = "R") -> dict[str, Any]:  # noqa: ANN401 - JSON
    fields = [{"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)]
    return {"type": "record", "name": name, "fields": fields}


def _logical(carrier: str, logical: str) -> dict[str, str]:
    return {"type": carrier, "logicalType": logical}


def _layout(schema: Any) -> Layout | None:  # noqa: ANN401 - JSON
    return avro_layout(fastavro.parse_schema(schema))


def test_each_field_has_its_form() -> None:
    """Records within records, also where they are named again."""
    inner = _record(["long", "null"], _logical("long", "timestamp-millis"), name="I")
    schema = _record("string", ["null", inner], "I", _logical("int", "date"), {"type": "double"})
    forms: dict[tuple[str, ...], int] = {("f0",): 0, ("f1",): OPTIONAL, ("f2",): 0}
    forms |= {("f3",): 0, ("f4",): 0}
    for record in ("f1", "f2"):
        forms |= {(record, "f0"): OPTIONAL | NULL_SECOND, (record, "f1"): MILLIS}
    assert _layout(schema) == Layout(AVRO, forms)


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "long"},
        {"type": "map", "values": "long"},
        {"type": "enum", "name": "E", "symbols": ["A"]},
        {"type": "fixed", "name": "F", "size": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": 9},
        _logical("string", "uuid"),
        _logical("long", "local-timestamp-micros"),
        "null",
        ["null"],
        ["null", "long", "string"],
        ["long", "string"],
        _record({"type": "array", "items": "long"}, name="I"),
    ],
)
def test_other_types_have_none(kind: Any) -> None:  # noqa: ANN401 - JSON
    """Whatever the other fields are."""
    assert _layout(_record("long", kind)) is None


def test_what_is_no_record_has_none() -> None:
    """A column of it is no struct."""
    assert _layout("long") is None
    assert _layout({"type": "array", "items": "long"}) is None
    assert _layout(["null", _record("long")]) is None
