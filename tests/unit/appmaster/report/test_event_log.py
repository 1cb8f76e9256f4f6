"""The last events that decided something: what is reported, and how many are kept."""

from __future__ import annotations

import json
from typing import Any

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import initial_state
from homeport.appmaster.allocation.protocol.events import ContainerStarted, Event
from homeport.appmaster.allocation.protocol.instructions import (
    WritePlacementResponse,
    WriteProcessorEpoch,
)
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.appmaster.report.event_log import MAX_SHOWN, EventLog
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementSource,
    PlacementStatus,
)
from tests.unit.appmaster.allocation.conftest import SETTINGS

_STATE = initial_state(SETTINGS)


def _event(processor: str = "0") -> Event:
    return ContainerStarted(Incarnation(ProcessorId(processor), 1))


def _decision(*reasons: Reason) -> Decision:
    return Decision(_STATE, (), (), reasons)


def _log_of(count: int, **limits: int) -> EventLog:
    """So many events that decided nothing."""
    log = EventLog(lambda: 0, **limits)
    for _ in range(count):
        log.add(_event(), _decision(), ())
    return log


def _stated(log: EventLog, asked: EventsAsked | None = None) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(log.to_json(asked or EventsAsked()))
    return body


def _numbers(log: EventLog, asked: EventsAsked) -> list[int]:
    return [event["number"] for event in _stated(log, asked)["events"]]


def test_an_event_has_its_cause_reasons_records_and_instructions() -> None:
    """In this order; ids and enums as people write them."""
    log = EventLog(lambda: 7)
    reason = Reason(ReasonKind.PERMITTED, ProcessorId("0"), Host("nm1"), detail="epoch 2")
    fence = (Incarnation(ProcessorId("1"), 3),)
    record = WriteProcessorEpoch(ProcessorId("0"), 2, 1, fence, cause="a cause")
    log.add(_event(), Decision(_STATE, (record,), (), (reason,)), ())
    assert _stated(log) == {
        "version": 1,
        "since_ms": 7,
        "first": 1,
        "last": 1,
        "more": False,
        "events": [
            {
                "number": 1,
                "at_ms": 7,
                "cause": "ContainerStarted 0@1",
                "reasons": [
                    {
                        "kind": "permitted",
                        "processor_id": "0",
                        "host": "nm1",
                        "other": None,
                        "sentence": "Processor 0 is permitted to start on nm1: epoch 2",
                    }
                ],
                "records": [
                    "WriteProcessorEpoch processor_id=0 epoch=2 model_version=1 fence=[1@3]"
                ],
                "instructions": [],
                "left_out": 0,
            }
        ],
    }


def test_an_empty_log_says_since_when() -> None:
    """Nothing decided yet is not the same as no log."""
    empty = {"version": 1, "since_ms": 5, "first": 0, "last": 0, "more": False, "events": []}
    assert _stated(EventLog(lambda: 5)) == empty


def test_a_reader_gets_the_newest_or_those_after_a_number() -> None:
    """A second read returns the oldest new events first, and says that there are more."""
    log = _log_of(5)
    assert _numbers(log, EventsAsked(limit=2)) == [4, 5]
    assert _numbers(log, EventsAsked(since=1, limit=2)) == [2, 3]
    assert _stated(log, EventsAsked(since=1, limit=2))["more"]
    assert _numbers(log, EventsAsked(since=5)) == []
    assert not _stated(log, EventsAsked(limit=5))["more"]


def test_the_events_of_one_processor() -> None:
    """Those whose reasons name it, in either part, and those of its own incarnations."""
    log = EventLog(lambda: 0)
    log.add(_event("0"), _decision(), ())
    log.add(_event("1"), _decision(), ())
    given = Reason(ReasonKind.GIVEN_AWAY, ProcessorId("1"), other=ProcessorId("0"))
    log.add(_event("2"), _decision(given), ())
    assert _numbers(log, EventsAsked(ProcessorId("0"))) == [1, 3]
    assert _numbers(log, EventsAsked(ProcessorId("1"))) == [2, 3]
    assert _numbers(log, EventsAsked(ProcessorId("x"))) == []


def test_the_oldest_go_when_there_are_too_many() -> None:
    """In number; what was dropped shows by the first number kept."""
    log = _log_of(5, max_events=3)
    stated = _stated(log)
    assert (stated["first"], stated["last"]) == (3, 5)
    assert _numbers(log, EventsAsked(since=0)) == [3, 4, 5]


def test_the_oldest_go_when_they_are_too_large() -> None:
    """In bytes, as served; one that is larger than all of them together is kept alone."""
    log = _log_of(100, max_bytes=2_000)
    assert 0 < len(log.to_json(EventsAsked(limit=1000))) < 2_200
    log.add(_event(), _decision(Reason(ReasonKind.CHARGED, detail="x" * 3_000)), ())
    assert _numbers(log, EventsAsked()) == [101]


def test_the_report_of_one_event_is_bounded() -> None:
    """A model of thousands of processors is one event: the rest of its reasons is counted."""
    log = EventLog(lambda: 0)
    many = (Reason(ReasonKind.ENTERED, ProcessorId(str(n))) for n in range(MAX_SHOWN + 7))
    log.add(_event(), _decision(*many), ())
    (event,) = _stated(log)["events"]
    assert (len(event["reasons"]), event["left_out"]) == (MAX_SHOWN, 7)


def test_an_answer_to_a_command_is_reported_in_short() -> None:
    """The processor, the target and the source."""
    log = EventLog(lambda: 7)
    request = PlacementRequest("u", "app", ProcessorId("0"), "nm2", None, 1)
    source = PlacementSource(3, Host("nm1"))
    answer = WritePlacementResponse(request, PlacementStatus.IN_PROGRESS, "0@3 stops", source)
    log.add(_event(), Decision(_STATE, (answer,), (), ()), ())
    assert _stated(log)["events"][0]["records"] == [
        (
            "WritePlacementResponse request=u: 0 to nm2 status=IN_PROGRESS message=0@3 stops "
            "source=3 on nm1"
        )
    ]
