"""Failovers that are under way, as the coordinator stream remembers them."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.lifecycle import FailoverManager, RecordedFailover
from homeport.job_coordinator.model.ids import Host, ProcessorId

P0, P1 = ProcessorId("0"), ProcessorId("1")
S0, S1 = ProcessorId("0-0"), ProcessorId("0-1")


@pytest.mark.parametrize(
    "failover",
    [
        RecordedFailover(4, S1, Host("nm2"), "standby", (S0, S1), "LauncherSilent r0"),
        RecordedFailover(1, None, None, "other-host"),
    ],
)
def test_a_failover_is_read_back_until_it_ends(
    stream: InMemoryCoordinatorStream, failover: RecordedFailover
) -> None:
    """One record per active container: a later choice replaces the one before."""
    manager = FailoverManager(stream)
    assert manager.read() == {}
    first = RecordedFailover(4, S0, Host("nm1"), "standby", (S0,))
    stream.write([manager.message(P0, first), manager.message(P1, first)])
    stream.write([manager.message(P0, failover)])
    stream.catch_up()
    assert manager.read() == {P0: failover, P1: first}
    stream.write([manager.end(P0)])
    stream.catch_up()
    assert manager.read() == {P1: first}


@pytest.mark.parametrize(
    "values",
    [
        {"step": "standby"},
        {"epoch": "4"},
        {"epoch": "4", "step": "standby", "used": "{}"},
        {"epoch": "4", "step": "standby", "used": "[1]"},
    ],
)
def test_a_damaged_record_is_left_out(
    stream: InMemoryCoordinatorStream, values: dict[str, str]
) -> None:
    """Its processor is placed where its locality says."""
    stream.write([CoordinatorStreamMessage(MessageType.SET_FAILOVER, P0, values)])
    stream.catch_up()
    assert FailoverManager(stream).read() == {}
