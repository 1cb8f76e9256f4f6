"""Snapshots of Skein's containers and the hosts as events; instructions in a few words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.protocol.events import (
    HostReport,
    HostsObserved,
    ResourceAllocated,
    Timer,
    TimerKind,
)
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
from homeport.appmaster.allocation.protocol.observation import (
    SkeinContainer,
    SkeinContainerState,
    Snapshot,
    events_between,
)
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import A, ended, inc

REQUESTED, RUNNING, ENDED = (
    SkeinContainerState.REQUESTED,
    SkeinContainerState.RUNNING,
    SkeinContainerState.ENDED,
)


def seen(**states: SkeinContainerState) -> Snapshot:
    """Requests as ``r1=RUNNING``, all on host a, which is live."""
    containers = tuple(
        SkeinContainer(f"a_{name}", RequestId(int(name.removeprefix("r"))), state, A)
        for name, state in states.items()
    )
    return Snapshot(containers, (A,))


def test_the_first_snapshot_gives_events_for_all_it_has() -> None:
    """Hosts first, then by request, whatever the order of the snapshot; a request is no news."""
    after = seen(r3=RUNNING, r2=ENDED, r1=REQUESTED)
    assert events_between(None, after) == (
        HostsObserved((A,)),
        ended(2),
        ResourceAllocated(RequestId(3)),
    )


def test_each_change_is_one_event() -> None:
    """Granted; ended at any stage; come and gone between two polls."""
    before = seen(r1=REQUESTED, r2=REQUESTED, r3=RUNNING)
    after = seen(r1=RUNNING, r2=ENDED, r3=ENDED, r4=ENDED, r5=RUNNING)
    assert events_between(before, after) == (
        ResourceAllocated(RequestId(1)),
        ended(2),
        ended(3),
        ended(4),
        ResourceAllocated(RequestId(5)),
    )


def test_a_container_that_vanished_has_ended() -> None:
    """Once; one that had ended before is no news."""
    assert events_between(seen(r1=RUNNING, r2=ENDED), seen()) == (ended(1),)


def test_containers_that_were_not_requested_are_left_alone() -> None:
    """The AM's own, say."""
    foreign = SkeinContainer("a_0", None, RUNNING)
    assert events_between(Snapshot(), Snapshot((foreign,))) == ()


def test_free_memory_of_a_host_is_an_event_only_when_it_decides() -> None:
    """Containers come and go all the time; whether one of ours fits changes now and then."""
    size = {"memory_mb": 512, "cores": 1}
    roomy = HostReport(A, "/r1", 4096, 8, 2048, 4)
    before = Snapshot((), (A,), (roomy,))

    def news(report: HostReport) -> bool:
        return bool(events_between(before, Snapshot((), (A,), (report,)), **size))

    assert not news(replace(roomy, free_memory_mb=512, free_cores=1))
    assert news(replace(roomy, free_memory_mb=511))
    assert news(replace(roomy, free_cores=0))
    assert news(replace(roomy, rack="/r2"))
    assert news(replace(roomy, memory_mb=8192))
    lost = replace(roomy, is_live=False, free_memory_mb=0, free_cores=0)
    after = Snapshot((), (), (lost,))
    assert events_between(before, after, **size) == (HostsObserved((), (lost,)),)


# --- instructions in a few words


R1 = ResourceId("r1")


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (RequestResource(RequestId(1), A), "RequestResource 1 on a"),
        (RequestResource(RequestId(2), None), "RequestResource 2 on any host"),
        (CancelRequest(RequestId(1)), "CancelRequest 1"),
        (PermitContainer(R1, inc("0", 3), 1, ()), "PermitContainer 0@3 in r1"),
        (StopContainer(R1, inc("0", 3)), "StopContainer 0@3 in r1"),
        (ReleaseResource(R1), "ReleaseResource r1"),
        (SetTimer(Timer(TimerKind.SILENCE, A), 5), "SetTimer silence:a"),
        (CancelTimer(Timer(TimerKind.SILENCE, A)), "CancelTimer silence:a"),
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
