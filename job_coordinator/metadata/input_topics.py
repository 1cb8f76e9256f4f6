"""Which topics a job reads as its inputs, in the coordinator stream, and whether they still are.

A topic that was deleted and recreated has other records at the offsets that the job has
committed. The brokers give it another id: the one that an input had when the job first saw it is
kept here, through drivers, attempts and submissions. Another topic is read only where
``job.input.recreated=begin`` says so. The record then has a floor: the end of the checkpoint topic
when no process could commit a position in the topic before any more. A position of that input in a
checkpoint below the floor is none.

State and input position belong together. Source: safety S7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import read_all
from homeport.job_coordinator.metadata.state_reset import OPTION

_TYPE = MessageType.SET_INPUT_TOPIC


class InputTopic(NamedTuple):
    """The topic that an input is: its id at the broker, and since which submission.

    ``floor``: offset in the checkpoint topic, below which positions are those of a topic before;
    None: there was none before.
    """

    topic_id: str
    submission: int
    floor: int | None = None


class InputTopicManager:
    """The topics of a job's inputs: set-input-topic.

    Args:
        stream: read to its head.
        submission: of the writer; None: nothing is written.
    """

    def __init__(self, stream: CoordinatorStream, submission: int | None = None) -> None:
        self._stream = stream
        self._submission = submission

    def read(self) -> dict[SystemStream, InputTopic]:
        """{input: its topic}, as of the last catch-up."""
        found = read_all(self._stream, _TYPE, _record)
        topics = {SystemStream.parse(key): topic for key, topic in found.items()}
        return {stream: topic for stream, topic in topics.items() if stream is not None}

    def ids(self) -> dict[SystemStream, str]:
        """{input: the broker's id of its topic}, as of the last catch-up."""
        return {stream: topic.topic_id for stream, topic in self.read().items()}

    def floors(self) -> dict[SystemStream, int]:
        """{input that began again: its floor}, as of the last catch-up."""
        topics = self.read().items()
        return {stream: topic.floor for stream, topic in topics if topic.floor is not None}

    def write(
        self,
        topic_ids: Mapping[SystemStream, str],
        floors: Mapping[SystemStream, int] | None = None,
    ) -> None:
        """The stream says ``topic_ids`` of these inputs, at once; of others what it did.

        Shapes: ``floors`` {input that is another topic than before: its floor}.
        """
        known, floors = self.ids(), floors or {}
        new = [item for item in sorted(topic_ids.items()) if known.get(item[0]) != item[1]]
        if new:
            self._stream.write([self._message(s, topic_id, floors.get(s)) for s, topic_id in new])

    def _message(
        self, stream: SystemStream, topic_id: str, floor: int | None
    ) -> CoordinatorStreamMessage:
        more = {} if floor is None else {"floor": str(floor)}
        return wire.set_topic(
            _TYPE, str(stream), topic_id, submission=str(self._submission), **more
        )


def recreated(
    known: Mapping[SystemStream, str], seen: Mapping[SystemStream, str]
) -> tuple[SystemStream, ...]:
    """The inputs that are other topics than those that the job has read, in order.

    Shapes: {input: the broker's id of its topic}; of an input that is not known, any is right.
    """
    return tuple(sorted(s for s, topic_id in seen.items() if known.get(s, topic_id) != topic_id))


def refusal(stream: SystemStream, known: str, seen: str) -> ConfigError:
    """Why the job does not begin on ``stream`` as it is now, and what to do."""
    key = keys.JOB_INPUT_RECREATED.name
    return ConfigError(
        key,
        keys.RECREATED_REFUSE,
        f"input {stream} was deleted and recreated (its id is {seen}, it was {known}), and what "
        "the job has committed, offsets and state, is of the topic before",
        f"write {key}={keys.RECREATED_BEGIN} to keep the state and begin the new topic where "
        f"samza.offset.default says, or begin from nothing by run-job {OPTION}",
    )


def lost_input(stream: SystemStream, known: str | None, seen: str | None) -> ConfigError | None:
    """What there is to say of an input by its topic's id now, None: it is gone.

    None where it is the one that the job reads, ``known``; where that is None, any is right.
    """
    if known in {None, seen} and seen is not None:
        return None
    what = f"deleted and recreated (its id is {seen}, it was {known})" if seen else "deleted"
    return ConfigError(
        keys.TASK_INPUTS.name,
        str(stream),
        f"the input was {what}, and what the job has committed is of the topic before",
        f"submit the job with {keys.JOB_INPUT_RECREATED.name}={keys.RECREATED_BEGIN} once the "
        f"topic is there, to keep the state, or by run-job {OPTION}",
    )


def _record(message: CoordinatorStreamMessage) -> InputTopic:
    topic_id = message.value("topic-id")
    if not topic_id:
        raise WireError(f"{message.type} {message.key!r}: topic-id is missing")
    has_floor = message.value("floor") is not None
    return InputTopic(
        topic_id,
        wire.number(message, "submission"),
        wire.number(message, "floor") if has_floor else None,
    )
