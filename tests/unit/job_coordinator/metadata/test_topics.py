"""Which topics a job reads and keeps its state in, and what is said where they are others."""

from __future__ import annotations

import logging

import pytest
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    CheckpointTopicManager,
    InputPartitionManager,
    InputTopic,
    InputTopicManager,
    OutputTopicManager,
    left_behind,
    lost_input,
    lost_positions,
    lost_state,
    recreated,
    refusal,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

TOPIC, OTHER = SystemStream("kafka", "my.topic"), SystemStream("kafka", "other")
RECORD = ChangelogTopicRecord("id-1", "s")


def _count(stream: InMemoryCoordinatorStream, counts: dict[SystemStream, int]) -> None:
    put(stream, *InputPartitionManager(stream).messages(counts))


def test_inputs_are_read_as_they_were_written(stream: InMemoryCoordinatorStream) -> None:
    """With dots in their names; what is said already is not written again."""
    manager = InputTopicManager(stream, 2)
    manager.write({TOPIC: "id-1"})
    (message,) = stream.catch_up()
    assert (message.type, message.key) == ("set-input-topic", "kafka.my.topic")
    assert message.values == {"topic-id": "id-1", "submission": "2"}
    manager.write({TOPIC: "id-1", OTHER: "id-2"})
    assert [message.key for message in stream.catch_up()] == ["kafka.other"]
    assert manager.ids() == {TOPIC: "id-1", OTHER: "id-2"}
    manager.write(manager.ids())
    assert stream.catch_up() == ()


def test_inputs_of_an_earlier_submission_stay_known(stream: InMemoryCoordinatorStream) -> None:
    """The next one compares with it; another topic gets a record with a floor."""
    InputTopicManager(stream, 2).write({TOPIC: "id-1", OTHER: "id-2"})
    stream.catch_up()
    later = InputTopicManager(stream, 3)
    assert later.read() == {TOPIC: InputTopic("id-1", 2), OTHER: InputTopic("id-2", 2)}
    later.write({TOPIC: "id-3", OTHER: "id-2"}, {TOPIC: 70})
    (message,) = stream.catch_up()
    assert message.values == {"topic-id": "id-3", "submission": "3", "floor": "70"}
    assert later.read()[TOPIC] == InputTopic("id-3", 3, 70)
    assert later.floors() == {TOPIC: 70}


def test_changelogs_are_read_as_they_were_written(stream: InMemoryCoordinatorStream) -> None:
    """What is written of one says nothing of others."""
    manager = ChangelogTopicManager(stream)
    assert manager.read() == {}
    found = {TOPIC: ChangelogTopicRecord("id-3", "s"), OTHER: ChangelogTopicRecord("id-2", "t")}
    for written in ({TOPIC: RECORD}, {OTHER: found[OTHER]}, {TOPIC: found[TOPIC]}):
        manager.write(written)
        stream.catch_up()
    assert manager.read() == found
    manager.write(found)
    assert stream.catch_up() == ()


def test_checkpoint_topics_are_read_as_they_were_written(stream: InMemoryCoordinatorStream) -> None:
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


