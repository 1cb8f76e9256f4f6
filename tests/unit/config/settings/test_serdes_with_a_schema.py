"""Serdes with a schema: what their entries may say, and which one makes columns of the inputs."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.input_serdes import input_serdes, serde_of_columns
from homeport.config.settings.serde_names import SchemaSerde, serde_name
from homeport.config.settings.stores_section import StorageConfig

KEY = "systems.kafka.streams.in.samza.msg.serde"
OF = "serializers.registry.s."
URL = {"schema.registry.url": "http://registry:8081"}


def _entry(**values: str) -> SchemaSerde:
    """The entry ``s`` of a registry with these keys, dots written as double underscores."""
    keys = {OF + name.replace("__", "."): value for name, value in values.items()}
    found = serde_name(Config(keys), KEY, "s")
    assert isinstance(found, SchemaSerde)
    return found


def test_the_entry_has_what_is_written() -> None:
    """Of each kind."""
    json = _entry(**{"class": "json", "schema": "n LONG"})
    assert (json.kind, json.name, json.schema, json.schema_key) == (
        "json",
        "s",
        "n LONG",
        OF + "schema",
    )
    avro = _entry(**{"class": "avro", "schema__file": "a.avsc"})
    assert (avro.kind, avro.file, avro.schema_key) == ("avro", "a.avsc", OF + "schema.file")
    proto = _entry(**{"class": "protobuf", "schema__file": "p.desc", "message": "m.M"})
    assert (proto.kind, proto.file, proto.message) == ("protobuf", "p.desc", "m.M")
    registry = _entry(**{"class": "avro", "schema__registry__url": "https://r"})
    assert registry.registry == {"url": "https://r"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"class": "avro"}, r"serializers\.registry\.s\.schema.*is missing"),
        ({"class": "avro", "schema": "{"}, r"s\.schema = '{': it must be JSON"),
        ({"class": "json", "schema": "n LONG", "schema.file": "f"}, r"s\.schema is set too"),
        ({"class": "protobuf", "schema": "x"}, "is a descriptor set, which is a file"),
        ({"class": "protobuf"}, r"s\.schema\.file.*is missing"),
        ({"class": "protobuf", "schema.file": "f"}, r"s\.message.*is missing"),
        ({"class": "avro", "schema.registry.url": "r:1"}, "it must begin with http://"),
        ({"class": "avro", "schema.registry.user": "u"}, "properties of a registry are set"),
    ],
)
def test_what_contradicts_itself_is_refused(values: dict[str, str], said: str) -> None:
    """In one line that names the key."""
    config = Config({OF + name: value for name, value in values.items()})
    with pytest.raises(ConfigError, match=said):
        serde_name(config, KEY, "s")


def _inputs(serdes: dict[str, str], **entry: str) -> Config:
    """A job with these inputs, of which ``serdes`` has the serde's name, empty where none."""
    values = {OF + name.replace("__", "."): value for name, value in entry.items()}
    values |= {
        "job.name": "j",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "task.inputs": ",".join(f"kafka.{stream}" for stream in serdes),
    }
    of = "systems.kafka.streams.{}.samza.msg.serde"
    return Config(values | {of.format(stream): s for stream, s in serdes.items() if s})


def test_one_serde_makes_columns_of_all_inputs() -> None:
    """And none where none has a schema."""
    typed = _inputs({"a": "s", "b": "s"}, **{"class": "json", "schema": "n LONG"})
    found = serde_of_columns(input_serdes(typed))
    assert found is not None
    assert (found.stream, found.has_schema) == ("a", True)
    assert serde_of_columns(input_serdes(_inputs({"a": "json", "b": ""}))) is None


@pytest.mark.parametrize("other", ["string", ""])
def test_inputs_with_different_serdes_make_no_columns(other: str) -> None:
    """A batch has one column of values."""
    mixed = _inputs({"a": "s", "b": other}, **{"class": "json", "schema": "n LONG"})
    with pytest.raises(
        ConfigError, match=r"streams\.b\.samza\.msg\.serde.*of all inputs in one column"
    ):
        serde_of_columns(input_serdes(mixed))


def test_inputs_with_two_schemas_make_no_columns() -> None:
    """The other one is named."""
    two = _inputs({"a": "s", "b": "t"}, **{"class": "json", "schema": "n LONG"})
    more = {"serializers.registry.t.class": "json", "serializers.registry.t.schema": "m LONG"}
    with pytest.raises(ConfigError, match="= 't': a BatchTask gets"):
        serde_of_columns(input_serdes(Config({**two, **more})))


def test_the_registrys_latest_schema_is_of_one_stream() -> None:
    """Each has its own there; of one input it is what the columns are made by."""
    entry = {"class": "avro", "schema__registry__url": "http://r"}
    with pytest.raises(ConfigError, match="the values of a, b are one column"):
        serde_of_columns(input_serdes(_inputs({"a": "s", "b": "s"}, **entry)))
    assert serde_of_columns(input_serdes(_inputs({"a": "s"}, **entry))) is not None


def test_a_store_has_no_serde_of_a_registry() -> None:
    """Its values are no stream's."""
    values = {
        OF + "class": "avro",
        OF + "schema.registry.url": "http://r",
        "stores.c.factory": "rocksdb",
        "stores.c.key.serde": "string",
        "stores.c.msg.serde": "s",
    }
    with pytest.raises(ConfigError, match=r"stores\.c\.msg\.serde = 's': a serde of a Schema Reg"):
        StorageConfig.of(Config(values))
