"""Whether a job's serdes read what its stores hold: each kind of serde, keys, and the way back."""

from __future__ import annotations

import json
import sys
from dataclasses import field, make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from class_questions import code_of
from google.protobuf import descriptor_pb2

from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.container.serde.evolution.readable import (
    StoreSerdes,
    is_read_by_first,
    require_admitted,
    require_readable,
    writers_of,
)
from homeport.container.serde.forms import form_of, forms_of, shown
from homeport.job_coordinator.metadata.state_facts import StoreForms, StoreSchemas

INT = {"name": "bid", "type": "int"}
ASK = {"name": "ask", "type": "int"}
MID = {"name": "mid", "type": "int"}


def _avro(*fields: dict[str, Any], file: str = "") -> SchemaSerde:
    text = json.dumps({"type": "record", "name": "Quote", "fields": list(fields)})
    return SchemaSerde("avro", "rec", text, file)


def _ddl(schema: str) -> SchemaSerde:
    return SchemaSerde("json", "rec", schema)


def _store(value: ConfiguredSerde, key: ConfiguredSerde = "string", host: str = "") -> StoreSerdes:
    return StoreSerdes("quotes", key, value, host)


def _written(*values: ConfiguredSerde, key: ConfiguredSerde = "string") -> StoreSchemas:
    """The store after containers with these serdes, one after the other."""
    found: StoreSchemas | None = None
    for value in values:
        store = _store(value, key)
        reading = store.reading()
        if found is None:
            found = StoreSchemas(forms_of((key, value)))
        if shown(reading.msg) not in map(shown, writers_of(found)):
            found = found._replace(later=(*found.later, reading.msg))
        found = found._replace(reading=reading)
    assert found is not None
    return found


def _refused(value: ConfiguredSerde, by: StoreSchemas, **more: bool) -> str:
    with pytest.raises(ConfigError) as caught:
        require_readable(_store(value), by, **more)
    return str(caught.value)


BOTH = _avro(INT, ASK)


def test_the_line_names_store_schemas_field_rule_and_remedy() -> None:
    """Swapped fields are no change: a container reads by the schema that wrote."""
    wide = _avro(INT, ASK, MID)
    was, now = shown(form_of(BOTH)), shown(form_of(wide))
    assert _refused(wide, _written(BOTH)) == (
        f"serializers.registry.rec.schema = '{now}': the values of store 'quotes' were written by "
        f"{was}; field mid: it is missing in older values, and has no default; set the schema "
        "back, rewrite the values by homeport state convert, keep the new values in another store, "
        "or begin from nothing by run-job --reset-state"
    )
    for other in (_avro(ASK, INT), _avro(INT), _avro(INT, ASK, {**MID, "default": 0}), BOTH):
        require_readable(_store(other), _written(BOTH))
    require_readable(_store(wide), None)


def test_each_schema_that_wrote_values_counts() -> None:
    """A field that went, and comes back with another type, is still in old values."""
    text = {"name": "ask", "type": "string", "default": ""}
    require_readable(_store(_avro(INT, text)), _written(_avro(INT)))
    assert "field ask: int is no string" in _refused(_avro(INT, text), _written(BOTH, _avro(INT)))


def test_a_way_back_needs_that_the_code_that_runs_reads_the_new_values() -> None:
    """By its defaults, which its own record has: the record of the first container has none."""
    wide = _avro({**INT, "type": "long"}, ASK)
    require_readable(_store(wide), _written(BOTH))
    line = _refused(wide, _written(BOTH), has_way_back=True)
    assert "are read by avro" in line
    assert "which does not read it; field bid: long is no int; make a change that both" in line
    defaults = _avro(INT, {**ASK, "default": 7})
    require_readable(_store(_avro(INT)), _written(defaults), has_way_back=True)
    assert "field ask: it is missing" in _refused(_avro(INT), _written(BOTH), has_way_back=True)
    from_before = StoreSchemas(_written(defaults).forms)
    assert "field ask: it is missing" in _refused(_avro(INT), from_before, has_way_back=True)
    require_readable(_store(defaults), _written(defaults), has_way_back=True)


