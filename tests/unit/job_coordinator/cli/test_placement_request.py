"""``homeport move`` and ``restart``: what is refused before it is written, and how is waited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.config.errors import ConfigError, HomeportError, UnavailableError
from homeport.job_coordinator.cli.placement_request import (
    answers,
    check,
    destination_of,
    outcome,
)
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)

STATUS: dict[str, Any] = {
    "containers": [{"processor_id": "0"}, {"processor_id": "0-0"}],
    "hosts": ["nm1", "nm2", "nm3"],
    "excluded_hosts": ["nm3"],
}
REQUEST = PlacementRequest("u", "application_1_2", ProcessorId("0"), "nm2", None, 1)
GOES_ON = PlacementResponse(REQUEST, PlacementStatus.IN_PROGRESS, "one moment", 1)
DONE = PlacementResponse(replace(REQUEST, timestamp_ms=2), PlacementStatus.SUCCEEDED, "there", 2)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("any", ANY_HOST), ("last-seen", LAST_SEEN), ("Any", ANY_HOST), (" NM2 ", "nm2")],
)
def test_hosts_and_words(typed: str, meant: str) -> None:
    """Two words stand for hosts; names are in the one spelling."""
    assert destination_of(typed) == meant


@pytest.mark.parametrize("to", ["nm1", ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN])
def test_a_known_host_may_be_requested(to: str) -> None:
    """A live host and the words of the protocol; any host, while none is known."""
    check(STATUS, "0-0", to)
    check({**STATUS, "hosts": []}, "0", "nm9")


@pytest.mark.parametrize(
    ("processor", "to", "line"),
    [
        ("9", "nm1", "PROCESSOR = '9': the job has none of that id; there are 0, 0-0"),
        ("0", "nm9", "HOST = 'nm9': it is no live host of the cluster; there are nm1, nm2, nm3"),
        ("0", "nm3", "HOST = 'nm3': it has fallen silent and is not asked; try another"),
    ],
)
def test_an_unknown_processor_or_host_is_refused_before_a_record_is_written(
    processor: str, to: str, line: str
) -> None:
    """One line with what there is."""
    with pytest.raises(ConfigError) as refused:
        check(STATUS, processor, to)
    assert str(refused.value).startswith(line)


def test_an_error_names_only_some_of_many_processors() -> None:
    """It stays one line."""
    many = {**STATUS, "containers": [{"processor_id": str(n)} for n in range(1000)]}
    with pytest.raises(ConfigError, match=r"18, 19 and 980 more$"):
        check(many, "x", ANY_HOST)


def test_every_answer_is_printed_once_up_to_the_last() -> None:
    """Others' answers are not."""
    stream = InMemoryCoordinatorStream()
    other = replace(DONE, request=replace(REQUEST, uuid="other"))
    coming = [[other], [GOES_ON], [], [DONE]]

    def patience() -> None:
        stream.write(map(PlacementManager.response_message, coming.pop(0)))

    assert list(answers(stream, "u", patience)) == [GOES_ON, DONE]


def test_waiting_ends_when_patience_does() -> None:
    """As when the AM does not answer for long."""

    def patience() -> None:
        raise UnavailableError("no server there")

    with pytest.raises(UnavailableError):
        list(answers(InMemoryCoordinatorStream(), "u", patience))


def test_a_good_answer_is_a_line_and_every_other_an_error() -> None:
    """Which ends the program with 1."""
    assert outcome(DONE) == "SUCCEEDED: there"
    for status in (PlacementStatus.FAILED, PlacementStatus.BAD_REQUEST):
        with pytest.raises(HomeportError, match=f"^{status}: there$"):
            outcome(replace(DONE, status=status))
