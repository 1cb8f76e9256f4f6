"""The serde protobuf: dicts of all fields, columns, and what is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import sys

import pyarrow as pa
import pytest
from descriptor_sets import MESSAGE, flight_descriptors

from homeport.config.errors import ConfigError, WireError
from homeport.container.serde.protobuf_serde import message_class, protobuf_serde
from homeport.container.serde.serdes import Serde

KEY = "serializers.registry.flights.schema.file"
AT = dt.datetime(2013, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
VALUE = {
    "carrier": "UA",
    "delay": -3,
    "gate": 0,
    "plane": {"tail": "N1", "seats": 2**64 - 1},
    "colours": ["BLUE", "RED"],
    "at": AT,
    "stops": {"BOS": {"tail": "N2", "seats": 0}},
    "raw": b"r",
}
NOTHING = {
    "carrier": "",
    "delay": 0,
    "gate": None,
    "plane": None,
    "colours": [],
    "at": None,
    "stops": {},
    "raw": b"",
}


def _serde(message: str = MESSAGE) -> Serde:
    return protobuf_serde(message_class(KEY, "flight.desc", flight_descriptors(), message))


def test_every_field_is_in_the_dict_and_the_column() -> None:
    """One that is not set is null where Protobuf can say so, and else has its default."""
    serde = _serde()
    data = serde.to_bytes(VALUE)
    assert serde.from_bytes(data) == VALUE
    assert serde.from_bytes(b"") == NOTHING
    assert serde.from_bytes(serde.to_bytes(NOTHING)) == NOTHING
    assert serde.columns is not None
    found = serde.columns().decode(pa.array([data, None, b"\xff\xff", b""], pa.binary()))
    assert list(found.bad) == [2]
    with pytest.raises(WireError, match="not of the serde 'protobuf'"):
        serde.from_bytes(b"\xff\xff")
    rows = found.column.to_pylist(maps_as_pydicts="strict")
    large = {"tail": "N1", "seats": decimal.Decimal(2**64 - 1)}
    assert rows[0] == VALUE | {"plane": large}
    assert rows[1:] == [None, None, NOTHING]
    assert found.column.type.field("at").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("value", [5, {"carrier": 5}, {"other": 1}, {"delay": 2**31}])
def test_what_the_message_cannot_carry_is_refused(value: object) -> None:
    """At the send or put."""
    with pytest.raises(TypeError, match=r"Flight cannot carry it|carries a mapping"):
        _serde().to_bytes(value)


def test_a_message_that_holds_itself_is_no_column() -> None:
    """A StreamTask may have it."""
    serde = _serde("my.Tree")
    tree = {"left": {"left": {"left": None}}}
    assert serde.from_bytes(serde.to_bytes(tree)) == tree
    assert serde.columns is not None
    with pytest.raises(ValueError, match=r"the message my\.Tree holds itself"):
        serde.columns()


@pytest.mark.parametrize(
    ("data", "message"), [(b"no descriptors", MESSAGE), (flight_descriptors(), "my.Fligth")]
)
def test_no_such_message_is_one_line(data: bytes, message: str) -> None:
    """It says how to make the file."""
    with pytest.raises(ConfigError) as caught:
        message_class(KEY, "flight.desc", data, message)
    line = str(caught.value)
    assert line.startswith(f"{KEY} = 'flight.desc': it is no descriptor set with the message ")
    assert line.endswith("make it by protoc --include_imports --descriptor_set_out")


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(ConfigError, match=r"install homeport\[protobuf\]"):
        message_class(KEY, "flight.desc", b"", MESSAGE)
