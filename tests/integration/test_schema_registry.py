"""Serdes of a Schema Registry: confluent-kafka's real client against a small registry of our own.

No Schema Registry can be installed for tests, so that the server is ``support/schema_registry.py``,
a real one over HTTP in this process with a part of the API. Whether Confluent's own server takes
what is written here, these tests do not show; its wire format is checked byte by byte.
"""

from __future__ import annotations

import io
import json
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from descriptor_sets import MESSAGE, flight_descriptors
from schema_registry import SchemaRegistry

from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.serde_names import AVRO, SchemaSerde
from homeport.container.api import (
    BatchTask,
    IncomingMessage,
    MessageCollector,
    StreamTask,
    TaskCoordinator,
)
from homeport.container.native.column_reader import natively
from homeport.container.processing.records import UndecodableError
from homeport.container.processing.task_factory import RowSender
from homeport.container.processing.task_instance import Context, Outputs
from homeport.container.serde.registry_serde import Subject
from homeport.container.serde.schema_serde import schema_serde
from homeport.container.serde.serdes import SerdeFailedError
from homeport.job_coordinator.model.ids import TaskName
from homeport.testing import Record, TestRunner

ENTRY = "serializers.registry.flights"
OLD = json.dumps(
    {
        "type": "record",
        "name": "Flight",
        "fields": [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "int"}],
    }
)
NEW = json.dumps(
    {
        "type": "record",
        "name": "Flight",
        "fields": [
            {"name": "delay", "type": "long"},
            {"name": "gate", "type": ["null", "string"], "default": None},
        ],
    }
)
DROP = {"task.drop.deserialization.errors": "true", "task.dead.letter.stream": "kafka.bad"}
SEEN: list[pa.Table] = []


class Delays(BatchTask):
    """Keeps what it gets."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Sends how many there were."""
        SEEN.append(table)
        collector.send("counts", str(table.num_rows).encode())


class Copy(StreamTask):
    """Sends each value on, as an object."""

    def process(
        self, message: IncomingMessage, collector: MessageCollector, _: TaskCoordinator
    ) -> None:
        """The serde of the output encodes it."""
        collector.send("out", message.value, message.key)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """One of this test."""
    SEEN.clear()
    made = SchemaRegistry()
    yield made
    made.close()


def _config(registry: SchemaRegistry, kind: str, **entry: str) -> dict[str, str]:
    return {
        "task.inputs": "kafka.in",
        "systems.kafka.streams.in.samza.msg.serde": "flights",
        "systems.kafka.streams.out.samza.msg.serde": "flights",
        f"{ENTRY}.class": kind,
        f"{ENTRY}.schema.registry.url": registry.url,
        f"{ENTRY}.schema.registry.max.retries": "0",
        **{f"{ENTRY}.{part.replace('_', '.')}": text for part, text in entry.items()},
    }


def _avro(number: int, schema: str, value: dict[str, object]) -> bytes:
    """The wire format: a zero byte, the id in four bytes, Avro's binary form."""
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(json.loads(schema)), value)
    return b"\0" + struct.pack(">I", number) + data.getvalue()


def test_avro_of_two_versions_is_read_as_the_latest(registry: SchemaRegistry) -> None:
    """By the writer's schema of each record; the columns are those of the subject's latest."""
    old = registry.register("in-value", OLD)
    new = registry.register("in-value", NEW)
    with TestRunner(_config(registry, "avro"), task=Delays) as runner:
        runner.send_bytes("kafka.in", value=_avro(old, OLD, {"carrier": "UA", "delay": 1}))
        runner.send_bytes("kafka.in", value=_avro(new, NEW, {"delay": 2, "gate": "A"}))
        runner.send_bytes("kafka.in", value=None)
        assert runner.run() == 3
    (table,) = SEEN
    rows = [{"delay": 1, "gate": None}, {"delay": 2, "gate": "A"}, None]
    assert table.column("value").to_pylist() == rows
    assert table.column("value").type.field("delay").type == pa.int64()
    asked = registry.requests.count(("GET", f"/schemas/ids/{old}"))
    assert asked == 1, "the client fetches a schema once, not per record"