def test_a_file_that_changed_on_one_host_is_named_with_the_host() -> None:
    """Unless the other containers read its values too, or run-job has admitted them."""
    wide = _avro({**INT, "type": "long"}, ASK, file="quote.avsc")
    by = _written(BOTH)
    with pytest.raises(ConfigError) as caught:
        require_admitted(_store(wide, host="node-7"), by)
    assert "'avro " in str(caught.value)
    assert ": by quote.avsc of host node-7, the values of store 'quotes' are" in str(caught.value)
    assert "field bid: long is no int" in str(caught.value)
    form = shown(form_of(wide))
    assert shown(require_admitted(_store(wide), by._replace(announced=form)).msg) == form
    for admitted in (_avro(INT, ASK, {**MID, "default": 0}), BOTH):
        require_admitted(_store(admitted), by)
    both = _written(BOTH, wide)
    require_admitted(_store(wide), both._replace(reading=_written(BOTH).reading))
    assert "field bid: long is no int" in _refused(BOTH, both)
    require_admitted(_store(wide, host="node-7"), None)
    for store in (_store(wide), _store(_avro({**INT, "type": "long"}, ASK), host="node-7")):
        with pytest.raises(ConfigError, match=r"': the values of store 'quotes' are read by"):
            require_admitted(store, by)


def test_keys_keep_their_bytes() -> None:
    """A lookup by other bytes finds nothing, whatever resolves."""
    for was, now in (
        (BOTH, _avro(INT, ASK, {**MID, "default": 0})),
        (_ddl("a INT, b INT"), _ddl("a INT")),
        ("string", "bytes"),
    ):
        with pytest.raises(ConfigError, match="the keys of store 'quotes' were written by") as e:
            require_readable(_store("json", now), _written("json", key=was))
        line = "and keys keep their bytes; set the schema back, keep the new keys in another store"
        assert f"{line}, or begin" in str(e.value)
        require_readable(_store("json", was), _written("json", key=was))
    topic = StoreSerdes("t", "bytes", "json", repartition="task.repartition.r.key.serde")
    with pytest.raises(
        ConfigError, match=r"^task\.repartition\.r\.key\.serde = 'bytes': the "
    ) as e:
        require_readable(topic, _written("json"))
    assert "keys of repartition topic 't' were written by string, and keys" in str(e.value)
    assert "keep the new keys in another repartition and store, or begin" in str(e.value)


def test_objects_of_json_may_get_lose_and_widen_fields() -> None:
    """What is missing is null."""
    by = _written(_ddl("carrier STRING, delay INT"))
    wider = "carrier STRING, delay BIGINT, x DATE"
    for other in ("delay INT, carrier STRING", "carrier STRING", wider):
        require_readable(_store(_ddl(other)), by)
    assert "field delay: int32 is no string" in _refused(_ddl("delay STRING"), by)
    wrongly = "and would be read wrongly; set"
    assert f"were written by json, {wrongly}" in _refused(_ddl("a INT"), _written("json"))
    values: tuple[ConfiguredSerde, ...] = ("json", BOTH)
    for value in values:
        assert wrongly in _refused(value, _written(_ddl("a INT")))


def test_a_required_field_of_protobuf_is_compared_with_the_newest_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form, which a former version recorded, has it not."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def serde(label: int) -> SchemaSerde:
        file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="p", syntax="proto2")
        file.message_type.add(name="M").field.add(name="a", number=1, type=5, label=label)
        data = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
        (tmp_path / f"{label}.desc").write_bytes(data)
        return SchemaSerde("protobuf", "rec", "", f"{label}.desc", "p.M")

    optional, required = serde(1), serde(2)
    assert form_of(optional) == form_of(required)
    assert "field a: older values may lack it" in _refused(required, _written(optional))
    require_readable(_store(optional), _written(required))
    assert "in the code that runs" in _refused(optional, _written(required), has_way_back=True)
    require_readable(_store(required), _written(optional)._replace(reading=None))


def test_serdes_without_a_schema_stay() -> None:
    """The line names the store's key."""
    assert _refused("long", _written("double")).startswith("stores.quotes.msg.serde = 'long': ")
    require_readable(_store("long"), _written("long"))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the job's package."""
    made = ModuleType("of_this_job")
    monkeypatch.setitem(sys.modules, "of_this_job", made)
    return made


