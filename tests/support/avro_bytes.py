"""Avro's schemas, and bytes of their values by a writer from the specification.

It knows nothing of the library that reads them.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(codec="utf-8"), max_size=4)


def _varint(number: int) -> bytes:
    coded = (number << 1) ^ (number >> 63)
    found = bytearray()
    while coded > 127:
        found.append(coded & 127 | 128)
        coded >>= 7
    return bytes([*found, coded])


def _block(data: bytes) -> bytes:
    return _varint(len(data)) + data


PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = (
    ("date", "int"), ("timestamp-millis", "long"), ("timestamp-micros", "long"),
    ("local-timestamp-millis", "long"), ("local-timestamp-micros", "long"),
    ("time-millis", "int"), ("time-micros", "long"), ("timestamp-nanos", "long"),
    ("date", "long"), ("time-micros", "int"), ("decimal", "string"), ("uuid", "bytes"),
)  # fmt: skip


_NUMBERS = itertools.count()


def schema_of(data: st.DataObject, names: list[str], depth: int) -> Any:  # noqa: ANN401, C901, PLR0911 - JSON; one line per kind
    """Return a random schema, at most ``depth`` deep; its names go into ``names``."""
    kinds = ["plain", "logical", "decimal", "fixed", "enum", "named"]
    if depth:
        kinds += ["array", "map", "record", "union", "union"]
    kind = data.draw(st.sampled_from(kinds), "kind")
    if kind == "logical":
        logical, base = data.draw(st.sampled_from(LOGICAL))
        return {"type": base, "logicalType": logical}
    if kind == "decimal":
        precision = data.draw(st.integers(1, 12))
        scale = data.draw(st.integers(0, precision))
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if kind == "array":
        return {"type": "array", "items": schema_of(data, names, depth - 1)}
    if kind == "map":
        return {"type": "map", "values": schema_of(data, names, depth - 1)}
    if kind == "union":
        return _union(data, names, depth - 1)
    if kind == "plain" or (kind == "named" and not names):
        return data.draw(st.sampled_from(PLAIN))
    if kind == "named":
        return data.draw(st.sampled_from(names))
    name = f"N{next(_NUMBERS)}"
    if kind == "fixed":
        names.append(name)
        return {"type": "fixed", "name": name, "size": data.draw(st.integers(0, 2))}
    if kind == "enum":
        names.append(name)
        return {
            "type": "enum",
            "name": name,
            "symbols": data.draw(st.sampled_from([["A"], ["A", "B"]])),
        }
    fields = [
        {"name": field, "type": schema_of(data, names, depth - 1)}
        for field in data.draw(st.sampled_from([["f"], ["f", "g"], ["g"], []]))
    ]
    names.append(name)
    return {"type": "record", "name": name, "fields": fields}


def _union(data: st.DataObject, names: list[str], depth: int) -> list[Any]:
    branches: list[Any] = []
    seen: set[str] = set()
    for _ in range(data.draw(st.integers(1, 4))):
        known = len(names)
        branch = schema_of(data, names, depth)
        label = str(branch)
        if isinstance(branch, dict):
            label = str(branch.get("name", branch["type"]))
        if isinstance(branch, list) or label in seen:
            del names[known:]  # what it defines is not there
        else:
            seen.add(label)
            branches.append(branch)
    return branches or ["null"]


def wire_of(data: st.DataObject, schema: Any, known: dict[str, Any]) -> bytes:  # noqa: ANN401, PLR0911 - JSON; one line per kind
    """Bytes of some value of ``schema``."""
    if isinstance(schema, list):
        place = data.draw(st.integers(0, len(schema) - 1), "branch")
        return _varint(place) + wire_of(data, schema[place], known)
    schema = known.get(schema, {"type": schema}) if isinstance(schema, str) else schema
    kind, logical = schema["type"], schema.get("logicalType")
    if kind == "record":
        return b"".join(wire_of(data, field["type"], known) for field in schema["fields"])
    if kind in {"array", "map"}:
        inner = schema["items"] if kind == "array" else schema["values"]
        count = data.draw(st.integers(0, 2), "count")
        keys = [_block(b"%d" % n) if kind == "map" else b"" for n in range(count)]
        elements = [key + wire_of(data, inner, known) for key in keys]
        return (_varint(count) + b"".join(elements) if count else b"") + b"\0"
    if kind == "enum":
        return _varint(data.draw(st.integers(0, len(schema["symbols"]) - 1)))
    if kind == "fixed":
        return data.draw(st.binary(min_size=schema["size"], max_size=schema["size"]))
    if logical == "decimal" and kind == "bytes":
        unscaled = data.draw(
            st.integers(-(10 ** schema["precision"]) + 1, 10 ** schema["precision"] - 1)
        )
        return _block(unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True))
    return _plain_wire(data, kind, logical)


def _plain_wire(data: st.DataObject, kind: str, logical: str | None) -> bytes:
    if logical == "timestamp-nanos" or logical is None:
        limits = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
    else:
        of_day = 86_400_000 if kind == "int" else 86_400_000_000
        limits = {"int": (0, of_day - 1), "long": (0, of_day - 1)}
        if logical == "date":
            limits["int"] = (-719_162, 2_932_896)
        elif "timestamp" in logical:
            scale = 1000 if "millis" in logical else 1_000_000
            limits["long"] = (-62_135_596_800 * scale, 253_402_300_800 * scale - 1)
    if kind in limits:
        return _varint(data.draw(st.integers(*limits[kind])))
    if kind == "float":
        return struct.pack("<f", data.draw(st.floats(width=32, allow_nan=False)))
    if kind == "double":
        return struct.pack("<d", data.draw(st.floats(allow_nan=False)))
    if kind == "boolean":
        return bytes([data.draw(st.booleans())])
    if kind == "null":
        return b""
    return _block(
        data.draw(TEXT).encode() if kind == "string" else data.draw(st.binary(max_size=3))
    )


def named_in(schema: Any, found: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return {name: schema} of all that ``schema`` defines."""
    if isinstance(schema, list):
        for branch in schema:
            named_in(branch, found)
    elif isinstance(schema, dict):
        if "name" in schema and "type" in schema:
            found.setdefault(schema["name"], schema)
        for part in ("items", "values"):
            named_in(schema.get(part), found)
        for field in schema.get("fields", ()):
            named_in(field["type"], found)
    return found