@pytest.mark.parametrize("is_new_first", [True, False])
def test_values_of_other_schemas_stand_beside_those_that_are_read_natively(
    registry: SchemaRegistry, *, is_new_first: bool
) -> None:
    """Behind the header of the first value of a batch, where the columns are of its schema."""
    old, new = registry.register("in-value", OLD), registry.register("in-value", NEW)
    noted = NEW.replace('"name": "Flight"', '"name": "Flight", "doc": "the same"')
    again = registry.register("in-value", noted)
    values = [
        _avro(again, noted, {"delay": 1, "gate": None}),
        _avro(old, OLD, {"carrier": "UA", "delay": 2}),
        _avro(new, NEW, {"delay": 3, "gate": "A"}),
        b"\0\0\0\xff\xff",
        b"",
    ]
    values = values if is_new_first else [values[1], values[0], *values[2:]]
    entry = SchemaSerde(AVRO, "flights", registry={"url": registry.url})
    serde = schema_serde(entry, Subject("in", is_key=False))
    assert serde.columns is not None
    python = serde.columns()
    native = natively(python)
    assert native.read is not None
    array = pa.array(values, pa.binary())
    assert list(native.read(array, native.type)[1]) == (
        [1, 2, 3, 4] if is_new_first else [*range(5)]
    )
    found, expected = native.decode(array), python.decode(array)
    assert found.column.to_pylist() == expected.column.to_pylist()
    assert found.bad == expected.bad
    assert sorted(found.bad) == [3, 4]


def test_avro_is_read_by_the_schema_that_is_given(registry: SchemaRegistry) -> None:
    """Whatever the registry's latest one is."""
    new = registry.register("in-value", NEW)
    schema = NEW.replace("long", "double")
    with TestRunner(_config(registry, "avro", schema=schema), task=Delays) as runner:
        runner.send_bytes("kafka.in", value=_avro(new, NEW, {"delay": 2, "gate": None}))
        runner.run()
    assert SEEN[0].column("value").to_pylist() == [{"delay": 2.0, "gate": None}]


def test_a_stream_task_reads_and_writes_avro(registry: SchemaRegistry) -> None:
    """The output's schema is registered under its topic, and its id leads each value."""
    number = registry.register("in-value", OLD)
    with TestRunner(_config(registry, "avro", schema=OLD), task=Copy) as runner:
        data = _avro(number, OLD, {"carrier": "UA", "delay": 1})
        runner.send_bytes("kafka.in", value=data)
        runner.run()
        assert runner.output("kafka.out") == [Record(None, {"carrier": "UA", "delay": 1})]
        assert ("POST", "/subjects/out-value/versions") in registry.requests
        registry.register("other", "{}")
        runner.send("kafka.in", value={"carrier": "AA", "delay": 2})
        runner.run()
        assert runner.output("kafka.out")[1].value == {"carrier": "AA", "delay": 2}


def test_without_a_schema_an_output_has_the_latest_of_its_subject(registry: SchemaRegistry) -> None:
    """And nothing is registered."""
    number = registry.register("in-value", OLD)
    registry.register("out-value", NEW)
    with TestRunner(_config(registry, "avro"), task=Copy) as runner:
        runner.send_bytes("kafka.in", value=_avro(number, OLD, {"carrier": "UA", "delay": 1}))
        runner.run()
        assert runner.output("kafka.out") == [Record(None, {"delay": 1, "gate": None})]
        assert ("POST", "/subjects/out-value/versions") not in registry.requests


@pytest.mark.parametrize("task", [Delays, Copy])
def test_a_record_of_no_known_schema_is_a_bad_record(
    registry: SchemaRegistry, task: type[BatchTask | StreamTask]
) -> None:
    """Not of the wire format, of an id that is not there, or cut off: to the dead letters."""
    number = registry.register("in-value", OLD)
    good = _avro(number, OLD, {"carrier": "UA", "delay": 1})
    bad = [b"plain", b"", b"\1" + good[1:], b"\0\0\0\0\x63" + good[5:], good[:-1]]
    with TestRunner(_config(registry, "avro", schema=OLD) | DROP, task=task) as runner:
        for value in (bad[0], good, *bad[1:]):
            runner.send_bytes("kafka.in", value=value)
        assert runner.run() == 6
        assert [r.value for r in runner.output("kafka.bad")] == bad
        assert runner.checkpoint() == {"kafka.in.0": 5}
        reasons = [
            (r.headers["homeport.reason"] or b"").decode() for r in runner.output("kafka.bad")
        ]
        assert "Schema not found" in reasons[3]
    with TestRunner(_config(registry, "avro", schema=OLD), task=task) as runner:
        runner.send_bytes("kafka.in", value=b"plain")
        with pytest.raises(UndecodableError, match=r"input kafka\.in partition 0 offset 0"):
            runner.run()


