"""The form of a store's bytes: what changes how they are read, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from homeport.config.config import Config
from homeport.config.settings.serde_names import SCHEMA_KINDS, SchemaSerde, serde_name
from homeport.container.serde.forms import form_of, forms_of, shown
from homeport.container.serde.schema_serde import CODECS

QUOTE = {
    "type": "record",
    "name": "Quote",
    "fields": [{"name": "bid", "type": "int"}, {"name": "ask", "type": "int"}],
}


def _avro(schema: object) -> SchemaSerde:
    return SchemaSerde("avro", "rec", json.dumps(schema))


def _field(name: str, kind: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, **more}


def _record(*fields: dict[str, object], **more: object) -> dict[str, object]:
    return {**QUOTE, "fields": list(fields), **more}


BID, ASK = _field("bid", "int"), _field("ask", "int")


@pytest.mark.parametrize(
    "same",
    [
        _record(BID, ASK, doc="both prices"),
        _record(_field("bid", {"type": "int"}), _field("ask", "int", doc="d", default=0)),
        {**dict(reversed(QUOTE.items())), "aliases": ["Old"]},
        _record(_field("bid", "int", order="ignore"), ASK),
    ],
)
def test_another_way_to_write_an_avro_schema_is_no_change(same: dict[str, Any]) -> None:
    """Order of attributes, documentation, defaults: the bytes and what they mean are the same."""
    assert form_of(_avro(same)) == form_of(_avro(QUOTE))
    spaced = SchemaSerde("avro", "other", json.dumps(QUOTE, indent=4))
    assert form_of(spaced) == form_of(_avro(QUOTE))


def test_serdes_without_a_schema_are_their_names() -> None:
    """A class of the job's own too."""
    assert forms_of(("string", "my.code:Serde")) == ("string", "my.code:Serde")


def test_values_of_a_registry_say_themselves_what_they_are() -> None:
    """Their bytes name the schema; the wire format is another one. Keys must be equal bytes."""
    url = {"serializers.registry.rec.schema.registry.url": "http://r:1"}
    base = {"serializers.registry.rec.class": "avro", **url}
    free = serde_name(Config(base), "k", "rec")
    of = {
        n: serde_name(Config({**base, _SCHEMA: json.dumps(n)}), "k", "rec") for n in ("int", "long")
    }
    assert form_of(free) == form_of(of["int"]) == form_of(of["long"]) == "avro-of-a-registry"
    assert form_of(free, is_key=True) == "avro-of-a-registry"
    assert form_of(of["int"], is_key=True).startswith("avro-of-a-registry ")
    assert form_of(of["int"], is_key=True) != form_of(of["long"], is_key=True)
    assert form_of(_avro("int")) != form_of(of["int"])


_SCHEMA = "serializers.registry.rec.schema"


def _descriptors(*fields: tuple[str, int, int], note: str = "", enum: str = "ON") -> bytes:
    """A descriptor set with the message p.M, which holds itself, and the enum p.E."""
    file = descriptor_pb2.FileDescriptorProto(name=f"m{note}.proto", package="p", syntax="proto3")
    message = file.message_type.add(name="M")
    for name, number, kind in fields:
        message.field.add(name=name, number=number, type=kind, label=1)
    message.field.add(name="inner", number=90, type=11, label=3, type_name=".p.M")
    message.field.add(name="state", number=91, type=14, label=1, type_name=".p.E")
    kinds = file.enum_type.add(name="E")
    kinds.value.add(name="OFF", number=0)
    kinds.value.add(name=enum, number=1)
    if note:
        file.message_type.add(name=f"Other{note}")
    data: bytes = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return data


def test_a_protobuf_message_is_compared_by_what_its_bytes_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers, names, types; not the order of fields, nor messages that it does not hold."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = SchemaSerde("protobuf", "rec", file="m.desc", message="p.M")

    def form(data: bytes) -> str:
        (tmp_path / "m.desc").write_bytes(data)
        return form_of(name)

    string, number = 9, 5
    first = form(_descriptors(("a", 1, string), ("b", 2, number)))
    assert form(_descriptors(("b", 2, number), ("a", 1, string), note="x")) == first
    for other in (
        _descriptors(("a", 2, string), ("b", 1, number)),
        _descriptors(("a", 1, string), ("b", 2, string)),
        _descriptors(("a", 1, string)),
        _descriptors(("a", 1, string), ("c", 2, number)),
        _descriptors(("a", 1, string), ("b", 2, number), enum="BROKEN"),
    ):
        changed = form(other)
        assert shown(changed) != shown(first)


def test_each_kind_of_schema_has_its_code() -> None:
    """What the configuration takes, a container can read and write."""
    assert CODECS.keys() == SCHEMA_KINDS.keys()
