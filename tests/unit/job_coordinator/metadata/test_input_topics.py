"""Which topics a job has read as its inputs."""

from __future__ import annotations

import logging

import pytest

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.topics import (
    InputTopic,
    InputTopicManager,
    lost_input,
    recreated,
    refusal,
)

IN, OTHER = SystemStream("kafka", "my.in"), SystemStream("kafka", "other")


def test_topics_are_read_as_they_were_written(stream: InMemoryCoordinatorStream) -> None:
    """With dots in their names; what is said already is not written again."""
    manager = InputTopicManager(stream, 2)
    manager.write({IN: "id-1"})
    (message,) = stream.catch_up()
    assert (message.type, message.key) == ("set-input-topic", "kafka.my.in")
    assert message.values == {"topic-id": "id-1", "submission": "2"}
    manager.write({IN: "id-1", OTHER: "id-2"})
    assert [message.key for message in stream.catch_up()] == ["kafka.other"]
    assert manager.ids() == {IN: "id-1", OTHER: "id-2"}
    manager.write(manager.ids())
    assert stream.catch_up() == ()


def test_topics_of_an_earlier_submission_stay_known(stream: InMemoryCoordinatorStream) -> None:
    """The next one compares with it; another topic gets a record with a floor."""
    InputTopicManager(stream, 2).write({IN: "id-1", OTHER: "id-2"})
    stream.catch_up()
    later = InputTopicManager(stream, 3)
    assert later.read() == {IN: InputTopic("id-1", 2), OTHER: InputTopic("id-2", 2)}
    later.write({IN: "id-3", OTHER: "id-2"}, {IN: 70})
    (message,) = stream.catch_up()
    assert message.values == {"topic-id": "id-3", "submission": "3", "floor": "70"}
    assert later.read()[IN] == InputTopic("id-3", 3, 70)
    assert later.floors() == {IN: 70}
    InputTopicManager(stream, 4).write({IN: "id-3"})
    assert stream.catch_up() == ()


def test_a_reset_takes_them_away(stream: InMemoryCoordinatorStream) -> None:
    """No position is left that could be of another topic."""
    InputTopicManager(stream, 2).write({IN: "id-1"}, {IN: 7})
    stream.catch_up()
    stream.write(state_removed(stream))
    stream.catch_up()
    assert InputTopicManager(stream).read() == {}


def test_a_record_that_cannot_be_read_says_nothing(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """It is reported, and the topic is accepted as it is; so is one without a system."""
    whole = {"submission": "2", "topic-id": "id-1"}
    for key, values in (
        (str(IN), {"submission": "2"}),
        ("kafka.a", {"topic-id": "id-1"}),
        ("kafka.b", {**whole, "floor": "low"}),
        ("no-system", whole),
    ):
        stream.write([CoordinatorStreamMessage(MessageType.SET_INPUT_TOPIC, key, values)])
    stream.catch_up()
    with caplog.at_level(logging.WARNING):
        assert InputTopicManager(stream).read() == {}
    for fault in ("topic-id is missing", "'submission' is not a number", "'floor' is not a number"):
        assert fault in caplog.text


def test_an_input_that_is_another_topic_is_reported() -> None:
    """Of one that nothing is known of, or that is not there, there is nothing to say."""
    assert recreated({}, {IN: "id-1"}) == ()
    assert recreated({IN: "id-1"}, {}) == ()
    assert recreated({IN: "id-1", OTHER: "id-2"}, {IN: "id-1", OTHER: "id-3"}) == (OTHER,)
    assert str(refusal(IN, "id-1", "id-2")) == (
        "job.input.recreated = 'refuse': input kafka.my.in was deleted and recreated (its id is "
        "id-2, it was id-1), and what the job has committed, offsets and state, is of the topic "
        "before; write job.input.recreated=begin to keep the state and begin the new topic where "
        "samza.offset.default says, or begin from nothing by run-job --reset-state"
    )


@pytest.mark.parametrize(
    ("known", "seen", "said"),
    [
        ("id-1", "id-1", ""),
        (None, "id-1", ""),
        (None, None, "the input was deleted, "),
        ("id-1", None, "the input was deleted, "),
        ("id-1", "id-2", "the input was deleted and recreated (its id is id-2, it was id-1), "),
    ],
)
def test_an_input_that_is_lost_is_one_line(known: str | None, seen: str | None, said: str) -> None:
    """It names the input and what to do."""
    error = lost_input(IN, known, seen)
    assert (error is None) == (not said)
    if error is not None:
        assert str(error).startswith(f"task.inputs = 'kafka.my.in': {said}")
        assert "job.input.recreated=begin" in str(error)
