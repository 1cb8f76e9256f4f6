"""What becomes of incarnations and of the job, as the coordinator stream remembers it."""

from __future__ import annotations

import pytest
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.lifecycle import (
    FailoverManager,
    JobEnd,
    JobEndManager,
    RecordedFailover,
    RetryManager,
    RetryState,
    StopManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1 = ProcessorId("0"), ProcessorId("1")


def test_charged_failures_are_read_back(stream: InMemoryCoordinatorStream) -> None:
    """Count and time of the last failure; with no failure left, no record; all can be forgotten."""
    manager = RetryManager(stream)
    states = {P0: RetryState(2, 1000), P1: RetryState(1, 2000)}
    put(stream, *[manager.message(p, state) for p, state in states.items()])
    assert manager.read() == states
    put(stream, manager.message(P0, RetryState(0, 3000)))
    assert manager.read() == {P1: RetryState(1, 2000)}
    manager.forget()
    stream.catch_up()
    assert manager.read() == {}


def test_the_last_failure_may_have_a_reason(stream: InMemoryCoordinatorStream) -> None:
    """It names its incarnation; a record of an older version, or an odd one, has none."""
    manager = RetryManager(stream)
    known = {P0: RetryState(1, 1000, 4, "division by zero"), P1: RetryState(2, 2000)}
    put(stream, *[manager.message(p, state) for p, state in known.items()])
    assert manager.read() == known
    assert manager.reasons() == {Incarnation(P0, 4): "division by zero"}
    odd = {"count": "1", "since": "1", "epoch": "x", "reason": "division by zero"}
    put(stream, CoordinatorStreamMessage(MessageType.SET_RETRY_STATE, P0, odd))
    assert manager.reasons() == {}


def test_a_reason_outlasts_the_charge(stream: InMemoryCoordinatorStream) -> None:
    """An older version reads such a record as no charge: its time is long past."""
    manager = RetryManager(stream)
    put(stream, manager.message(P0, RetryState(0, 3000, 4, "division by zero")))
    put(stream, manager.message(P1, RetryState(2, 3000, 5, "no table")))
    assert manager.read()[P0] == RetryState(0, 0, 4, "division by zero")
    put(stream, *manager.messages_to_forget({P1}))
    assert manager.read() == {P1: RetryState(0, 0, 5, "no table")}
    manager.forget()
    stream.catch_up()
    assert manager.reasons() == {}


def test_a_reason_is_short_and_has_no_secret_whoever_wrote_it(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Others may write into the topic."""
    reason = "password=hunter2\n" + "x" * 400
    odd = {"count": "1", "since": "1", "epoch": "4", "reason": reason}
    put(stream, CoordinatorStreamMessage(MessageType.SET_RETRY_STATE, P0, odd))
    shown = ("password=******** " + "x" * 400)[:300]
    assert RetryManager(stream).reasons() == {Incarnation(P0, 4): shown}


def test_the_end_of_a_submission_is_its_own(stream: InMemoryCoordinatorStream) -> None:
    """The next submission of the job does not end because the last one did."""
    manager = JobEndManager(stream)
    end = JobEnd(3, "KILLED", "shut down on request")
    put(stream, manager.message(end))
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
    put(stream, CoordinatorStreamMessage(MessageType.SET_STOPPED, P1, {"epoch": "x"}))
    assert manager.read() == {Incarnation(P0, 5): "signalled"}


@pytest.mark.parametrize("result", ["", "DONE", "killed", "x" * 5000])
def test_an_end_that_yarn_does_not_know_is_left_out(
    stream: InMemoryCoordinatorStream, result: str
) -> None:
    """A driver that went on with it could not report to YARN how the job ended."""
    put(stream, JobEndManager.message(JobEnd(3, result, "why")))
    assert JobEndManager(stream).read(3) is None


def test_an_end_and_a_stop_may_have_no_words(stream: InMemoryCoordinatorStream) -> None:
    """They are an end and a stop all the same."""
    values = {"submission": "3", "result": "KILLED"}
    key = JobEndManager.message(JobEnd(3, "KILLED", "")).key
    put(
        stream,
        CoordinatorStreamMessage(MessageType.SET_JOB_END, key, values),
        CoordinatorStreamMessage(MessageType.SET_STOPPED, P1, {"epoch": "9"}),
    )
    assert JobEndManager(stream).read(3) == JobEnd(3, "KILLED", "")
    assert StopManager(stream).read() == {Incarnation(P1, 9): ""}


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
    put(
        stream,
        manager.message(P0, first),
        manager.message(P1, first),
        manager.message(P0, failover),
    )
    assert manager.read() == {P0: failover, P1: first}
    put(stream, manager.end(P0))
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
def test_a_damaged_failover_is_left_out(
    stream: InMemoryCoordinatorStream, values: dict[str, str]
) -> None:
    """Its processor is placed where its locality says."""
    put(stream, CoordinatorStreamMessage(MessageType.SET_FAILOVER, P0, values))
    assert FailoverManager(stream).read() == {}


def test_a_failover_without_cause_or_used_standbys_is_one(
    stream: InMemoryCoordinatorStream,
) -> None:
    """It has no cause that anybody could name, and has used none yet."""
    values = {"epoch": "4", "step": "standby"}
    put(stream, CoordinatorStreamMessage(MessageType.SET_FAILOVER, P0, values))
    assert FailoverManager(stream).read() == {P0: RecordedFailover(4, None, None, "standby")}