def test_fields_of_a_class_are_compared_from_when_they_are_recorded(module: ModuleType) -> None:
    """The name alone is the form of a job from before: any class may follow it."""
    name = "of_this_job:Quote"

    def of(*fields: Any) -> None:  # noqa: ANN401 - as of make_dataclass
        made = make_dataclass("Quote", fields)
        made.__module__ = "of_this_job"
        vars(module)["Quote"] = made

    of(("bid", int))
    first = _written(name)
    assert first.forms == ("string", name)
    assert [form.split(" ")[0] for form in first.later] == [name]
    of(("bid", int), ("ask", int, field(default=0)))
    require_readable(_store(name), first, has_way_back=True)
    assert is_read_by_first(first.forms, _store(name).reading())
    of(("bid", int), ("ask", int))
    line = _refused(name, first)
    assert line.startswith(f"stores.quotes.msg.serde = '{name} ")
    assert "field ask: it is missing in older values, and has no default" in line
    require_readable(_store(name), StoreSchemas(StoreForms("string", name)))
    keys = _written("json", key=name)
    require_readable(_store("json", name), keys)
    of(("bid", int))
    with pytest.raises(ConfigError, match="the keys of store 'quotes' were written by"):
        require_readable(_store("json", name), keys)
    bare = keys.reading and keys.reading._replace(key=name)
    for from_before in (None, bare):
        require_readable(_store("json", name), keys._replace(reading=from_before))
    with pytest.raises(
        ConfigError, match="the keys of store 'quotes' were written by of_this_job:O"
    ):
        require_readable(_store("json", name), StoreSchemas(StoreForms("of_this_job:Old", "json")))
    of(("bid", "Unknown"))
    with pytest.raises(ConfigError, match="JSON cannot become its fields: NameError"):
        _store(name).reading()


def test_a_schema_that_is_not_recorded_cannot_be_compared() -> None:
    """It is too long for a record, or another program has damaged it."""
    wide = _avro(*({"name": f"field{n:05}", "type": "int"} for n in range(2_000)))
    by = _written(wide)
    assert by.forms.msg == shown(by.forms.msg)
    assert "cannot be compared" in _refused(BOTH, by)
    assert "cannot be compared" in _refused(wide, _written(BOTH))
    require_readable(_store(wide), by)
    for odd in ("avro 0 {", "avro 0 []", 'avro 0 {"type":"record"}', "avro 0 5"):
        assert "cannot be" in _refused(BOTH, StoreSchemas(StoreForms("string", odd)))


def test_values_of_a_registry_name_their_schema_themselves() -> None:
    """Nothing of them is compared."""
    registry = {"url": "http://r:1"}
    one = SchemaSerde("avro", "rec", '"int"', registry=registry)
    other = SchemaSerde("avro", "rec", '"string"', registry=registry)
    require_readable(_store(other), _written(one), has_way_back=True)
    assert "would be read wrongly" in _refused(one, _written(BOTH))


def test_run_jobs_check_of_the_package_refuses_and_announces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It runs with the job's package, where a schema may be a file; the upgrade needs both ways."""

    def checked(value: SchemaSerde, recorded: StoreSchemas | None, **more: bool) -> int:
        forms = None if recorded is None else recorded.forms
        schemas = {} if recorded is None else {"quotes": recorded}
        stores = (("quotes", ("string", value), forms),)
        return code_of(stores=stores, schemas=schemas, **more)

    wide = _avro({**INT, "type": "long"}, ASK)
    assert checked(BOTH, None) == checked(BOTH, _written(BOTH)) == 0
    assert "new form" not in capsys.readouterr().out
    assert checked(wide, _written(BOTH)) == 0
    assert f"new form of values: quotes {shown(form_of(wide))}\n" in capsys.readouterr().out
    assert checked(wide, _written(BOTH), has_way_back=True) == 1
    assert "error: serializers.registry.rec.schema = 'avro " in capsys.readouterr().err
    assert checked(BOTH, _written(wide)) == 1
    assert "field bid: long is no int" in capsys.readouterr().err
    former = (("quotes", ("string", BOTH), _written(wide).forms),)
    assert code_of(stores=former) == 1  # asked by a version that knows the first form alone
