"""Which topic holds the job's input positions, in the coordinator stream; whether it still does.

A checkpoint topic that is deleted, or deleted and made again, takes the input positions along. A
task would begin where ``samza.offset.default`` says and apply input to its state once more, or skip
some. The brokers give every topic an id: the one that the checkpoint topic had when the job first
used it is kept here, and the job goes on with no other topic.

State and input position belong together. Source: safety S6.
"""

from __future__ import annotations

from homeport.config.errors import ConfigError, WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.metadata.state_reset import OPTION

_TYPE = MessageType.SET_CHECKPOINT_TOPIC


class CheckpointTopicManager(RecordManager):
    """Which topic holds the job's input positions: set-checkpoint-topic."""

    def read(self, topic: SystemStream) -> str | None:
        """The broker's id of ``topic`` when the job first used it, as of the last catch-up.

        None: the job has not used it, as far as the stream says.
        """
        return read_all(self._stream, _TYPE, _topic_id).get(str(topic))

    def write(self, topic: SystemStream, topic_id: str) -> None:
        """The stream says that the topic of that id holds the job's input positions."""
        if self.read(topic) != topic_id:
            self._stream.write([wire.set_topic(_TYPE, str(topic), topic_id)])


def lost_positions(
    topic: SystemStream, recorded: str | None, topic_id: str | None
) -> ConfigError | None:
    """What there is to say where ``topic`` no longer holds the job's input positions.

    Args:
        topic: the checkpoint topic.
        recorded: its id as the stream says it; None: no positions are known of.
        topic_id: the broker's id of the topic now; None: there is no such topic.
    """
    if recorded is None or recorded == topic_id:
        return None
    what = (
        "the topic does not exist any more, and it held the input positions of the job"
        if topic_id is None
        else f"the topic was deleted and recreated (its id is {topic_id}, it was {recorded}), and "
        "the one before held the input positions of the job"
    )
    return ConfigError("topic", str(topic), what, f"begin from nothing by run-job {OPTION}")


def _topic_id(message: CoordinatorStreamMessage) -> str:
    topic_id = message.value("topic-id")
    if not topic_id:
        raise WireError(f"{message.type} {message.key!r}: topic-id is missing")
    return topic_id
