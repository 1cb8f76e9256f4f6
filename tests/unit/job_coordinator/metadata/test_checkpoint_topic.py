"""Which topic holds the job's input positions, and what is said where it no longer does."""

from __future__ import annotations

import logging

import pytest

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import MessageType
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.topics import CheckpointTopicManager, lost_positions

TOPIC, OTHER = SystemStream("kafka", "__samza_checkpoint.j"), SystemStream("other", "c")


def test_the_id_is_read_as_it_was_written(stream: InMemoryCoordinatorStream) -> None:
    """Of each topic; what is said already is not written again."""
    manager = CheckpointTopicManager(stream)
    assert manager.read(TOPIC) is None
    manager.write(TOPIC, "id-1")
    (message,) = stream.catch_up()
    assert (message.type, message.key) == ("set-checkpoint-topic", str(TOPIC))
    assert message.values == {"topic-id": "id-1"}
    manager.write(TOPIC, "id-1")
    manager.write(OTHER, "id-2")
    assert [m.key for m in stream.catch_up()] == [str(OTHER)]
    assert (manager.read(TOPIC), manager.read(OTHER)) == ("id-1", "id-2")


def test_a_reset_takes_it_away(stream: InMemoryCoordinatorStream) -> None:
    """The topic is recreated, and no position is missed of the one before."""
    manager = CheckpointTopicManager(stream)
    manager.write(TOPIC, "id-1")
    stream.catch_up()
    stream.write(state_removed(stream))
    stream.catch_up()
    assert manager.read(TOPIC) is None


def test_a_record_that_cannot_be_read_says_nothing(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """It is reported, and the topic is accepted as it is."""
    stream.write([wire.set_topic(MessageType.SET_CHECKPOINT_TOPIC, str(TOPIC), "")])
    stream.catch_up()
    with caplog.at_level(logging.WARNING):
        assert CheckpointTopicManager(stream).read(TOPIC) is None
    assert "topic-id is missing" in caplog.text


def test_only_the_topic_that_is_known_holds_the_positions() -> None:
    """Of one that nothing is known of none is missed; a missing and another one are reported."""
    assert lost_positions(TOPIC, None, None) is None
    assert lost_positions(TOPIC, None, "id-1") is None
    assert lost_positions(TOPIC, "id-1", "id-1") is None
    assert str(lost_positions(TOPIC, "id-1", None)) == (
        f"topic = '{TOPIC}': the topic does not exist any more, and it held the input positions "
        "of the job; begin from nothing by run-job --reset-state"
    )
    assert str(lost_positions(TOPIC, "id-1", "id-2")) == (
        f"topic = '{TOPIC}': the topic was deleted and recreated (its id is id-2, it was id-1), "
        "and the one before held the input positions of the job; begin from nothing by run-job "
        "--reset-state"
    )