@pytest.mark.parametrize("task", [Delays, Copy])
@pytest.mark.parametrize("status", [500, 401, None])
def test_a_registry_that_fails_drops_no_record(
    registry: SchemaRegistry, task: type[BatchTask | StreamTask], status: int | None
) -> None:
    """It says nothing of the record: the container fails, and reads it again."""
    number = registry.register("in-value", OLD)
    with TestRunner(_config(registry, "avro", schema=OLD) | DROP, task=task) as runner:
        runner.send_bytes("kafka.in", value=_avro(number, OLD, {"carrier": "UA", "delay": 1}))
        if status is None:
            registry.close()
        registry.fails = status
        with pytest.raises(SerdeFailedError, match=f"the Schema Registry of {ENTRY}") as caught:
            runner.run()
        assert "\n" not in str(caught.value)
        assert runner.output("kafka.bad") == []
        assert runner.checkpoint() == {"kafka.in.0": -1}
        if status is not None:
            registry.fails = None
            runner.restart()
            assert runner.run() == 1


@pytest.mark.parametrize("status", [500, None])
def test_a_registry_that_fails_at_the_start_is_named(
    registry: SchemaRegistry, status: int | None
) -> None:
    """It may have the schema of the columns; a subject that it does not know is another fault."""
    with pytest.raises(ConfigError, match="the registry says no latest schema of in-value"):
        TestRunner(_config(registry, "avro"), task=Delays).__enter__()
    if status is None:
        registry.close()
    registry.fails = status
    with pytest.raises(SerdeFailedError, match=f"the Schema Registry of {ENTRY}") as caught:
        TestRunner(_config(registry, "avro"), task=Delays).__enter__()
    assert "\n" not in str(caught.value)


def test_rows_of_a_pipeline_leave_under_the_subjects_of_their_stream(
    registry: SchemaRegistry,
) -> None:
    """Keys and values, as with what a task sends."""
    config = _config(registry, "avro", schema=OLD) | {
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "nowhere:1",
        "systems.kafka.streams.out.samza.key.serde": "flights",
        "task.pipeline.sql": "SELECT key FROM input",
        "task.pipeline.output": "kafka.out",
    }
    sender, outputs = RowSender(), Outputs({"kafka"}, {"kafka"}, None)
    sender.init(Context(TaskName("Partition 0"), config, {}))
    rows = pa.array([{"carrier": "UA", "delay": 1}])
    sender.process_batch(pa.table({"key": rows, "value": rows}), outputs)
    assert next(iter(outputs.take())).value == _avro(1, OLD, {"carrier": "UA", "delay": 1})
    posted = {path for method, path in registry.requests if method == "POST"}
    assert posted == {"/subjects/out-key/versions", "/subjects/out-value/versions"}


def test_json_is_validated_and_becomes_columns(registry: SchemaRegistry) -> None:
    """By the registry's JSON Schema, then by the DDL of the columns."""
    schema = {"type": "object", "properties": {"delay": {"type": "integer", "maximum": 9}}}
    number = registry.register("in-value", json.dumps(schema), "JSON")
    head = b"\0" + struct.pack(">I", number)
    config = _config(registry, "json", schema="delay INT, carrier STRING") | DROP
    with TestRunner(config, task=Delays) as runner:
        for value in (b'{"delay": 5, "more": 1}', b'{"delay": 10}', b'{"carrier": 1}', b"{"):
            runner.send_bytes("kafka.in", value=head + value)
        runner.run()
        assert [r.value[5:] for r in runner.output("kafka.bad")] == [
            b'{"delay": 10}',
            b'{"carrier": 1}',
            b"{",
        ]
    assert SEEN[0].column("value").to_pylist() == [{"delay": 5, "carrier": None}]
    with TestRunner(config, task=Copy) as runner:
        runner.send("kafka.in", value={"delay": 5, "carrier": "UA"})
        runner.run()
        assert runner.output("kafka.out") == [Record(None, {"delay": 5, "carrier": "UA"})]


class Rows(BatchTask):
    """Sends the rows of its table on."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Maps are lists of pairs there."""
        for row in table.column("value").to_pylist():
            collector.send("out", row)


