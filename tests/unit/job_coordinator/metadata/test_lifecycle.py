"""What becomes of incarnations and of the job, as the coordinator stream remembers it."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.lifecycle import (
    JobEnd,
    JobEndManager,
    RetryManager,
    RetryState,
    StopManager,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1 = ProcessorId("0"), ProcessorId("1")


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def test_charged_failures_are_read_back(stream: InMemoryCoordinatorStream) -> None:
    """Count and time of the last failure; with no failure left, no record; all can be forgotten."""
    manager = RetryManager(stream)
    states = {P0: RetryState(2, 1000), P1: RetryState(1, 2000)}
    stream.write([manager.message(p, state) for p, state in states.items()])
    stream.catch_up()
    assert manager.read() == states
    stream.write([manager.message(P0, RetryState(0, 3000))])
    stream.catch_up()
    assert manager.read() == {P1: RetryState(1, 2000)}
    manager.forget()
    stream.catch_up()
    assert manager.read() == {}


def test_the_end_of_a_submission_is_its_own(stream: InMemoryCoordinatorStream) -> None:
    """The next submission of the job does not end because the last one did."""
    manager = JobEndManager(stream)
    end = JobEnd(3, "KILLED", "shut down on request")
    stream.write([manager.message(end)])
    stream.catch_up()
    assert manager.read(3) == end
    assert manager.read(4) is None


def test_stops_are_read_back(stream: InMemoryCoordinatorStream) -> None:
    """The last one of each processor, with its cause; a damaged record is no evidence."""
    manager = StopManager(stream)
    assert manager.read() == {}
    manager.write(Incarnation(P0, 4), "ordered")
    manager.write(Incarnation(P0, 5), "signalled")
    manager.write(Incarnation(P1, 9), "killed")
    stream.catch_up()
    stops = {Incarnation(P0, 5): "signalled", Incarnation(P1, 9): "killed"}
    assert manager.read() == stops
    stream.write([CoordinatorStreamMessage(MessageType.SET_STOPPED, P1, {"epoch": "x"})])
    stream.catch_up()
    assert manager.read() == {Incarnation(P0, 5): "signalled"}


@pytest.mark.parametrize("result", ["", "DONE", "killed", "x" * 5000])
def test_an_end_that_yarn_does_not_know_is_left_out(
    stream: InMemoryCoordinatorStream, result: str
) -> None:
    """A driver that went on with it could not report to YARN how the job ended."""
    stream.write([JobEndManager.message(JobEnd(3, result, "why"))])
    stream.catch_up()
    assert JobEndManager(stream).read(3) is None


def test_an_end_and_a_stop_may_have_no_words(stream: InMemoryCoordinatorStream) -> None:
    """They are an end and a stop all the same."""
    values = {"submission": "3", "result": "KILLED"}
    key = JobEndManager.message(JobEnd(3, "KILLED", "")).key
    stream.write([CoordinatorStreamMessage(MessageType.SET_JOB_END, key, values)])
    stream.write([CoordinatorStreamMessage(MessageType.SET_STOPPED, P1, {"epoch": "9"})])
    stream.catch_up()
    assert JobEndManager(stream).read(3) == JobEnd(3, "KILLED", "")
    assert StopManager(stream).read() == {Incarnation(P1, 9): ""}
