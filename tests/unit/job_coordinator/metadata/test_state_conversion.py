"""The records of a conversion of a store's values."""

from __future__ import annotations

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.state_conversion import Conversion, ConversionManager


def test_many_partitions_have_their_ends_in_several_records(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A damaged one stops: values would be converted twice."""
    manager = ConversionManager(stream)
    assert manager.read() is None
    ends = {number: number * 2**40 for number in range(300)}
    manager.write(Conversion("kafka.log", "avro 0011", ends))
    assert [message.key for message in stream.catch_up()][1:] == [
        "converted-behind 0",
        "converted-behind 256",
    ]
    found = manager.read()
    assert found is not None
    assert found.ends == ends
    kind = MessageType.SET_STATE_FACT
    stream.write([CoordinatorStreamMessage(kind, "converted-behind 0", {"0": "x"})])
    stream.catch_up()
    with pytest.raises(WireError, match="are no partition and its end"):
        manager.read()
    other = CoordinatorStreamMessage(kind, "converting kafka.other", {"msg": "avro 1"})
    stream.write([wire.tombstone(kind, "converted-behind 0"), other])
    stream.catch_up()
    with pytest.raises(WireError, match="or not alone"):
        manager.read()
