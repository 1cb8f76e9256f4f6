"""The published serdes of Apache Samza 1.8.0 on our bytes, and ours on theirs."""

from __future__ import annotations

import os
import random
import struct
import sys
from typing import Any

import pytest
from samza_peer import SamzaPeer

from homeport.config.java_names import Kind, java_name
from homeport.container.serde.serdes import serde

_ODD = 'größe-ß "日本" \\ 😀\t\x01\u2028'


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", _ODD),
        ("string", ""),
        ("integer", -(2**31)),
        ("integer", 258),
        ("long", -(2**63)),
        ("long", 2**40 + 1),
        ("double", -0.1),
        ("double", 1e300),
        ("json", {"flights": 17, "worst": 312.5, "airport": _ODD, "left": [None, True, {}]}),
        ("json", [2**40, -1]),
        ("json", "text"),
        ("bytes", b"\x00\xff"),
    ],
)
def test_the_bytes_are_those_of_samzas_serdes(samza: SamzaPeer, name: str, value: object) -> None:
    """Its serde of that name makes the same bytes, and reads the value from ours."""
    data = serde(name).to_bytes(value)
    given = value.hex() if isinstance(value, bytes) else value
    found = samza.ask("serde", [java_name(Kind.SERDE, name), given, data.hex()])
    assert found == {"bytes": data.hex(), "same": True}
    assert serde(name).from_bytes(bytes.fromhex(found["bytes"])) == value


GENERATED = 80


def test_generated_values_are_those_of_samzas_serdes(samza: SamzaPeer) -> None:
    """Numbers of each size, text of each plane, JSON of them; ``HOMEPORT_FUZZ_SEED`` repeats it."""
    number = int(os.environ.get("HOMEPORT_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
    sys.stdout.write(f"HOMEPORT_FUZZ_SEED={number}\n")
    source = random.Random(number)  # noqa: S311 - of a test
    for _ in range(GENERATED):
        name = source.choice(["string", "integer", "long", "double", "bytes", "json"])
        value = _generated(source, name, 2)
        data = serde(name).to_bytes(value)
        given = value.hex() if isinstance(value, bytes) else value
        found = samza.ask("serde", [java_name(Kind.SERDE, name), given, data.hex()])
        assert found["same"], (name, value)
        if name != "json":  # whose spaces and forms of numbers are free
            assert found["bytes"] == data.hex(), (name, value)
        assert serde(name).from_bytes(bytes.fromhex(found["bytes"])) == value


def _generated(source: random.Random, name: str, depth: int) -> Any:  # noqa: ANN401 - of any type
    if name == "integer":
        return source.choice([0, -1, source.randrange(-(2**31), 2**31)])
    if name == "long":
        return source.choice([2**53 + 1, source.randrange(-(2**63), 2**63)])
    if name == "double":
        (found,) = struct.unpack(">d", source.randbytes(8))
        return found if abs(found) < float("inf") else -0.5
    if name == "bytes":
        return source.randbytes(source.randrange(4))
    if name == "string" or depth == 0:
        planes = [(1, 0x7F), (0x80, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF)]
        return "".join(chr(source.randint(*source.choice(planes))) for _ in range(3))
    parts = [
        _generated(source, source.choice(["integer", "long", "string", "json"]), depth - 1)
        for _ in range(source.randrange(3))
    ]
    return source.choice([parts, {f"k{n}": part for n, part in enumerate(parts)}, None, True])
