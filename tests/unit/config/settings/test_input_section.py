"""How a stream is read, by its keys; which systems a job needs; serdes with a schema."""

from __future__ import annotations

import pytest
from small_jobs import store_keys

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.input_section import (
    InputPolicy,
    LostInput,
    OffsetDefault,
    batch_max_bytes,
    time_ms,
)
from homeport.config.settings.input_serdes import input_serdes, serde_of_columns
from homeport.config.settings.memory_rule import divide
from homeport.config.settings.serde_names import SchemaSerde, serde_name
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.used_systems import declared_outputs, used_systems
from homeport.config.system_stream import SystemStream

MIB = 1024 * 1024


def _policy(**keys: str) -> InputPolicy:
    given = {key.replace("_", "."): value for key, value in keys.items()}
    return InputPolicy.of(Config({f"systems.k.{key}": v for key, v in given.items()}), "k", "a.b")


def test_without_keys_reading_is_samzas() -> None:
    """Upcoming, all streams alike; and no record is lost unseen."""
    assert _policy() == InputPolicy(OffsetDefault.UPCOMING, LostInput.FAIL)


def test_the_streams_key_wins_over_the_systems() -> None:
    """Also where the topic's name has dots."""
    system = {"samza_offset_default": "oldest", "input_lost": "latest"}
    assert _policy(**system) == InputPolicy(OffsetDefault.OLDEST, LostInput.LATEST)
    stream = {
        "streams_a_b_samza_offset_default": "upcoming",
        "streams_a_b_input_lost": "earliest",
        "streams_a_b_samza_reset_offset": "true",
        "streams_a_b_samza_bootstrap": "true",
        "streams_a_b_samza_priority": "7",
        "streams_a_b_start_time": "5",
    }
    assert _policy(**system, **stream) == InputPolicy(
        OffsetDefault.UPCOMING, LostInput.EARLIEST, 5, is_reset=True, is_bootstrap=True, priority=7
    )


def test_minus_one_is_no_priority() -> None:
    """Samza: unset is -1, which is 0."""
    assert _policy(streams_a_b_samza_priority="-1").priority == 0


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("start_time", "yesterday", "it must be milliseconds since the epoch, or ISO 8601"),
        ("samza_reset_offset", "maybe", "true or false"),
        ("samza_bootstrap", "maybe", "true or false"),
        ("samza_priority", "-2", "-1"),
        ("input_lost", "skip", "it must be fail or earliest or latest"),
    ],
)
def test_a_wrong_value_is_one_line(key: str, value: str, rule: str) -> None:
    """Key, value, rule."""
    with pytest.raises(ConfigError, match=rule) as caught:
        _policy(**{f"streams_a_b_{key}": value})
    assert str(caught.value).startswith(f"systems.k.streams.a.b.{key.replace('_', '.')} = ")


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("0", 0),
        ("1372939200000", 1_372_939_200_000),
        ("2013-07-04T12:00:00+00:00", 1_372_939_200_000),
        ("2013-07-04T12:00:00Z", 1_372_939_200_000),
        ("2013-07-04T12:00:00", None),
        ("1969-12-31T23:59:59+00:00", None),
        ("9" * 30, None),
        ("253402300800000", None),
        ("", None),
    ],
)
def test_a_time_is_a_number_or_has_its_zone(text: str, at_ms: int | None) -> None:
    """From 1970 to the year 9999."""
    assert time_ms(text) == at_ms


@pytest.mark.parametrize(
    ("container_mb", "has_pipeline", "expected"),
    [(1024, True, 16 * MIB), (1024, False, 54 * MIB), (4096, True, 64 * MIB)],
)
def test_a_batch_is_a_share_of_the_memory(
    container_mb: int, expected: int, *, has_pipeline: bool
) -> None:
    """A sixteenth of Python's, within bounds; the key says another size."""
    memory = divide(container_mb, has_pipeline=has_pipeline)
    assert batch_max_bytes(Config({}), memory) == expected
    assert batch_max_bytes(Config({"task.batch.max.bytes": "5"}), memory) == 5


KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.coordinator.system": "coordination",
    "task.inputs": "first.in,second.in,first.more",
    "task.broadcast.inputs": "rules.all#0",
    **store_keys("s", "string", changelog="kafka.log"),
    **store_keys("scratch", "string"),
    "systems.unused.consumer.bootstrap.servers": "away:1",
}


def test_a_declared_system_that_nothing_names_is_none_of_them() -> None:
    """Coordinator stream, inputs, broadcast ones, changelogs and transactions; each once."""
    assert used_systems(Config(KEYS)) == ("coordination", "first", "second", "rules", "kafka")
    assert used_systems(Config({**KEYS, "task.checkpoint.factory": "none"}))[-1] == "kafka"


def test_dead_letters_are_an_output_that_is_known() -> None:
    """A record that cannot be read would wait for their brokers."""
    keys = {
        "task.dead.letter.stream": "letters.dead",
        "task.drop.deserialization.errors": "true",
        "task.exactly.once": "false",
    }
    assert used_systems(Config({**KEYS, **keys}))[-1] == "letters"


def test_outputs_of_the_task_are_known_and_have_a_system() -> None:
    """One without a system is refused in one line."""
    given = {**KEYS, "task.outputs": "results.totals, kafka.more"}
    assert used_systems(Config(given))[-1] == "results"
    assert declared_outputs(Config(given))[-1] == ("task.outputs", SystemStream("kafka", "more"))
    with pytest.raises(ConfigError, match=r"task\.outputs = 'totals': .* form system\.stream"):
        declared_outputs(Config({**KEYS, "task.outputs": "totals"}))


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
    ("values", "expected"),
    [
        ({"class": "avro"}, r"serializers\.registry\.s\.schema.*is missing"),
        ({"class": "avro", "schema": "{"}, r"s\.schema = '{': it must be JSON"),
        ({"class": "json", "schema": "n LONG", "schema.file": "f"}, r"s\.schema is set too"),
        ({"class": "protobuf", "schema": "x"}, "is a descriptor set, which is a file"),
        ({"class": "protobuf"}, r"s\.schema\.file.*is missing"),
        ({"class": "protobuf", "schema.file": "f"}, r"s\.message.*is missing"),
        ({"class": "avro", "schema.registry.url": "r:1"}, "it must begin with http://"),
        (
            {"class": "avro", "schema.registry.user": "u"},
            r"s\.schema\.registry\.url is missing: properties of a registry are set",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(values: dict[str, str], expected: str) -> None:
    """In one line that names the key."""
    config = Config({OF + name: value for name, value in values.items()})
    with pytest.raises(ConfigError, match=expected):
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
        **store_keys("c", "string", msg_serde="s"),
    }
    with pytest.raises(ConfigError, match=r"stores\.c\.msg\.serde = 's': a serde of a Schema Reg"):
        StorageConfig.of(Config(values))