@pytest.mark.parametrize("task", [Copy, Rows])
def test_what_is_read_can_be_sent_on(registry: SchemaRegistry, task: type[BatchTask]) -> None:
    """Times, bytes, decimals and maps too, from a message and from a column."""
    number = registry.register("in-value", '{"type": "object"}', "JSON")
    text = b'{"at":"2013-01-02T03:04:05Z","raw":"aGk=","price":"1.50","tags":{"a":1}}'
    ddl = "at TIMESTAMP, raw BINARY, price DECIMAL(5,2), tags MAP<STRING,INT>"
    with TestRunner(_config(registry, "json", schema=ddl), task=task) as runner:
        runner.send_bytes("kafka.in", value=b"\0" + struct.pack(">I", number) + text)
        runner.run()
        (sent,) = runner.output("kafka.out")
        assert sent.value["tags"] == {"a": 1}
        assert (sent.value["raw"], str(sent.value["price"])) == (b"hi", "1.50")
    schema = json.dumps(
        {
            "type": "record",
            "name": "Tags",
            "fields": [{"name": "tags", "type": {"type": "map", "values": "int"}}],
        }
    )
    number = registry.register("in-value", schema)
    with TestRunner(_config(registry, "avro", schema=schema), task=task) as runner:
        runner.send_bytes("kafka.in", value=_avro(number, schema, {"tags": {"a": 1}}))
        runner.run()
        assert [record.value for record in runner.output("kafka.out")] == [{"tags": {"a": 1}}]


def _twins(*, is_newer: bool = False) -> str:
    """Records with the same fields, an enum beside text, a fixed beside bytes, in unions."""
    record = {"type": "record", "fields": [{"name": "n", "type": "int"}]}
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    fixed = {"type": "fixed", "name": "F", "size": 1}
    unions = {
        "one": [{**record, "name": "Created"}, {**record, "name": "Deleted"}],
        "text": ["string", enum],
        "raw": ["bytes", fixed],
    }
    fields = [{"name": name, "type": kind} for name, kind in unions.items()]
    more = [{"name": "more", "type": "int", "default": 5}] if is_newer else []
    return json.dumps({"type": "record", "name": "Twins", "fields": [*fields, *more]})


@pytest.mark.parametrize("given", ["", _twins(), _twins(is_newer=True)])
def test_branches_of_a_union_that_look_alike_are_sent_on_as_they_came(
    registry: SchemaRegistry, given: str
) -> None:
    """With and without a schema of the job's own."""
    number = registry.register("in-value", _twins())
    registry.register("out-value", _twins())
    value: dict[str, object] = {
        "one": ("Deleted", {"n": 7}),
        "text": ("E", "B"),
        "raw": ("F", b"x"),
    }
    wire = _avro(number, _twins(), value)
    job = _config(registry, "avro", **({"schema": given} if given else {}))
    with TestRunner(job, task=Copy) as runner:
        runner.send_bytes("kafka.in", value=wire)
        runner.run()
        (sent,) = runner.output("kafka.out")
    more = {"more": 5} if "more" in given else {}
    assert sent.value == value | more


def test_a_record_of_a_union_is_the_one_whose_fields_it_has(registry: SchemaRegistry) -> None:
    """Not the first one, which has fewer."""
    fields = [{"name": name, "type": "int"} for name in "nm"]
    short = {"type": "record", "name": "Short", "fields": fields[:1]}
    long = {"type": "record", "name": "Long", "fields": fields}
    schema = json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": "f", "type": [short, long]}]}
    )
    registry.register("in-value", schema)
    with TestRunner(_config(registry, "avro", schema=schema), task=Copy) as runner:
        for value in ({"n": 1}, {"n": 1, "m": 2}):
            runner.send("kafka.in", value={"f": value})
        runner.run()
        found = [record.value["f"] for record in runner.output("kafka.out")]
    assert found == [{"n": 1}, {"n": 1, "m": 2}]


def test_what_is_written_by_the_id_of_a_schema_is_never_cast(registry: SchemaRegistry) -> None:
    """As by its text."""
    schema = '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'
    number = registry.register("in-value", schema)
    more = {"schema.registry.use.schema.id": str(number)}
    more["schema.registry.auto.register.schemas"] = "false"
    with TestRunner(_config(registry, "avro", schema=schema, **more), task=Copy) as runner:
        with pytest.raises(TypeError, match="cannot carry it"):
            runner.send("kafka.in", value={"n": 1.5})
        runner.send("kafka.in", value={"n": 1})


def test_a_number_beyond_a_day_is_a_bad_record(registry: SchemaRegistry) -> None:
    """The library makes another time of it; so it does of bytes behind the value."""
    kind = {"type": "int", "logicalType": "time-millis"}
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "at", "type": kind}]})
    plain = schema.replace('"logicalType"', '"was"')
    number = registry.register("in-value", schema)
    registry.register("out-value", schema)
    job = _config(registry, "avro", schema=schema) | DROP
    with TestRunner(job, task=Copy) as runner:
        for ms in (-1, 86_400_000, 5):
            runner.send_bytes("kafka.in", value=_avro(number, plain, {"at": ms}))
        runner.send_bytes("kafka.in", value=_avro(number, plain, {"at": 6}) + b"\0")
        runner.run()
        assert len(runner.output("kafka.bad")) == 3
        (sent,) = runner.output("kafka.out")
        assert sent.value["at"].microsecond == 5000
    with TestRunner(job, task=Delays) as runner:
        runner.send_bytes("kafka.in", value=_avro(number, plain, {"at": 5}))
        runner.run()
    assert SEEN[0].column("value").to_pylist() == [{"at": 5}]


