"""Jobs in one Python file whose records have schemas, on this machine and a real Kafka.

The Schema Registry is ``support/schema_registry.py``, over HTTP, for confluent-kafka's real client.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from descriptor_sets import MESSAGE, flight_descriptors
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from schema_registry import SchemaRegistry
from topic_records import committed

_HEAD = """
from homeport import Avro, Job, Json, Protobuf

REGISTRY, DELAYS = {registry!r}, {delays!r}
FLIGHT = "flight.desc", {message!r}
job = Job({job!r}, kafka={kafka!r}, keys={{"task.outputs.create.partitions": 1}})
"""
_TO_AVRO = """
flights = job.input("{name}-flights", key=str, value=Protobuf(*FLIGHT))
delays = job.output("{name}-delays", key=str, value=Avro(DELAYS, registry=REGISTRY))
newest = job.store("newest", key=str, value=Protobuf(*FLIGHT), changelog="{name}-newest")
sums = job.store("sums", key=str, value=Json("delay BIGINT"), changelog="{name}-sums")


@job.each(flights)
def add(carrier: str, flight: dict) -> None:
    before = sums.get(carrier, {{"delay": 0}})["delay"]
    newest[carrier] = flight
    sums[carrier] = {{"delay": before + flight["delay"]}}
    delays.send(carrier, {{"delay": before + flight["delay"], "tail": flight["plane"]["tail"]}})
"""
_TO_PROTOBUF = """
delays = job.input("{name}-delays", key=str, value=Avro(registry=REGISTRY))
late = job.output("{name}-late", key=str, value=Protobuf(*FLIGHT, registry=REGISTRY))


@job.each(delays)
def pick(carrier: str, found: dict) -> None:
    if found["delay"] > 60:
        flight = {{"carrier": carrier, "delay": found["delay"]}}
        late.send(carrier, {{**flight, "plane": {{"tail": found["tail"]}}}})
"""
_DELAYS = {
    "type": "record",
    "name": "Delays",
    "fields": [{"name": "delay", "type": "long"}, {"name": "tail", "type": "string"}],
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """One of this test."""
    made = SchemaRegistry()
    yield made
    made.close()


def _flight(data: bytes = b"", **values: Any) -> Any:  # noqa: ANN401 - of a class made here
    """A message of the library's own: of these bytes, or of these values."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(flight_descriptors()).file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(MESSAGE))
    return kind.FromString(data) if data else kind(**values)


def _drains(folder: Path, file: str, code: str, **values: str) -> None:
    """The job of this code has processed its input, which it finds by the file alone."""
    path = folder / f"{file}.py"
    given = {"message": MESSAGE, "delays": json.dumps(_DELAYS), "job": f"{values['name']}-{file}"}
    path.write_text((_HEAD + code).format(**given, **values), encoding="utf-8")
    command = [sys.executable, "-m", "homeport.cli.main", "run-local", f"--config-path={path}"]
    done = subprocess.run(
        [*command, "--config=job.drain=true"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_protobuf_and_a_schema_registry_need_one_file_each(
    kafka: str, registry: SchemaRegistry, tmp_path: Path
) -> None:
    """Protobuf's bytes come in, Avro goes out and in by the registry, and Protobuf by it again.

    Stores have Protobuf and JSON in their changelogs.
    """
    name = f"shop-{uuid.uuid4().hex[:6]}"
    (tmp_path / "flight.desc").write_bytes(flight_descriptors())
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(f"{name}-flights", 1, 1)])[f"{name}-flights"].result(30)
    producer = Producer({"bootstrap.servers": kafka})
    for delay, tail in ((50, "N1"), (-3, "N2"), (40, "N3")):
        flight = _flight(carrier="UA", delay=delay, plane={"tail": tail})
        producer.produce(f"{name}-flights", flight.SerializeToString(), b"UA")
    assert producer.flush(30) == 0

    values = {"name": name, "kafka": kafka, "registry": registry.url}
    _drains(tmp_path, "to_avro", _TO_AVRO, **values)
    rows = []
    for record in committed(kafka, f"{name}-delays", 1):
        number, data = _split(record.value() or b"")
        assert (record.key(), number) == (b"UA", 1)
        rows.append(fastavro.schemaless_reader(io.BytesIO(data), _DELAYS, None))
    assert rows == [
        {"delay": 50, "tail": "N1"},
        {"delay": 47, "tail": "N2"},
        {"delay": 87, "tail": "N3"},
    ]
    *_, newest = committed(kafka, f"{name}-newest", 1)
    found = _flight(newest.value() or b"")
    assert (found.carrier, found.delay, found.plane.tail) == ("UA", 40, "N3")
    *_, summed = committed(kafka, f"{name}-sums", 1)
    assert json.loads(summed.value() or b"") == {"delay": 87}

    _drains(tmp_path, "to_protobuf", _TO_PROTOBUF, **values)
    (record,) = committed(kafka, f"{name}-late", 1)
    number, data = _split(record.value() or b"")
    # The message's place in its file comes first: the second of it, as a list of one number.
    assert (number, data[:2]) == (2, b"\x02\x02")
    found = _flight(data[2:])
    assert (record.key(), found.carrier, found.delay, found.plane.tail) == (b"UA", "UA", 87, "N3")


def _split(value: bytes) -> tuple[int, bytes]:
    """The id of the schema, and what comes behind it."""
    assert value[:1] == b"\0"
    return int.from_bytes(value[1:5], "big"), value[5:]
