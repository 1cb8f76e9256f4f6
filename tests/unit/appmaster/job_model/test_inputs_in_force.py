"""The record of the inputs, systems and stores that are in force, for the next attempt."""

from __future__ import annotations

import json

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.job_model.inputs_in_force import in_force, records
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import ConfigManager

_KEY = "yarn.am.inputs"
_URL = "http://user:secret@host/"
"""A value that is a secret by its form, not by its key."""
_SUBMITTED = Config(
    {
        "task.inputs": "kafka.in",
        "job.container.count": "2",
        "stores.old.factory": "rocksdb",
        "systems.kafka.consumer.sasl.password": "first",
    }
)
_LIVE = Config(
    {
        "task.inputs": "kafka.in,kafka.more",
        "job.container.count": "3",
        "systems.kafka.streams.more.samza.offset.default": "oldest",
        "systems.kafka.consumer.sasl.password": "second",
        "systems.kafka.producer.url": _URL,
    }
)


def _written(stream: InMemoryCoordinatorStream, config: Config) -> int:
    """How many records there were to write."""
    found = list(records(_SUBMITTED, config, stream))
    stream.write(found)
    stream.catch_up()
    return len(found)


def test_what_came_live_is_recorded_until_it_is_the_submissions_again() -> None:
    """Once for each change; secrets are left out, which have the value of the stream."""
    stream = InMemoryCoordinatorStream()
    assert _written(stream, _SUBMITTED) == 0
    assert in_force(_SUBMITTED, stream) == _SUBMITTED
    assert (_written(stream, _LIVE), _written(stream, _LIVE)) == (1, 0)
    text = ConfigManager(stream).read()[_KEY]
    assert json.loads(text) == {
        "task.inputs": "kafka.in,kafka.more",
        "systems.kafka.streams.more.samza.offset.default": "oldest",
        "stores.old.factory": None,
    }
    stream.write([wire.set_config("systems.kafka.consumer.sasl.password", "second")])
    stream.write([wire.set_config("systems.kafka.producer.url", _URL)])
    stream.write([wire.set_config("task.inputs", "nonsense")])
    stream.write([wire.set_config("my.password", "no matter of the inputs")])
    stream.catch_up()
    assert in_force(_SUBMITTED, stream) == _LIVE.merged({"job.container.count": "2"})
    assert _written(stream, _SUBMITTED) == 1
    assert _KEY not in ConfigManager(stream).read()


@pytest.mark.parametrize("text", ["{", "[]", '{"task.inputs": 3}'])
def test_a_damaged_record_counts_for_nothing(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log has a line; no other key than of inputs is taken from it."""
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(_KEY, text)])
    stream.catch_up()
    assert in_force(_SUBMITTED, stream) == _SUBMITTED
    assert f"the inputs of the submission are used: {_KEY}" in caplog.text


def test_no_other_key_is_taken() -> None:
    """A tool that can write the record could change the job's code by it."""
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config(_KEY, '{"task.class": "x:y", "task.inputs": "kafka.b"}')])
    stream.catch_up()
    assert in_force(_SUBMITTED, stream) == _SUBMITTED.merged({"task.inputs": "kafka.b"})
