"""Which partition of the changelogs belongs to which task, in the coordinator stream."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.model.ids import TaskName


class ChangelogPartitionManager:
    """Which partition of the changelogs belongs to which task: set-changelog."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read(self) -> dict[TaskName, int]:
        """{task: changelog partition}.

        A record that cannot be read is not left out but stops the caller.

        Raises:
            WireError: a record is damaged; going on would give its task another task's state.
        """
        records = self._stream.latest(MessageType.SET_CHANGELOG)
        return {TaskName(task): wire.changelog_partition(m) for task, m in records.items()}

    def messages(self, partitions: Mapping[TaskName, int]) -> tuple[CoordinatorStreamMessage, ...]:
        """Records of those tasks of ``partitions`` whose partition the stream does not yet say."""
        known = self.read()
        return tuple(
            wire.set_changelog(task, partition)
            for task, partition in sorted(partitions.items())
            if known.get(task) != partition
        )

    def write(self, partitions: Mapping[TaskName, int]) -> None:
        """The stream says the partition of every task of ``partitions``.

        What it says of others stays for ever.
        """
        self._stream.write(self.messages(partitions))
