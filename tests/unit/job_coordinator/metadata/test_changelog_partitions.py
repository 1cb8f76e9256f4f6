"""Which partition of the changelogs is whose."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.changelog_partitions import ChangelogPartitionManager
from homeport.job_coordinator.model.ids import TaskName

T0, T1, T2 = TaskName("Partition 0"), TaskName("Partition 1"), TaskName("Partition 2")


def test_changelog_partitions_stay(stream: InMemoryCoordinatorStream) -> None:
    """Only what is new is written; partitions of vanished tasks stay."""
    manager = ChangelogPartitionManager(stream)
    manager.write({T0: 0, T1: 1})
    stream.catch_up()
    manager.write({T1: 1, T2: 2})
    stream.catch_up()
    assert manager.read() == {T0: 0, T1: 1, T2: 2}
    assert len(stream.log) == 3


def test_a_damaged_changelog_partition_stops(stream: InMemoryCoordinatorStream) -> None:
    """Without it a task could be given another task's state."""
    stream.write([CoordinatorStreamMessage(MessageType.SET_CHANGELOG, T0, {"Partition": "x"})])
    stream.catch_up()
    with pytest.raises(WireError, match="Partition 0"):
        ChangelogPartitionManager(stream).read()
