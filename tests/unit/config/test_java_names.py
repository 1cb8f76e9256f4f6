"""Samza's class names and ours."""

from __future__ import annotations

import pytest

from homeport.config import java_names
from homeport.config.java_names import Kind


@pytest.mark.parametrize("kind", list(Kind))
def test_names_go_both_ways(kind: Kind) -> None:
    """Every name of the table leads to its other form and back."""
    for short in java_names.known_names(kind):
        java = java_names.java_name(kind, short)
        assert java is not None
        assert java.startswith("org.apache.samza.")
        assert java_names.short_name(kind, java) == short
        assert java_names.java_name(kind, java) == java


def test_a_class_outside_the_table_has_no_short_name() -> None:
    """Neither an unknown Java class, nor a class of the user's own."""
    assert java_names.short_name(Kind.SERDE, "my.serdes:Avro") is None
    assert java_names.short_name(Kind.SERDE, "org.acme.AvroSerde") is None
    assert java_names.java_name(Kind.SERDE, "rocksdb") is None


def test_a_name_is_of_one_kind() -> None:
    """A store factory is no serde."""
    rocksdb = java_names.java_name(Kind.STORE, "rocksdb")
    assert rocksdb is not None
    assert java_names.short_name(Kind.SERDE, rocksdb) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m:C", True),
        ("a.b_c:D1", True),
        ("m", False),
        (":C", False),
        ("m:", False),
        ("a..b:C", False),
        ("m:C.d", False),
        ("m:C\n", False),
    ],
)
def test_the_form_of_a_user_class(name: str, *, expected: bool) -> None:
    """A dotted module, a colon, one name."""
    assert java_names.is_user_class(name) is expected
