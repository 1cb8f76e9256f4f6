"""Records which topics a job reads and keeps its state in, for drivers, containers and tools.

When a topic is deleted, its records are lost: the job's state, or its input positions. A topic that
is created in its place has other records at the same offsets. The brokers give every topic an id.
The coordinator stream keeps the id that a topic had when the job first used it, through drivers,
attempts and submissions. No process goes on with a topic of another id without an error.

A new topic is read as the same input only where ``job.input.recreated=begin`` allows it. The record
then has a floor: the end of the checkpoint topic at a time when no process could still commit a
position of the former topic. Positions of that input in checkpoints below the floor do not count.

A task does not begin a new partition of a grown input at ``samza.offset.default``: under
``upcoming`` it would pass over the records that came before the job noticed the partition. So the
first number of partitions stays recorded while the job reads the input, until its state is reset.

State and input position belong together. Source: safety S3, S6, S7.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import (
    RecordManager,
    exactly,
    read_all,
    read_last,
)
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.metadata.state_reset import OPTION
from homeport.job_coordinator.metadata.task_assignment import TaskPartitionManager
from homeport.job_coordinator.model.job_model import counts_of
from homeport.job_coordinator.model.wire_form import Number, Text

_T = TypeVar("_T")
_RECREATED = "deleted and recreated (its id is {now}, it was {before})"


def _by_stream(found: Mapping[str, _T]) -> dict[SystemStream, _T]:
    """Return {system and stream of the key: value}, without keys that name none."""
    streams = {SystemStream.parse(key): value for key, value in found.items()}
    return {stream: value for stream, value in streams.items() if stream is not None}


def _topic_id(message: CoordinatorStreamMessage) -> str:
    topic_id = message.value("topic-id")
    if not topic_id:
        raise WireError(f"{message.type} {message.key!r}: topic-id is missing")
    return topic_id


# --- inputs


@dataclass(frozen=True)
class InputTopic:
    """The id of an input's topic at the broker, and the submission that first read it.

    ``floor``: an offset in the checkpoint topic; positions below it belong to a former topic. None:
    the input had no former topic.
    """

    topic_id: Text
    submission: Number
    floor: Number | None = None


class InputTopicManager:
    """The topics of a job's inputs: set-input-topic.

    ``stream``: read to its head. ``submission``: the writer's; a reader has none.
    """

    def __init__(self, stream: CoordinatorStream, submission: int = 0) -> None:
        self._stream = stream
        self._submission = submission

    def read(self) -> dict[SystemStream, InputTopic]:
        """Return {input: its topic}, as of the last catch-up."""
        decode = partial(decoded, InputTopic)
        return _by_stream(read_all(self._stream, MessageType.SET_INPUT_TOPIC, decode))

    def ids(self) -> dict[SystemStream, str]:
        """Return {input: the broker's id of its topic}, as of the last catch-up."""
        return {stream: topic.topic_id for stream, topic in self.read().items()}

    def floors(self) -> dict[SystemStream, int]:
        """Return {input that began again: its floor}, as of the last catch-up."""
        topics = self.read().items()
        return {stream: topic.floor for stream, topic in topics if topic.floor is not None}

    def write(
        self,
        topic_ids: Mapping[SystemStream, str],
        floors: Mapping[SystemStream, int] | None = None,
    ) -> None:
        """Record ``topic_ids`` of these inputs in one write; the records of other inputs stay.

        Shapes: ``floors`` {input whose topic was recreated: its floor}.
        """
        known, floors = self.ids(), floors or {}
        new = [item for item in sorted(topic_ids.items()) if known.get(item[0]) != item[1]]
        if new:
            topics = {s: InputTopic(t, self._submission, floors.get(s)) for s, t in new}
            kind = MessageType.SET_INPUT_TOPIC
            self._stream.write([record_of(kind, str(s), topic) for s, topic in topics.items()])


def recreated(
    known: Mapping[SystemStream, str], seen: Mapping[SystemStream, str]
) -> tuple[SystemStream, ...]:
    """Return the inputs whose topics are not those that the job has read, in order.

    Shapes: {input: the broker's id of its topic}; an input that is not known may have any topic.
    """
    return tuple(sorted(s for s, topic_id in seen.items() if known.get(s, topic_id) != topic_id))


def refusal(
    stream: SystemStream, known: str, seen: str, policy: str = keys.RECREATED_REFUSE
) -> ConfigError:
    """Return why the job does not begin on ``stream`` as it is now, and what to do.

    ``policy``: of the key; where it allows the topic, only a submission begins it.
    """
    key, begin = keys.JOB_INPUT_RECREATED.name, keys.RECREATED_BEGIN
    how = "submit the job again" if policy == begin else f"write {key}={begin}"
    return ConfigError(
        key,
        policy,
        f"input {stream} was {_RECREATED.format(now=seen, before=known)}, and what "
        "the job has committed, offsets and state, is of the topic before",
        f"{how} to keep the state and begin the new topic where "
        f"samza.offset.default says, or begin from nothing by run-job {OPTION}",
    )


def lost_input(stream: SystemStream, known: str | None, seen: str | None) -> ConfigError | None:
    """Return the error where the input's topic is not ``known`` any more; None: it still is.

    ``known``: the id of the topic that the job reads; None: any is right. ``seen``: the broker's id
    of the topic now; None: the topic is gone.
    """
    if known in {None, seen} and seen is not None:
        return None
    what = _RECREATED.format(now=seen, before=known) if seen else "deleted"
    return keys.TASK_INPUTS.error(
        stream,
        f"the input was {what}, and what the job has committed is of the topic before",
        f"submit the job with {keys.JOB_INPUT_RECREATED.name}={keys.RECREATED_BEGIN} once the "
        f"topic is there, to keep the state, or by run-job {OPTION}",
    )


class InputPartitionManager(RecordManager):
    """The first partition counts of the inputs: set-input-partitions."""

    def read(self) -> dict[SystemStream, int]:
        """Return {input: its partitions when the job first read it}, as of the last catch-up."""
        return _by_stream(read_all(self._stream, MessageType.SET_INPUT_PARTITIONS, _partitions))

    def messages(self, counts: Mapping[SystemStream, int]) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records after which exactly the inputs of ``counts`` have a first count.

        An input without one gets what the last JobModel in the stream had assigned, which an
        earlier release may have published, else the count given. An input with fewer partitions
        than at first was recreated, and gets the count given.

        Shapes: ``counts`` {input: its partitions now}.
        """
        first = self.read()
        if counts.keys() - first.keys():
            first = {**counts, **self._assigned(), **first}
        records = (set_input_partitions(s, min(first[s], count)) for s, count in counts.items())
        return exactly(self._stream, MessageType.SET_INPUT_PARTITIONS, records)

    def _assigned(self) -> dict[SystemStream, int]:
        counts = counts_of(TaskPartitionManager(self._stream).read())
        return {SystemStream(*stream): count for stream, count in counts.items()}


def set_input_partitions(stream: SystemStream, partitions: int) -> CoordinatorStreamMessage:
    """Return the record of the partitions that ``stream`` had when the job first read it."""
    values = {"partitions": str(partitions)}
    return CoordinatorStreamMessage(MessageType.SET_INPUT_PARTITIONS, str(stream), values)


def _partitions(message: CoordinatorStreamMessage) -> int:
    count = wire.number(message, "partitions")
    if count < 1:
        raise WireError(f"{message.type} {message.key!r}: no such number of partitions: {count}")
    return count


# --- state and input positions


@dataclass(frozen=True)
class ChangelogTopicRecord:
    """The topic with the id ``topic_id`` holds the state of ``store``."""

    topic_id: Text
    store: Text


class ChangelogTopicManager(RecordManager):
    """The topics that hold the job's state: set-changelog-topic."""

    def read(self) -> dict[SystemStream, ChangelogTopicRecord]:
        """Return {changelog: what is known of it}, as of the last catch-up."""
        decode = partial(decoded, ChangelogTopicRecord)
        return _by_stream(read_all(self._stream, MessageType.SET_CHANGELOG_TOPIC, decode))

    def write(self, records: Mapping[SystemStream, ChangelogTopicRecord]) -> None:
        """Record ``records``; other topics stay."""
        known, kind = self.read(), MessageType.SET_CHANGELOG_TOPIC
        self._stream.write(
            [
                record_of(kind, str(topic), record)
                for topic, record in sorted(records.items())
                if known.get(topic) != record
            ]
        )


class OutputTopicManager(RecordManager):
    """The outputs that the job has made: set-output-topic. One that was there has no record."""

    def read(self) -> dict[SystemStream, str]:
        """Return {output: the id of the topic that the job made}, as of the last catch-up."""
        return _by_stream(read_all(self._stream, MessageType.SET_OUTPUT_TOPIC, _topic_id))

    def write(self, output: SystemStream, topic_id: str) -> None:
        """Record that the job has made the topic with that id."""
        kind, values = MessageType.SET_OUTPUT_TOPIC, {"topic-id": topic_id}
        self._stream.write([CoordinatorStreamMessage(kind, str(output), values)])


class CheckpointTopicManager(RecordManager):
    """The topic that holds the job's input positions: set-checkpoint-topic."""

    def read(self, topic: SystemStream) -> str | None:
        """Return the broker's id of ``topic`` when the job first used it; None: it never did.

        The answer is as of the last catch-up.
        """
        return read_last(self._stream, MessageType.SET_CHECKPOINT_TOPIC, str(topic), _topic_id)

    def write(self, topic: SystemStream, topic_id: str) -> None:
        """Record that the topic with that id holds the job's input positions."""
        if self.read(topic) != topic_id:
            kind, values = MessageType.SET_CHECKPOINT_TOPIC, {"topic-id": topic_id}
            self._stream.write([CoordinatorStreamMessage(kind, str(topic), values)])


def lost_state(
    changelog: SystemStream, record: ChangelogTopicRecord | None, topic_id: str | None
) -> ConfigError | None:
    """Return the error where ``changelog`` is not the topic any more that holds the state.

    ``record``: None: the stream records no state. ``topic_id``: the broker's now; None: there is no
    topic.
    """
    if record is None or record.topic_id == topic_id:
        return None
    return keys.STORE_CHANGELOG.error(
        changelog,
        _lost("the state", record.topic_id, topic_id),
        f"bring its records back and submit the job again, or begin from nothing by run-job "
        f"{OPTION}",
        record.store,
    )


def lost_positions(
    topic: SystemStream, recorded: str | None, topic_id: str | None
) -> ConfigError | None:
    """Return the error where ``topic`` no longer holds the job's input positions.

    ``recorded``: its id in the stream; None: no positions are known of. ``topic_id``: as above.
    """
    if recorded is None or recorded == topic_id:
        return None
    rule = _lost("the input positions", recorded, topic_id)
    return ConfigError("topic", str(topic), rule, f"begin from nothing by run-job {OPTION}")


def _lost(what: str, before: str, now: str | None) -> str:
    if now is None:
        return f"the topic does not exist any more, and it held {what} of the job"
    story = _RECREATED.format(now=now, before=before)
    return f"the topic was {story}, and the one before held {what} of the job"


def left_behind(
    known: Mapping[SystemStream, ChangelogTopicRecord], used: Collection[SystemStream]
) -> Iterator[str]:
    """Yield a line for each topic with state that is no longer a changelog of the job.

    ``used``: the changelogs of its stores.
    """
    for changelog, record in sorted(known.items()):
        if changelog not in used:
            yield (
                f"changelog {changelog} holds the state of store {record.store}, and no store has "
                "it any more: that state stays behind; where the store has another name now, name "
                f"this topic in {keys.STORE_CHANGELOG.named('<its name now>')}"
            )
