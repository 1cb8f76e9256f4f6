"""The form of a store's bytes: what changes how they are read, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from class_questions import code_of
from google.protobuf import descriptor_pb2

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import SCHEMA_KINDS, SchemaSerde, serde_name
from homeport.container.serde.forms import form_of, forms_of, require_readable, shown
from homeport.container.serde.schema_serde import CODECS
from homeport.job_coordinator.metadata.state_facts import StoreForms

QUOTE = {
    "type": "record",
    "name": "Quote",
    "fields": [{"name": "bid", "type": "int"}, {"name": "ask", "type": "int"}],
}


def _avro(schema: object) -> SchemaSerde:
    return SchemaSerde("avro", "rec", json.dumps(schema))


def _ddl(schema: str) -> SchemaSerde:
    return SchemaSerde("json", "rec", schema)


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


@pytest.mark.parametrize(
    "other",
    [
        _record(ASK, BID),
        _record(BID, ASK, _field("mid", "int", default=0)),
        _record(BID),
        _record(_field("bid", "long"), ASK),
        _record(_field("bid", ["null", "int"]), ASK),
        _record(_field("bid", {"type": "int", "logicalType": "date"}), ASK),
        {"type": "array", "items": QUOTE},
        {"type": "map", "values": QUOTE},
    ],
)
def test_an_avro_schema_that_reads_otherwise_is_refused(other: object) -> None:
    """Swapped fields read swapped values, and a field more reads the end of the next value."""
    recorded = forms_of(("string", _avro(QUOTE)))
    with pytest.raises(ConfigError) as caught:
        require_readable("quotes", ("string", _avro(other)), recorded)
    was, now = shown(recorded.msg), shown(form_of(_avro(other)))
    assert was != now
    line = str(caught.value)
    assert line.startswith(f"serializers.registry.rec.schema = '{now}': the values of store ")
    assert f"'quotes' were written by {was}" in line
    assert "run-job --reset-state" in caught.value.remedy
    assert require_readable("quotes", ("string", _avro(QUOTE)), recorded) == recorded
    with pytest.raises(ConfigError, match="the keys of store 'quotes' were written by"):
        require_readable("quotes", (_avro(other), "json"), forms_of((_avro(QUOTE), "json")))


def test_the_fields_that_differ_are_named() -> None:
    """The first of them."""
    wide = _record(BID, ASK, *(_field(f"f{n}", "int") for n in range(7)))
    recorded = forms_of(("string", _avro(QUOTE)))
    with pytest.raises(ConfigError, match=r"\(different: f0, f1, f2, f3, f4, \.\.\.\)"):
        require_readable("quotes", ("string", _avro(wide)), recorded)
    with pytest.raises(ConfigError, match=r"\(different: bid\)"):
        require_readable("q", ("string", _avro(_record(_field("bid", "long"), ASK))), recorded)
    with pytest.raises(ConfigError, match=r"\(different: the order of the fields\)"):
        require_readable("quotes", ("string", _avro(_record(ASK, BID))), recorded)
    renamed = _record(BID, ASK, name="Price")
    with pytest.raises(ConfigError, match="would be read wrongly; set the schema back"):
        require_readable("quotes", ("string", _avro(renamed)), recorded)


def test_objects_of_json_may_have_more_fields() -> None:
    """They are null in older values; what is there keeps its type. Keys are compared as bytes."""
    recorded = forms_of(("string", _ddl("carrier STRING, delay INT")))
    for same in ("delay int,  carrier string", "`delay` INT, carrier STRING, more DOUBLE"):
        assert require_readable("s", ("string", _ddl(same)), recorded) == recorded
    for other in ("carrier STRING", "carrier STRING, delay BIGINT"):
        with pytest.raises(ConfigError, match=r"\(different: delay\)"):
            require_readable("s", ("string", _ddl(other)), recorded)
    keys = forms_of((_ddl("a INT"), "json"))
    with pytest.raises(ConfigError, match="the keys of store 's'"):
        require_readable("s", (_ddl("a INT, b INT"), "json"), keys)
    with pytest.raises(ConfigError, match="were written by json, and by another schema"):
        require_readable("s", ("string", _ddl("a INT")), StoreForms("string", "json"))


def test_serdes_without_a_schema_are_their_names() -> None:
    """A class of the job's own too; of a changed one the line names the store's key."""
    assert forms_of(("string", "my.code:Serde")) == ("string", "my.code:Serde")
    with pytest.raises(ConfigError, match=r"stores\.s\.msg\.serde = 'long'"):
        require_readable("s", ("string", "long"), StoreForms("string", "double"))


def test_a_long_schema_is_its_fingerprint() -> None:
    """A record of the coordinator stream stays small."""
    wide = _record(*(_field(f"field{n:05}", "int") for n in range(2_000)))
    form = form_of(_avro(wide))
    assert form == shown(form)
    with pytest.raises(ConfigError, match="would be read wrongly; set"):
        require_readable("s", ("string", _avro(QUOTE)), StoreForms("string", form))
    assert require_readable("s", ("string", _avro(wide)), StoreForms("string", form)).msg == form
    # A record that another program has damaged is no schema to compare.
    broken = StoreForms("string", "json 0 {")
    with pytest.raises(ConfigError):
        require_readable("s", ("string", _ddl("a INT")), broken)
    for odd in ("json 0 []", "json 0 {"):
        with pytest.raises(ConfigError):
            require_readable("s", ("string", "json"), StoreForms("string", odd))


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
        with pytest.raises(ConfigError, match=r"serializers\.registry\.rec\.schema\.file"):
            require_readable("s", ("string", name), StoreForms("string", first))


def test_run_jobs_check_of_the_package_refuses_a_changed_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It runs with the job's package, where a schema may be a file."""

    def checked(recorded: StoreForms | None) -> int:
        return code_of(stores=(("quotes", ("string", _avro(QUOTE)), recorded),))

    assert checked(None) == checked(forms_of(("string", _avro(QUOTE)))) == 0
    assert checked(forms_of(("string", _avro(_record(ASK, BID))))) == 1
    assert "error: serializers.registry.rec.schema = 'avro " in capsys.readouterr().err


def test_each_kind_of_schema_has_its_code() -> None:
    """What the configuration takes, a container can read and write."""
    assert CODECS.keys() == SCHEMA_KINDS.keys()
