"""The metadata stores of this process, against what every metadata store must do."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from metadata_store_conformance import MetadataStoreConformance, OpenStore

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    Namespace,
)
from homeport.job_coordinator.metadata.coordinator_stream_metadata_store import (
    CoordinatorStreamMetadataStore,
)
from homeport.job_coordinator.metadata.metadata_store import InMemoryMetadataStore
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskMode


class TestInMemory(MetadataStoreConformance):
    """A store in this process, which all its clients share."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """One store for all."""
        store = InMemoryMetadataStore()
        return lambda: store


class TestCoordinatorStream(MetadataStoreConformance):
    """A coordinator stream without Kafka; each client reads and writes the log by itself."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Streams on one log."""
        log: list[tuple[bytes, bytes | None]] = []
        return lambda: CoordinatorStreamMetadataStore(InMemoryCoordinatorStream(log=log))


_SSP = wire.set_task_partition_assignment(SystemStreamPartition("kafka", "in", 0), ["t"])
_ONE_FIELD = [
    (wire.set_config("a", ""), b""),
    (wire.set_changelog("t", 7), b"7"),
    (wire.set_container_host_assignment("0", "nm1"), b"nm1"),
    (wire.set_task_host_assignment("t", "nm1"), b"nm1"),
    (wire.set_task_container_assignment("t", "0"), b"0"),
    (wire.set_task_mode_assignment("t", TaskMode.STANDBY), b"Standby"),
    (_SSP, b'["t"]'),
    (wire.set_execution_env_container_id("0", "container_1"), b"container_1"),
    (
        wire.set_job_coordinator_metadata("YARN", "1", "2", "3"),
        b'{"epoch-id":"1","config-id":"2","job-model-id":"3"}',
    ),
    (wire.set_migration_info({"a": "b"}), b'{"a":"b"}'),
    (wire.set_stopped("0", 5, "signalled"), b'{"epoch":"5","cause":"signalled"}'),
    (wire.of_namespace(Namespace.DRAIN, "uuid", b"\xff"), b"\xff"),
]


@pytest.mark.parametrize(("message", "value"), _ONE_FIELD)
def test_a_key_shows_its_records_field(
    stream: InMemoryCoordinatorStream, message: CoordinatorStreamMessage, value: bytes
) -> None:
    """The one field of a type, all of a type of several, the bytes of a namespace, both ways."""
    stream.write([message])
    (record,) = stream.log
    store = CoordinatorStreamMetadataStore(stream)
    assert store.get(message.type, message.key) == value
    assert store.all(message.type) == {message.key: value}
    store.put(message.type, message.key, value)
    store.flush()
    written = [wire.decode(*r)._replace(timestamp_ms=0) for r in (record, stream.log[1])]
    assert written[0] == written[1]


def test_both_spellings_are_shown(stream: InMemoryCoordinatorStream) -> None:
    """The document's names, and its version as text, are read as Samza's are."""
    stream.log += [
        (b'["1","set-changelog","t"]', b'{"values":{"partition":"3"}}'),
        (b'[1,"set-container-host-assignment","0"]', b'{"values":{"hostname":"nm1"}}'),
    ]
    store = CoordinatorStreamMetadataStore(stream)
    assert store.get("set-changelog", "t") == b"3"
    assert store.get("set-container-host-assignment", "0") == b"nm1"
    store.delete("set-changelog", "t")
    assert store.all("set-changelog") == {}
    fresh = CoordinatorStreamMetadataStore(InMemoryCoordinatorStream(log=stream.log))
    assert fresh.all("set-changelog") == {}


def test_a_record_without_its_field_has_no_value(stream: InMemoryCoordinatorStream) -> None:
    """G29: a configuration value of null is dropped, an empty one kept."""
    stream.log += [
        (b'[1,"set-config","null"]', b'{"values":{"value":null}}'),
        (b'[1,"set-config","empty"]', b'{"values":{"value":""}}'),
        (b'[1,"set-config","other"]', b'{"values":{"other":"x"}}'),
    ]
    store = CoordinatorStreamMetadataStore(stream)
    assert store.all("set-config") == {"empty": b""}
    assert store.get("set-config", "null") is None


@pytest.mark.parametrize(
    ("namespace", "value"),
    [
        ("set-config", b"\xff"),
        ("set-changelog", b"x"),
        ("set-changelog", b""),
        ("set-migration-info", b"no json"),
        ("set-migration-info", b"[]"),
        ("set-stopped", b'{"epoch":5}'),
    ],
)
def test_a_value_that_a_type_cannot_hold_is_refused(
    stream: InMemoryCoordinatorStream, namespace: str, value: bytes
) -> None:
    """Nothing of a put_all is written where one value is wrong, and the writer fails at once."""
    store = CoordinatorStreamMetadataStore(stream)
    with pytest.raises(WireError, match=namespace):
        store.put_all(namespace, {"bad": value})
    store.flush()
    assert stream.log == []


def test_writes_of_one_flush_are_one_write() -> None:
    """What was put since the last flush reaches the stream in one call, in its order."""
    writes: list[list[str]] = []

    class Recorder(InMemoryCoordinatorStream):
        def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
            given = list(messages)
            writes.append([m.key for m in given])
            super().write(given)

    store = CoordinatorStreamMetadataStore(Recorder())
    store.put("set-config", "b", b"1")
    store.delete("set-config", "c")
    store.put_all("set-config", {"z": b"1", "a": b"2"})
    assert writes == []
    store.flush()
    store.flush()
    assert writes == [["b", "c", "z", "a"]]


def test_a_value_that_cannot_be_written_is_given_up(stream: InMemoryCoordinatorStream) -> None:
    """It is reported once, and does not stop what is put afterwards."""
    store = CoordinatorStreamMetadataStore(stream)
    store.put("set-config", "\ud800", b"1")
    with pytest.raises(WireError, match="not Unicode"):
        store.flush()
    store.put("set-config", "a", b"1")
    assert store.all("set-config") == {"a": b"1"}
