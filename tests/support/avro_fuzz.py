"""Compares the native reader of Avro with the serde in Python, on values of any form.

``python avro_fuzz.py LIBRARY SEEDS``: the same with another build of the library.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import json
import random
import sys
from typing import Any

import pyarrow as pa
from json_fuzz import compare_columns

from homeport.container.native import library
from homeport.container.serde.avro_serde import avro_serde

_PLAIN = ("boolean", "int", "long", "float", "double", "bytes", "string")
_TIMES = (("int", "date"), ("long", "timestamp-millis"), ("long", "timestamp-micros"))
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def any_schema(random_: random.Random, depth: int = 2, name: str = "R") -> dict[str, Any]:
    """Return a record whose fields are of each type that the library has."""

    def kind(place: int) -> Any:  # noqa: ANN401 - JSON
        drawn = random_.random()
        if depth and drawn < 0.2:
            found: Any = any_schema(random_, depth - 1, f"{name}{place}")
        elif drawn < 0.4:
            carrier, logical = random_.choice(_TIMES)
            found = {"type": carrier, "logicalType": logical}
        else:
            found = random_.choice(_PLAIN)
        return random_.choice((found, ["null", found], [found, "null"]))

    fields = [{"name": f"f{n}", "type": kind(n)} for n in range(random_.randint(1, 5))]
    return {"type": "record", "name": name, "fields": fields}


def any_object(random_: random.Random, kind: Any) -> Any:  # noqa: ANN401 - JSON and its values
    """Return a value of ``kind``."""
    if isinstance(kind, list):
        kind = random_.choice(kind)
    if isinstance(kind, str):
        return _plain(random_, kind)
    if kind["type"] == "record":
        return {own["name"]: any_object(random_, own["type"]) for own in kind["fields"]}
    micros = random_.randrange(-(10**16), 10**16)
    found = _EPOCH + dt.timedelta(microseconds=micros)
    if kind["logicalType"] == "date":
        return found.date()
    is_millis = kind["logicalType"].endswith("millis")
    return found.replace(microsecond=found.microsecond // 1000 * 1000) if is_millis else found


def _plain(random_: random.Random, kind: str) -> Any:  # noqa: ANN401 - a value
    bits = random_.randrange(1, 32 if kind == "int" else 64)
    values: dict[str, Any] = {
        "null": None,
        "boolean": random_.random() < 0.5,
        "int": random_.getrandbits(bits) - (1 << (bits - 1)),
        "long": random_.getrandbits(bits) - (1 << (bits - 1)),
        "float": random_.choice((0.0, -1.5, float("inf"), 3.0e38)),
        "double": random_.choice((random_.random(), -0.0, float("nan"), 5e-324)),
        "bytes": random_.randbytes(random_.randrange(9)),
        "string": "".join(random_.choices('ab"\u00e9\u20ac😀\0', k=random_.randrange(9))),
    }
    return values[kind]


def any_value(random_: random.Random, data: bytes) -> bytes | None:
    """Return ``data``, or null, or what damage makes of it."""
    drawn = random_.random()
    if drawn < 0.03:
        return None
    if drawn < 0.3:
        place = random_.randrange(len(data) + 1)
        added = random_.choice((b"", b"\x00", b"\x01", b"\x02", b"\x80", b"\xff", b"\xff" * 10))
        return data[:place] + added + data[place + random_.randint(0, 2) :]
    return data


def compare(seed: int, rows: int = 50) -> tuple[int, int]:
    """Assert that both decode the same; return how many values Python decoded, of how many."""
    random_ = random.Random(seed)  # noqa: S311 - of a test
    schema = any_schema(random_)
    serde = avro_serde("key", json.dumps(schema))
    assert serde.columns is not None
    written = (serde.to_bytes(any_object(random_, schema)) for _ in range(rows))
    values = pa.array([any_value(random_, data) for data in written], pa.binary())
    return compare_columns(random_, serde.columns(), values, has_nan=True)


def main() -> None:
    """Compare with the library of the first argument, by as many seeds as the second."""
    library.load = lambda: ctypes.CDLL(sys.argv[1])  # type: ignore[assignment] # its own build
    for seed in range(int(sys.argv[2])):
        compare(seed)


if __name__ == "__main__":
    main()
