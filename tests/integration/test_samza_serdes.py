"""The published serdes of Apache Samza 1.8.0 on our bytes, and ours on theirs."""

from __future__ import annotations

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