def test_outputs_that_the_job_made_are_known_through_a_reset(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Each by its id; a reset of the state leaves outputs as they are."""
    manager = OutputTopicManager(stream)
    manager.write(TOPIC, "id-1")
    (message,) = stream.catch_up()
    assert (message.type, message.key) == ("set-output-topic", str(TOPIC))
    assert message.values == {"topic-id": "id-1"}
    put(stream, *state_removed(stream))
    assert manager.read() == {TOPIC: "id-1"}


def test_a_reset_takes_the_topics_away(stream: InMemoryCoordinatorStream) -> None:
    """They are recreated: nothing is missed of those before, and no position is of another one."""
    InputTopicManager(stream, 2).write({TOPIC: "id-1"}, {TOPIC: 7})
    ChangelogTopicManager(stream).write({TOPIC: RECORD})
    CheckpointTopicManager(stream).write(TOPIC, "id-1")
    stream.catch_up()
    put(stream, *state_removed(stream))
    assert not InputTopicManager(stream).read()
    assert not ChangelogTopicManager(stream).read()
    assert CheckpointTopicManager(stream).read(TOPIC) is None


_INPUT = MessageType.SET_INPUT_TOPIC, {"submission": "2", "topic-id": "id-1"}
_CHANGELOG = MessageType.SET_CHANGELOG_TOPIC, {"topic-id": "id-1", "store": "s"}
_CHECKPOINT = MessageType.SET_CHECKPOINT_TOPIC, {"topic-id": "id-1"}
_PARTITIONS = MessageType.SET_INPUT_PARTITIONS, {"partitions": "3"}


@pytest.mark.parametrize(
    ("record", "wrong", "fault"),
    [
        (_INPUT, {"topic-id": None}, "missing required field `topic_id`"),
        (_INPUT, {"submission": None}, "missing required field `submission`"),
        (_INPUT, {"floor": "low"}, "got `str` - at `$.floor`"),
        (_INPUT, {"floor": ""}, "got `str` - at `$.floor`"),
        (_CHANGELOG, {"topic-id": None}, "missing required field `topic_id`"),
        (_CHANGELOG, {"store": ""}, "length >= 1 - at `$.store`"),
        (_CHECKPOINT, {"topic-id": ""}, "topic-id is missing"),
        (_PARTITIONS, {"partitions": None}, "'partitions' is not a number"),
        (_PARTITIONS, {"partitions": "many"}, "'partitions' is not a number"),
        (_PARTITIONS, {"partitions": "0"}, "no such number of partitions: 0"),
    ],
)
def test_a_record_that_cannot_be_read_says_nothing(
    stream: InMemoryCoordinatorStream,
    caplog: pytest.LogCaptureFixture,
    record: tuple[MessageType, dict[str, str]],
    wrong: dict[str, str | None],
    fault: str,
) -> None:
    """It is reported, and the topic is accepted as it is; so is one without a system."""
    kind, whole = record
    values = {name: value for name, value in (whole | wrong).items() if value is not None}
    damaged = CoordinatorStreamMessage(kind, str(TOPIC), values)
    put(stream, damaged, CoordinatorStreamMessage(kind, "no-system", whole))
    with caplog.at_level(logging.WARNING):
        assert not InputTopicManager(stream).read()
        assert not ChangelogTopicManager(stream).read()
        assert InputPartitionManager(stream).read() == {}
        assert CheckpointTopicManager(stream).read(TOPIC) is None
    assert fault in caplog.text


def test_an_input_that_is_another_topic_is_reported() -> None:
    """Of one that nothing is known of, or that is not there, there is nothing to say."""
    assert recreated({}, {TOPIC: "id-1"}) == ()
    assert recreated({TOPIC: "id-1"}, {}) == ()
    assert recreated({TOPIC: "id-1", OTHER: "id-2"}, {TOPIC: "id-1", OTHER: "id-3"}) == (OTHER,)
    assert str(refusal(TOPIC, "id-1", "id-2")) == (
        "job.input.recreated = 'refuse': input kafka.my.topic was deleted and recreated (its id is "
        "id-2, it was id-1), and what the job has committed, offsets and state, is of the topic "
        "before; write job.input.recreated=begin to keep the state and begin the new topic where "
        "samza.offset.default says, or begin from nothing by run-job --reset-state"
    )


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        ("id-1", "id-1", ""),
        (None, "id-1", ""),
        (None, None, "the input was deleted, "),
        ("id-1", None, "the input was deleted, "),
        ("id-1", "id-2", "the input was deleted and recreated (its id is id-2, it was id-1), "),
    ],
)
def test_an_input_that_is_lost_is_one_line(
    known: str | None, seen: str | None, expected: str
) -> None:
    """It names the input and what to do."""
    error = lost_input(TOPIC, known, seen)
    assert (error is None) == (not expected)
    if error is not None:
        assert str(error).startswith(f"task.inputs = 'kafka.my.topic': {expected}")
        assert "job.input.recreated=begin" in str(error)


_GONE = "the topic does not exist any more, and it held"
_ANOTHER = (
    "the topic was deleted and recreated (its id is id-2, it was id-1), and the one before held"
)


@pytest.mark.parametrize(
    ("known", "seen", "lost"),
    [
        (None, None, None),
        (None, "id-1", None),
        ("id-1", "id-1", None),
        ("id-1", None, _GONE),
        ("id-1", "id-2", _ANOTHER),
    ],
)
def test_only_the_topic_that_is_known_holds_state_and_positions(
    known: str | None, seen: str | None, lost: str | None
) -> None:
    """Of one that nothing is known of none is missed; a missing and another one are reported."""
    state = lost_state(TOPIC, None if known is None else RECORD, seen)
    positions = lost_positions(TOPIC, known, seen)
    if lost is None:
        assert (state, positions) == (None, None)
        return
    assert str(state) == (
        f"stores.s.changelog = 'kafka.my.topic': {lost} the state of the job; bring its records "
        "back and submit the job again, or begin from nothing by run-job --reset-state"
    )
    assert str(positions) == (
        f"topic = 'kafka.my.topic': {lost} the input positions of the job; begin from nothing by "
        "run-job --reset-state"
    )


def test_state_that_no_store_has_any_more_is_named() -> None:
    """One line for each topic; what is used is no such one."""
    known = {OTHER: ChangelogTopicRecord("id-2", "t"), TOPIC: RECORD}
    assert list(left_behind(known, [TOPIC, OTHER])) == []
    first, second = left_behind(known, [])
    assert first.startswith("changelog kafka.my.topic holds the state of store s, and no store has")
    assert second.startswith("changelog kafka.other holds the state of store t, and no store has")
    assert list(left_behind(known, [TOPIC])) == [second]


@pytest.mark.parametrize(
    ("counts", "first"),
    [
        ([{TOPIC: 4}, {TOPIC: 6, OTHER: 1}, {TOPIC: 8, OTHER: 2}], {TOPIC: 4, OTHER: 1}),
        ([{TOPIC: 4, OTHER: 2}, {TOPIC: 4}], {TOPIC: 4}),
        ([{TOPIC: 4, OTHER: 2}, {TOPIC: 4}, {TOPIC: 4, OTHER: 3}], {TOPIC: 4, OTHER: 3}),
        ([{TOPIC: 4}, {TOPIC: 2}, {TOPIC: 4}], {TOPIC: 2}),
    ],
    ids=["it grows", "it is read no more", "it is read again", "it is recreated with fewer"],
)
def test_the_first_partition_count_of_an_input_stays(
    stream: InMemoryCoordinatorStream,
    counts: list[dict[SystemStream, int]],
    first: dict[SystemStream, int],
) -> None:
    """As long as it is read, and is not recreated with fewer partitions."""
    for count in counts:
        _count(stream, count)
    assert InputPartitionManager(stream).read() == first
    assert InputPartitionManager(stream).messages(counts[-1]) == ()


def test_partitions_assigned_by_an_earlier_release_count(stream: InMemoryCoordinatorStream) -> None:
    """Its job has partitions, and no record of their number."""
    for partition in range(4):
        ssp = SystemStreamPartition(TOPIC.system, TOPIC.stream, partition)
        stream.write([wire.set_task_partition_assignment(ssp, [f"Partition {partition}"])])
    stream.catch_up()
    _count(stream, {TOPIC: 6})
    assert InputPartitionManager(stream).read() == {TOPIC: 4}