@pytest.mark.parametrize(
    ("kind", "schema", "value"),
    [
        ("json", "delay DOUBLE", {"delay": float("nan")}),
        ("json", "", {1: 2}),
        ("avro", '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}', {"n": 1.5}),
    ],
)
def test_what_would_leave_as_something_else_is_refused(
    registry: SchemaRegistry, kind: str, schema: str, value: object
) -> None:
    """As without a registry."""
    registry.register("in-value", '{"type": "object"}', "JSON")
    given = {"schema": schema} if schema else {}
    with (
        TestRunner(_config(registry, kind, **given), task=Copy) as runner,
        pytest.raises(TypeError, match="cannot carry it"),
    ):
        runner.send("kafka.in", value=value)


def test_json_without_ddl_is_read_one_by_one_only(registry: SchemaRegistry) -> None:
    """A JSON Schema says no types of columns."""
    number = registry.register("in-value", '{"type": "object"}', "JSON")
    registry.register("out-value", '{"type": "object"}', "JSON")
    head = b"\0" + struct.pack(">I", number)
    with TestRunner(_config(registry, "json"), task=Copy) as runner:
        runner.send_bytes("kafka.in", value=head + b'{"any": [1]}')
        runner.run()
        assert runner.output("kafka.out") == [Record(None, {"any": [1]})]
    with pytest.raises(ConfigError, match=r"needs columns: the registry's JSON Schema"):
        TestRunner(_config(registry, "json"), task=Delays).__enter__()


def test_protobuf_is_read_and_written(
    registry: SchemaRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its message indexes; the columns are those of the descriptor set."""
    (tmp_path / "flight.desc").write_bytes(flight_descriptors())
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    config = _config(registry, "protobuf", schema_file="flight.desc", message=MESSAGE) | DROP
    value = {"carrier": "UA", "delay": -3, "plane": {"tail": "N1", "seats": 9}}
    with TestRunner(config, task=Copy) as runner:
        runner.send("kafka.in", value=value)
        runner.run()
        (sent,) = runner.output("kafka.out")
        assert {name: sent.value[name] for name in value} == value
    with TestRunner(config, task=Delays) as runner:
        runner.send("kafka.in", value=value)
        runner.send_bytes("kafka.in", value=b"\0\0\0\0\1\xff")
        runner.run()
        assert len(runner.output("kafka.bad")) == 1
    (row,) = SEEN[0].column("value").to_pylist()
    assert (row["carrier"], row["delay"], int(row["plane"]["seats"])) == ("UA", -3, 9)


def test_a_registry_with_a_password_is_asked_with_it() -> None:
    """And no error shows it."""
    registry = SchemaRegistry(user="me:planted-secret")
    SEEN.clear()
    try:
        number = registry.register("in-value", OLD)
        config = _config(registry, "avro")
        user = {f"{ENTRY}.schema.registry.basic.auth.user.info": "me:planted-secret"}
        with TestRunner(config | user, task=Delays) as runner:
            runner.send_bytes("kafka.in", value=_avro(number, OLD, {"carrier": "", "delay": 1}))
            runner.run()
        assert SEEN[0].num_rows == 1
        wrong = {f"{ENTRY}.schema.registry.basic.auth.user.info": "me:planted-other"}
        with pytest.raises(SerdeFailedError, match="Unauthorized") as caught:
            TestRunner(config | wrong, task=Delays).__enter__()
        assert "planted" not in str(caught.value)
    finally:
        registry.close()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            {"schema.registry.timout": "5"},
            "does not take its properties (Unrecognized properties: timout",
        ),
        ({"schema.registry.timeout": "x"}, "timeout = 'x': it must be a number; write a number"),
        ({"schema.registry.auto.register.schemas": "maybe"}, "it must be true or false"),
    ],
)
def test_a_wrong_property_is_refused_in_one_line(
    registry: SchemaRegistry, entry: dict[str, str], expected: str
) -> None:
    """Before any request."""
    more = {f"{ENTRY}.{name}": text for name, text in entry.items()}
    with pytest.raises(HomeportError, match=re.escape(expected)) as caught:
        TestRunner(_config(registry, "avro", schema=OLD) | more, task=Delays).__enter__()
    assert str(caught.value).startswith(ENTRY)
    assert registry.requests == []
