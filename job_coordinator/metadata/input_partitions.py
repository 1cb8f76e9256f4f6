"""How many partitions each input had when the job first read it, in the coordinator stream.

A partition that an input has grown by since is no place to begin by ``samza.offset.default``: under
``upcoming`` the records that came before the job noticed it would be passed over. The record stays
for as long as the job reads the input, through all submissions, until its state is reset.
"""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, exactly, read_all
from homeport.job_coordinator.metadata.task_assignment import TaskPartitionManager


class InputPartitionManager(RecordManager):
    """The first partition counts of the inputs: set-input-partitions."""

    def read(self) -> dict[SystemStream, int]:
        """{input: its partitions when the job first read it}, as of the last catch-up."""
        found = read_all(self._stream, MessageType.SET_INPUT_PARTITIONS, _partitions)
        counts = {SystemStream.parse(key): count for key, count in found.items()}
        return {stream: count for stream, count in counts.items() if stream is not None}

    def messages(self, counts: Mapping[SystemStream, int]) -> tuple[CoordinatorStreamMessage, ...]:
        """Records after which the stream has a first count of exactly the inputs of ``counts``.

        Of an input without one it is what the last JobModel in the stream had assigned, where an
        earlier release has published it; else the count given. One that has fewer now than it had
        at first was recreated.

        Shapes: ``counts`` {input: its partitions now}.
        """
        first = self.read()
        if counts.keys() - first.keys():
            first = {**counts, **self._assigned(), **first}
        return exactly(
            self._stream,
            MessageType.SET_INPUT_PARTITIONS,
            (set_input_partitions(s, min(first[s], count)) for s, count in counts.items()),
        )

    def _assigned(self) -> dict[SystemStream, int]:
        found: dict[SystemStream, int] = {}
        for ssp in TaskPartitionManager(self._stream).read():
            stream = ssp.system_stream
            found[stream] = max(found.get(stream, 0), ssp.partition + 1)
        return found


def set_input_partitions(stream: SystemStream, partitions: int) -> CoordinatorStreamMessage:
    """``stream`` had so many partitions when the job first read it; its key is system.stream."""
    values = {"partitions": str(partitions)}
    return CoordinatorStreamMessage(MessageType.SET_INPUT_PARTITIONS, str(stream), values)


def _partitions(message: CoordinatorStreamMessage) -> int:
    count = wire.number(message, "partitions")
    if count < 1:
        raise WireError(f"{message.type} {message.key!r}: no such number of partitions: {count}")
    return count
