"""The job's configuration in the coordinator stream."""

from __future__ import annotations

from own_records import put, written_keys
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.model.ids import TaskName

T0 = TaskName("Partition 0")


def test_configuration_is_replaced_new_keys_first(stream: InMemoryCoordinatorStream) -> None:
    """G29: new keys, then tombstones of stale ones: also of a key that was written in between."""
    manager = ConfigManager(stream)
    manager.replace({"b": "1", "a": "1"}, "job-runner")
    stream.write([wire.set_config("by-hand", "1"), wire.set_changelog(T0, 0)])
    del stream.log[:2]
    stream._position = 0
    manager.replace({"c": "2", "b": "2"}, "job-runner")
    assert written_keys(stream)[2:] == [("b", False), ("c", False), ("a", True), ("by-hand", True)]
    assert manager.read() == Config({"b": "2", "c": "2"})
    assert stream.latest("set-config")["b"].source == "job-runner"
    assert list(stream.latest("set-changelog")) == [T0]


def test_values_of_the_writer_tool_outlive_a_deployment(stream: InMemoryCoordinatorStream) -> None:
    """Neither overwritten nor deleted by a new file, until it is taken back; its source stays."""
    manager = ConfigManager(stream)
    manager.replace({"a": "1", "b": "1"}, "job-runner")
    by_hand = [wire.set_config("b", "9"), wire.set_config("only-by-hand", "9")]
    put(stream, *[m._replace(source="coordinator-stream-writer") for m in by_hand])
    manager.replace({"b": "2", "c": "2"}, "job-runner")
    assert manager.read() == Config({"b": "9", "c": "2", "only-by-hand": "9"})
    assert manager.written() == Config({"b": "9", "only-by-hand": "9"})
    put(stream, wire.tombstone("set-config", "b"))
    manager.replace({"b": "2"}, "job-runner")
    assert manager.read() == Config({"b": "2", "only-by-hand": "9"})


def test_a_null_of_the_writer_tool_overrides_no_file(stream: InMemoryCoordinatorStream) -> None:
    """A value that is no text is none: the deployment's own counts."""
    value = f'{{"source":"{WRITER_SOURCE}","values":{{"value":null}}}}'
    stream.log.append((b'[1,"set-config","a"]', value.encode()))
    stream.catch_up()
    assert stream.latest("set-config")["a"].source == WRITER_SOURCE
    assert ConfigManager(stream).written() == Config({})


def test_a_configuration_record_without_value_is_left_out(
    stream: InMemoryCoordinatorStream,
) -> None:
    """G29: null is no value, the empty string is one; a stale key without a value goes as well."""
    stream.log.append((b'[1,"set-config","a"]', b'{"values":{"value":null}}'))
    put(stream, wire.set_config("b", ""))
    manager = ConfigManager(stream)
    assert manager.read() == Config({"b": ""})
    manager.replace({}, "job-runner")
    assert written_keys(stream)[2:] == [("a", True), ("b", True)]
