"""How many partitions each input had when the job first read it."""

from __future__ import annotations

import logging

import pytest

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.topics import InputPartitionManager
from homeport.job_coordinator.model.job_model import SystemStreamPartition

IN, OTHER = SystemStream("kafka", "my.in"), SystemStream("kafka", "other")


def _say(stream: InMemoryCoordinatorStream, counts: dict[SystemStream, int]) -> None:
    stream.write(list(InputPartitionManager(stream).messages(counts)))
    stream.catch_up()


def test_the_first_count_of_an_input_stays(stream: InMemoryCoordinatorStream) -> None:
    """However much it grows; an input that comes later has its own."""
    _say(stream, {IN: 4})
    _say(stream, {IN: 6, OTHER: 1})
    assert InputPartitionManager(stream).read() == {IN: 4, OTHER: 1}
    assert InputPartitionManager(stream).messages({IN: 8, OTHER: 2}) == ()


def test_an_input_that_is_read_no_more_is_forgotten(stream: InMemoryCoordinatorStream) -> None:
    """Where it is read again, it is new."""
    _say(stream, {IN: 4, OTHER: 2})
    _say(stream, {IN: 4})
    assert InputPartitionManager(stream).read() == {IN: 4}
    _say(stream, {IN: 4, OTHER: 3})
    assert InputPartitionManager(stream).read() == {IN: 4, OTHER: 3}


def test_a_recreated_input_with_fewer_partitions_begins_with_these(
    stream: InMemoryCoordinatorStream,
) -> None:
    """What it grows by is new from then on, also below the count that it had once."""
    _say(stream, {IN: 4})
    _say(stream, {IN: 2})
    _say(stream, {IN: 4})
    assert InputPartitionManager(stream).read() == {IN: 2}


def test_partitions_assigned_by_an_earlier_release_count(stream: InMemoryCoordinatorStream) -> None:
    """Its job has partitions, and no record of their number."""
    for partition in range(4):
        ssp = SystemStreamPartition(IN.system, IN.stream, partition)
        stream.write([wire.set_task_partition_assignment(ssp, [f"Partition {partition}"])])
    stream.catch_up()
    _say(stream, {IN: 6})
    assert InputPartitionManager(stream).read() == {IN: 4}


@pytest.mark.parametrize("values", [{}, {"partitions": "many"}, {"partitions": "0"}])
def test_a_record_that_cannot_be_read_says_nothing(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture, values: dict[str, str]
) -> None:
    """It is reported, and the input has no first count until the next JobModel."""
    kind = MessageType.SET_INPUT_PARTITIONS
    whole = CoordinatorStreamMessage(kind, "no-system", {"partitions": "3"})
    stream.write([CoordinatorStreamMessage(kind, str(IN), values), whole])
    stream.catch_up()
    with caplog.at_level(logging.WARNING):
        assert InputPartitionManager(stream).read() == {}
    assert "partitions" in caplog.text
