"""Which topics a submission has read."""

from __future__ import annotations

import logging

import pytest

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.metadata.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.input_topics import InputTopicManager

IN, OTHER = SystemStream("kafka", "my.in"), SystemStream("kafka", "other")


def test_topics_are_read_as_they_were_written(stream: InMemoryCoordinatorStream) -> None:
    """With dots in their names; what is said already is not written again."""
    manager = InputTopicManager(stream, 2)
    manager.write({IN: "id-1"})
    (message,) = stream.catch_up()
    assert (message.type, message.key) == ("set-input-topic", "kafka.my.in")
    assert message.values == {"submission": "2", "topic-id": "id-1"}
    manager.write({IN: "id-1", OTHER: "id-2"})
    assert [message.key for message in stream.catch_up()] == ["kafka.other"]
    assert manager.read() == {IN: "id-1", OTHER: "id-2"}
    manager.write(manager.read())
    assert stream.catch_up() == ()


def test_what_an_earlier_submission_saw_is_passed_over(stream: InMemoryCoordinatorStream) -> None:
    """The next one has its own."""
    InputTopicManager(stream, 2).write({IN: "id-1"})
    stream.catch_up()
    later = InputTopicManager(stream, 3)
    assert later.read() == {}
    later.write({IN: "id-1"})
    stream.catch_up()
    assert later.read() == {IN: "id-1"}


def test_a_record_that_cannot_be_read_says_nothing(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told, and the topic is taken as it is; so is one without a system."""
    whole = {"submission": "2", "topic-id": "id-1"}
    for key, values in ((str(IN), {"submission": "2"}), ("no-system", whole)):
        stream.write([CoordinatorStreamMessage(MessageType.SET_INPUT_TOPIC, key, values)])
    stream.catch_up()
    with caplog.at_level(logging.WARNING):
        assert InputTopicManager(stream, 2).read() == {}
    assert "submission or topic-id is missing" in caplog.text
