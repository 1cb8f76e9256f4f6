"""Instructions in a few words."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import silence_timer
from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    EndJob,
    Instruction,
    JobResult,
    PermitContainer,
    ReleaseResource,
    RequestResource,
    SetTimer,
    StopContainer,
    SuspectOurselves,
    brief,
)
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import inc

A, R1 = Host("a"), ResourceId("r1")


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (RequestResource(RequestId(1), A), "RequestResource 1 on a"),
        (RequestResource(RequestId(2), None), "RequestResource 2 on any host"),
        (CancelRequest(RequestId(1)), "CancelRequest 1"),
        (PermitContainer(R1, inc("0", 3), 1, ()), "PermitContainer 0@3 in r1"),
        (StopContainer(R1, inc("0", 3)), "StopContainer 0@3 in r1"),
        (ReleaseResource(R1), "ReleaseResource r1"),
        (SetTimer(silence_timer(A), 5), "SetTimer silence:a"),
        (CancelTimer(silence_timer(A)), "CancelTimer silence:a"),
        (SuspectOurselves((A, Host("b"))), "SuspectOurselves a, b silent at once"),
        (EndJob(JobResult.FAILED, "why"), "EndJob FAILED"),
    ],
)
def test_each_instruction_prints_in_a_few_words(instruction: Instruction, words: str) -> None:
    """Its name and what it is about."""
    assert brief(instruction) == words


def test_a_host_may_be_too_small_even_when_it_is_empty() -> None:
    """That is another matter than room that others take."""
    report = HostReport(A, None, 4096, 4, 1024, 4)
    assert (report.is_too_small(4096), report.is_too_small(4097)) == (False, True)
    assert (report.has_room(1024, 1), report.has_room(2048, 1)) == (True, False)
