"""Room decides which host is requested; a cluster too small for a container ends the job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.capacity import TOO_SMALL
from homeport.appmaster.allocation.job_state.room import Room, room_of
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import HostReport, HostsObserved, TimerFired
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    EndJob,
    RequestResource,
    SetTimer,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host, RequestId
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    MachineWith,
    asks,
    check_in,
    expired,
    live,
    model,
    releases,
)

SIZED = replace(SETTINGS, container_memory_mb=1024, container_cores=2)
WATCH = SetTimer(TOO_SMALL, SETTINGS.check_in_timeout_ms)


def report(
    host: str, memory_mb: int = 4096, cores: int = 8, *, free_mb: int | None = None
) -> HostReport:
    """A live host, by default empty."""
    free = memory_mb if free_mb is None else free_mb
    return HostReport(Host(host), None, memory_mb, cores, free, cores)


def lost(stated: HostReport) -> HostReport:
    """The same host, lost."""
    return replace(stated, is_live=False, free_memory_mb=0, free_cores=0)


def observed(*reports: HostReport) -> HostsObserved:
    """Those that are live, and what all of them have."""
    return HostsObserved(tuple(r.host for r in reports if r.is_live), reports)


@pytest.fixture
def sized(machine_with: MachineWith) -> Machine:
    """A machine whose containers need 1024 MB and 2 cores."""
    return machine_with(container_memory_mb=1024, container_cores=2)


def test_the_size_of_each_host_is_compared_with_one_container() -> None:
    """To the last MB and core; of lost hosts only their size counts."""
    a, b, c, d = (report(h) for h in "abcd")
    a = replace(a, free_memory_mb=1024, free_cores=2)
    b = replace(b, free_memory_mb=1023)
    c = replace(c, free_cores=1)
    small = report("s", 1023, 8)
    assert room_of((a, b, c, small, lost(d)), SIZED) == Room(
        frozenset({b.host, c.host, small.host}), frozenset({small.host}), largest=(4096, 8)
    )
    assert room_of((), SIZED) == Room()
    nothing_live = room_of((small, lost(d)), SIZED)
    assert (nothing_live.is_large_enough, nothing_live.could_be) == (False, True)
    few_cores = room_of((report("e", 4096, 1),), SIZED)
    assert not few_cores.could_be
    # YARN's own default rule for what fits on a host does not count cores.
    assert few_cores.small == frozenset()


def test_a_host_that_is_too_small_is_never_requested(sized: Machine) -> None:
    """Not even as home: its state was that of a smaller container."""
    sized.feed(model({"0": "a"}))
    decision = sized.decide(observed(report("a", 512), report("b")))
    assert decision.instructions == asks(1, "b")
    (asked,) = (r for r in decision.reasons if r.kind is ReasonKind.OTHER_HOST_ASKED)
    assert asked.detail == "a is too small for a container"
    assert sized.feed(expired(1)) == (CancelRequest(RequestId(1)), *asks(2, None))


def test_there_is_no_request_while_no_live_host_is_large_enough(sized: Machine) -> None:
    """What is outstanding is withdrawn, for any host too: the refusal would end Skein's AM."""
    large, small = report("a"), report("b", 512)
    sized.feed(model({"0": "a", "1": "b"}), observed(large, small))
    assert sized.feed(expired(1)) == (CancelRequest(RequestId(1)), *asks(2, None), *asks(3, None))
    decision = sized.decide(observed(lost(large), small))
    assert [type(i) for i in decision.instructions] == [
        CancelTimer,
        CancelRequest,
        CancelTimer,
        CancelRequest,
    ]
    stated = [r.kind for r in decision.reasons]
    assert stated.count(ReasonKind.CLUSTER_TOO_SMALL) == 1
    assert sized.phases == (P.QUEUED, P.QUEUED)
    assert sized.feed(observed(large, small)) == (*asks(4, None), *asks(5, None))


def test_a_launcher_of_a_withdrawn_request_must_exit(sized: Machine) -> None:
    """Granted when the large host was there, and being ended since; one of a living request is not.

    What an earlier driver asked for is of no request that this one has cancelled.
    """
    large, small = report("a"), report("b", 512)
    sized.feed(model({"0": None}), observed(large, small), observed(lost(large), small))
    assert sized.feed(check_in("r1", "a", request=1)) == releases("r1")
    assert sized.phase("0") is P.QUEUED
    sized.feed(check_in("r9", "a"))
    assert sized.phase("0") is P.STARTING


def test_a_cluster_that_can_never_hold_a_container_ends_the_job(sized: Machine) -> None:
    """Reference 4.5: FAILED, in one line, when it has been so for a while."""
    assert sized.feed(model({"0": "a"}), observed(report("a", 512), lost(report("b", 900)))) == (
        WATCH,
    )
    decision = sized.decide(TimerFired(TOO_SMALL))
    end = decision.instructions[-1]
    assert isinstance(end, EndJob)
    assert end.result.value == "FAILED"
    assert end.diagnostics == (
        "no host can hold a container: one needs 1024 MB and 2 cores "
        "(cluster-manager.container.memory.mb and .cpu.cores), and no host of the cluster has "
        "more than 900 MB or 8 cores"
    )


def test_the_time_to_wait_runs_on_while_nothing_changes(sized: Machine) -> None:
    """The next poll finds it as it was."""
    sized.feed(model({"0": "a"}), observed(report("a", 512)))
    assert sized.feed(observed(report("a", 512), report("b", 600))) == ()


def test_a_large_host_that_comes_or_is_only_lost_saves_the_job(sized: Machine) -> None:
    """Nodes come one by one after a restart of the ResourceManager; a lost one may come back."""
    small, large = report("a", 512), report("b")
    sized.feed(model({"0": None}))
    assert sized.feed(observed(small)) == (WATCH,)
    assert sized.feed(observed(small, lost(large))) == (CancelTimer(TOO_SMALL),)
    assert sized.feed(observed(small)) == (WATCH,)
    assert sized.feed(observed(small, large)) == (*asks(1, "b"), CancelTimer(TOO_SMALL))
    sized.stale(TimerFired(TOO_SMALL))


def test_a_running_container_needs_no_room(sized: Machine) -> None:
    """The job goes on as it is, whatever host sizes the ResourceManager reports."""
    sized.feed(model({"0": "a"}), observed(report("a")))
    sized.run("0", "r1", "a", request=1)
    assert sized.feed(observed(report("a", 512))) == ()
    assert sized.state.phase is JobPhase.ACTIVE


def test_unknown_sizes_count_as_room(machine: Machine) -> None:
    """Hosts without reports, and a size that is not known."""
    assert machine.feed(model({"0": None}), live("a")) == asks(1, "a")
    requests = machine.feed(observed(report("a", 0, 0)))
    assert not [i for i in requests if isinstance(i, RequestResource)]
    assert machine.phase("0") is P.REQUESTED


def test_without_reports_the_known_sizes_stay(sized: Machine) -> None:
    """As when a loss of hosts is tried out: the others have no more room for that."""
    sized.feed(model({"0": "a"}), observed(report("a", free_mb=0), report("b", free_mb=0)))
    assert sized.state.room.full == {"a", "b"}
    sized.feed(live("b"))
    assert sized.state.room.full == {"a", "b"}
