"""Which topics a submission has read as its inputs, in the coordinator stream.

A topic that was deleted and made anew has other records at the offsets that the job has committed.
The brokers give it another id: the one that an input had when the submission first saw it is kept,
so that drivers and attempts that follow notice it too. What an earlier submission saw is passed
over: who submits a job decides anew what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.metadata import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.reading import read_all


class _Record(NamedTuple):
    submission: str
    topic_id: str


class InputTopicManager:
    """The topics of one submission's inputs: set-input-topic."""

    def __init__(self, stream: CoordinatorStream, submission: int) -> None:
        self._stream = stream
        self._submission = submission

    def read(self) -> dict[SystemStream, str]:
        """{input: the broker's id of its topic when it was first seen}, as of the last catch-up."""
        found = read_all(self._stream, MessageType.SET_INPUT_TOPIC, _record)
        ids = {
            SystemStream.parse(key): record.topic_id
            for key, record in found.items()
            if record.submission == str(self._submission)
        }
        return {stream: topic_id for stream, topic_id in ids.items() if stream is not None}

    def write(self, topic_ids: Mapping[SystemStream, str]) -> None:
        """The stream says ``topic_ids`` of these inputs; of others what it did."""
        known = self.read()
        new = [item for item in sorted(topic_ids.items()) if known.get(item[0]) != item[1]]
        if new:
            self._stream.write(
                [wire.set_input_topic(str(s), topic_id, self._submission) for s, topic_id in new]
            )


def _record(message: CoordinatorStreamMessage) -> _Record:
    submission, topic_id = message.value("submission"), message.value("topic-id")
    if not submission or not topic_id:
        raise WireError(f"{message.type} {message.key!r}: submission or topic-id is missing")
    return _Record(submission, topic_id)
