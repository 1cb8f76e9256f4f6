"""The serde avro: bytes of the specification's examples, and what it refuses."""

from __future__ import annotations

import sys

import pytest

from homeport.config.errors import ConfigError, WireError
from homeport.container.serde.avro_serde import avro_serde

KEY = "stores.s.msg.serde"
RECORD = """{"type": "record", "name": "test", "fields": [
    {"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}"""


def test_the_bytes_are_those_of_the_specification() -> None:
    """Avro 1.11, binary encoding of records: 27 and "foo" are 36 06 66 6f 6f."""
    serde = avro_serde(KEY, RECORD)
    value = {"a": 27, "b": "foo"}
    assert serde.to_bytes(value).hex() == "3606666f6f"
    assert serde.from_bytes(bytes.fromhex("3606666f6f")) == value
    assert avro_serde(KEY, '"long"').to_bytes(-64).hex() == "7f"


@pytest.mark.parametrize("value", [{"a": "27", "b": "foo"}, {"a": 27}, None, {"a": 2**63, "b": ""}])
def test_a_value_that_the_schema_cannot_carry_is_refused(value: object) -> None:
    """At the put."""
    with pytest.raises(TypeError, match="the schema of the serde 'avro' cannot carry it"):
        avro_serde(KEY, RECORD).to_bytes(value)


@pytest.mark.parametrize("data", ["", "36", "3606666f", "3606666f6f00", "3601"])
def test_bytes_of_another_schema_are_refused(data: str) -> None:
    """Too few, too many, or impossible ones."""
    with pytest.raises(WireError, match="not of the serde 'avro'"):
        avro_serde(KEY, RECORD).from_bytes(bytes.fromhex(data))


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: jobs without Avro go without."""
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigError) as caught:
        avro_serde(KEY, RECORD)
    assert str(caught.value) == (
        "stores.s.msg.serde = 'avro': fastavro is not installed; install homeport[avro] for the "
        "interpreter of the job's containers"
    )
