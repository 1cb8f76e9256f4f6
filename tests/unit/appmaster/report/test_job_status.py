"""The contents of the status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec import to_builtins
from statuses import body_of_status

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    Failover,
    initial_state,
)
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    FailoverStep,
    HostReport,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
    LauncherSilent,
    ResourceAllocated,
    ResourceEnded,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import EndJob, JobResult
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.appmaster.report.job_status import JobIdentity, JobStatus
from homeport.job_coordinator.http.messages import Started, Stopped
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind, StopCause
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import ShownChange, SpareReport
from tests.unit.appmaster.allocation.conftest import SETTINGS

P0, NM1, R1 = ProcessorId("0"), Host("nm1"), ResourceId("container_1_1_01_000002")
FIRST = Incarnation(P0, 1)
IDENTITY = JobIdentity(
    "j", "1", Rank(3, "application_1_0001", 2), 10, "http://rm/proxy/a/", "", "nm7", "/p", "0.2.0"
)


class World:
    """A status with the allocator and the launchers that it shows."""

    def __init__(self) -> None:
        self.state: AllocatorState = initial_state(SETTINGS)
        self.launchers = LauncherTable(10_000, 0)
        self.now_ms = 1000
        foreseen = step(self.state, JobModelPublished(7, {P0: NM1}, {P0: 4})).state
        self.status = JobStatus(IDENTITY, lambda: self.now_ms, foreseen)

    def take(self, *events: Event) -> None:
        """The allocator takes these; each a second after the other."""
        for event in events:
            self.now_ms += 1000
            decision = step(self.state, event)
            self.state = decision.state
            self.status.entered(decision, self.launchers)

    def body(self, fault: str | None = None) -> dict[str, Any]:
        """The status as JSON; ``fault``: of the coordinator stream."""
        return body_of_status(self.status.shown(self.state, self.launchers, fault))

    def check_in(
        self, running: Incarnation | None, request: int = 1, spare: SpareReport | None = None
    ) -> None:
        """The launcher on nm1 checks in."""
        self.launchers.heard(LauncherEntry(R1, RequestId(request), NM1, 42, running, 0, spare))
        self.take(LauncherCheckedIn(R1, NM1, running, RequestId(request)))


@pytest.fixture
def world() -> World:
    """One processor that runs on nm1, its store restored."""
    world = World()
    published = JobModelPublished(7, {P0: NM1})
    world.take(HostsObserved((NM1,)), published, ResourceAllocated(RequestId(1)))
    world.check_in(None)
    world.check_in(FIRST)
    restored = {"counts": {"Partition 0": Restored(RestoreKind.TAIL, 3, 5, 3)}}
    world.status.started(Started(FIRST, restored, {"restore": 0.5}))
    world.take(ContainerStarted(FIRST))
    return world


def test_stores_that_were_not_used_are_counted_by_kind(world: World) -> None:
    """Each once, though a container may report its start again."""
    refused = Restored(RestoreKind.FULL, 0, 5, 6, "stale", "stale")
    ahead = Restored(RestoreKind.NONE, None, None, 0, "ahead", "ahead")
    stores = {"counts": {"Partition 0": refused, "Partition 1": ahead}, "s": {"t": refused}}
    for _ in range(2):
        world.status.started(Started(FIRST, stores))
    assert world.body()["stores_refused"] == {"ahead": 1, "stale": 2}
    sums = Restored(RestoreKind.FULL, None, None, 60, "stale", "stale", tasks=10)
    world.status.started(Started(Incarnation(P0, 2), {"counts": {"10 tasks, full, stale": sums}}))
    assert world.body()["stores_refused"] == {"ahead": 1, "stale": 12}


def test_a_running_job_is_shown_in_full(world: World) -> None:
    """Job, rank, container with host, phase, its time, pid, resource and what was restored."""
    world.status.coordinator_url = "http://am/"
    world.status.begun(13_200, (Incarnation(ProcessorId("0"), 4),))
    body = world.body()
    assert body["job"] == {
        "name": "j",
        "id": "1",
        "application": "application_1_0001",
        "attempt": 2,
        "host": "nm7",
        "attempts_max": 10,
        "rank": [3, "application_1_0001", 2],
        "state": "running",
        "health": "deployed",
        "model_version": 7,
        "held_back": {"ms": 13_200, "unheard": ["0@4"]},
        "coordinator": None,
        "leader": None,
        "python": "/p",
        "version": "0.2.0",
    }
    assert body["coordinator_url"] == "http://am/"
    assert body["hosts"] == ["nm1"]
    (container,) = body["containers"]
    assert container["phase"] == "running"
    assert container["since_ms"] == world.now_ms
    stated = ("processor_id", "host", "epoch", "pid", "resource", "role")
    assert tuple(container[name] for name in stated) == ("0", "nm1", 1, 42, R1, "active")
    assert container["restored"]["counts"]["Partition 0"]["records"] == 3
    assert container["seconds"] == {"restore": 0.5}


def test_a_driver_that_has_just_begun_shows_every_container() -> None:
    """Before the allocator has the JobModel too: a client then finds what is known, not nothing."""
    world = World()
    world.now_ms += 5000
    body = world.body()
    stated = ("state", "health", "model_version", "held_back")
    assert [body["job"][name] for name in stated] == ["new", "recovering", 7, None]
    (container,) = body["containers"]
    shown = ("processor_id", "phase", "since_ms", "epoch", "host", "last_host", "pid")
    assert [container[name] for name in shown] == ["0", "queued", 1000, 4, None, NM1, None]


def test_failures_are_shown_and_ordered_stops_are_not(world: World) -> None:
    """A stop that was ordered is no failure; another names its log and has its last lines."""
    world.status.stopped(Stopped(FIRST, StopCause.ORDERED, 143, ("bye",)))
    world.status.stopped(Stopped(FIRST, StopCause.FAILED, 1, ("Traceback", "KeyError: 1")))
    world.status.failed("CancelRequest 1: no answer")
    body = world.body("Kafka is away")
    assert [f["cause"] for f in body["failures"]] == ["failed", "CancelRequest 1: no answer"]
    assert body["coordinator_stream"] == "Kafka is away"
    assert body["failures"][0] == {
        "processor_id": "0",
        "epoch": 1,
        "cause": "failed",
        "exit_code": 1,
        "host": "nm1",
        "at_ms": world.now_ms,
        "log": f"container-0-1.log of {R1}",
        "last_lines": ["Traceback", "KeyError: 1"],
    }


def test_yarns_page_of_a_failed_job_has_no_log_lines(world: World) -> None:
    """YARN's page is open to everybody: it has the cause, and where the log of the last one is."""
    cause = "processor 0 failed 1 times"
    assert world.status.diagnostics(EndJob(JobResult.FAILED, cause)) == cause
    world.status.stopped(Stopped(FIRST, StopCause.FAILED, 1, ("password is hunter2",)))
    world.status.failed("CancelRequest 1: no answer")
    assert world.status.diagnostics(EndJob(JobResult.FAILED, cause)) == (
        f"{cause}; the log of 0@1 is container-0-1.log of {R1} on nm1"
    )
    assert world.status.diagnostics(EndJob(JobResult.KILLED, "on request")) == "on request"


def test_a_job_without_containers_running_is_starting() -> None:
    """New before the JobModel, starting until all containers run."""
    world = World()
    assert world.body()["job"]["state"] == "new"
    world.take(HostsObserved((NM1,)), JobModelPublished(7, {P0: None}))
    assert world.body()["job"]["state"] == "starting"


def test_a_failure_that_no_launcher_reported_is_shown_once(world: World) -> None:
    """YARN's report of its end is the cause; what a launcher reported is not shown twice."""
    world.status.stopped(Stopped(FIRST, StopCause.SIGNALLED, 143, ("bye",)))
    world.take(ContainerStopped(FIRST, StopCause.SIGNALLED, 143))
    world.take(ResourceEnded(RequestId(1), story="killed for its memory", is_own_fault=True))
    world.take(HostsObserved((NM1,)))
    body = world.body()
    story = "0@1 on nm1: its YARN container ended: killed for its memory"
    assert [(f["cause"], f["exit_code"]) for f in body["failures"]] == [
        ("signalled", 143),
        (story, None),
    ]
    assert body["containers"][0]["last_failure"] == story
    end = EndJob(JobResult.FAILED, "it failed")
    assert world.status.diagnostics(end) == (
        f"it failed; the log of 0@1 is container-0-1.log of {R1} on nm1"
    )


def test_a_failure_that_is_reported_again_stands_once(world: World) -> None:
    """A launcher repeats its report until the driver accepts it, and later on request.

    Other failures keep their places.
    """
    second = Stopped(Incarnation(P0, 2), StopCause.FAILED, 1, ("second",))
    world.status.failed("something else")
    for _ in range(30):
        world.status.stopped(Stopped(FIRST, StopCause.FAILED, 1, ("first",), age_ms=5))
    world.status.stopped(second)
    world.status.stopped(Stopped(FIRST, StopCause.FAILED, 1, ("first",), age_ms=9))
    failures = world.body()["failures"]
    stated = [(f["cause"], f.get("last_lines")) for f in failures]
    assert stated == [("something else", None), ("failed", ["first"]), ("failed", ["second"])]


def test_restarts_are_counted_from_the_first_epoch_seen(world: World) -> None:
    """A container that came back twice has two, whatever its epoch was before."""
    assert world.body()["containers"][0]["restarts"] == 0
    for epoch in (1, 2):
        world.take(ContainerStopped(Incarnation(P0, epoch), StopCause.FAILED, 1))
        world.check_in(None)
    (container,) = world.body()["containers"]
    assert (container["epoch"], container["restarts"]) == (3, 2)


def test_silent_hosts_are_shown(world: World) -> None:
    """Which are not asked, and whether the fault may be ours."""
    world.take(HostsObserved((NM1, Host("nm2"))), LauncherSilent(R1))
    body = world.body()
    assert (body["excluded_hosts"], body["suspects_itself"]) == (["nm1"], False)
    assert "fell silent" in body["failures"][0]["cause"]


def test_a_change_under_way_shows_which_stop_and_which_wait_for_others(world: World) -> None:
    """Until the last one runs; a container that is not affected goes on under its version."""

    def change() -> ShownChange | None:
        return world.status.shown(world.state, world.launchers, None).change

    assert change() is None
    p1 = ProcessorId("1")
    world.take(
        JobModelPublished(
            8,
            {P0: NM1, p1: NM1},
            epochs={P0: 1},
            floors={P0: 2},
            unfenced={P0: (FIRST,), p1: (FIRST,)},
            gainers=frozenset({p1}),
        )
    )
    assert change() == ShownChange(to_version=8, must_stop=("0@1",), waits={p1: ("0@1",)})
    (old, new) = world.body()["containers"]
    assert (old["phase"], old["model_version"], new["model_version"]) == ("running", 7, None)
    world.take(ContainerStopped(FIRST, StopCause.ORDERED, 143))
    assert change() is None
    world.check_in(None)
    old = world.body()["containers"][0]
    assert (old["epoch"], old["restarts"]) == (3, 1)


def test_a_containers_report_is_shown_while_its_incarnation_runs(world: World) -> None:
    """As its last check-in had it; another incarnation has reported nothing yet."""

    def shown() -> tuple[Any, Any]:
        (container,) = world.status.shown(world.state, world.launchers, None).containers
        return container.report, container.lag_seconds

    assert shown() == (None, None)
    report = ContainerReport(lag=3, lag_seconds=1.5)
    world.status.reported(FIRST, report)
    assert shown() == (report, 1.5)
    assert world.status.report_of(FIRST) == report
    assert world.status.report_of(Incarnation(ProcessorId("nobody"), 1)) is None
    world.status.reported(Incarnation(P0, FIRST.epoch + 1), report)
    assert shown() == (None, None)
    world.status.reported(FIRST, report)
    world.status.reported(FIRST, None)
    assert shown() == (None, None)


def test_a_failover_under_way_says_how_far_it_has_come(world: World) -> None:
    """Whose place the active takes, where, and whose stop it waits for; roles, lags and health."""
    standby = ProcessorId("0-0")
    failover = Failover(FailoverStep.STANDBY, standby, NM1, (standby,))
    active = ContainerState(P0, phase=ContainerPhase.FAILING_OVER, epoch=1, failover=failover)
    stopping = ContainerState(standby, P0, ContainerPhase.STOPPING, epoch=3, lag=7)

    def stated(*containers: ContainerState) -> Mapping[str, Any]:
        state = replace(world.state, containers=Containers(containers))
        return body_of_status(world.status.shown(state, world.launchers, None))

    body = stated(active, stopping)
    under_way = {"active": "0", "step": "standby", "standby": "0-0", "host": "nm1"}
    way = {"phase": "failing-over", "used": ["0-0"], "waits_for": "0-0@3"}
    assert body["failovers"] == [{**under_way, **way}]
    assert body["job"]["health"] == "recovering"
    assert body["change"] is None
    told_of_each = [(c["role"], c["replica_of"], c["lag"]) for c in body["containers"]]
    assert told_of_each == [("active", None, None), ("standby", "0", 7)]
    (shown,) = stated(active, replace(stopping, phase=ContainerPhase.QUEUED))["failovers"]
    assert shown["waits_for"] is None
    other = replace(active, failover=Failover(FailoverStep.OTHER_HOST))
    (shown,) = stated(other)["failovers"]
    assert (shown["standby"], shown["waits_for"]) == (None, None)


def test_a_waiting_container_is_shown_with_its_waiting_time() -> None:
    """Through all requests and hosts that it tries; what runs has waited no longer."""
    world = World()
    full = HostReport(NM1, None, 4096, 8, 0, 8)
    settings = replace(SETTINGS, container_memory_mb=1024, container_cores=1)
    world.state = initial_state(settings)
    assert world.status.waiting(world.state, (full,)) is None
    world.take(JobModelPublished(7, {P0: NM1}), HostsObserved((NM1,), (full,)))
    since_ms = world.now_ms - 1000
    world.take(*(TimerFired(Timer(TimerKind.REQUEST_EXPIRY, RequestId(n))) for n in (1, 2, 3)))
    shortage = world.status.waiting(world.state, (full,))
    assert shortage is not None
    body = to_builtins(shortage)
    assert body["processors"][0]["since_ms"] == since_ms
    assert body["hosts"] == {"nm1": "has 0 of 4096 MB and 8 of 8 cores free"}
    assert body["says"].startswith(
        "waiting for 1 container of 1024 MB and 1 core: processor 0; nm1"
    )
    world.check_in(None, request=4)
    world.check_in(FIRST, request=4)
    world.take(ContainerStarted(FIRST))
    assert world.status.waiting(world.state, (full,)) is None
    world.take(LauncherSilent(R1))
    shortage = world.status.waiting(world.state, ())
    assert shortage is not None
    body = to_builtins(shortage)
    assert body["processors"][0]["since_ms"] == world.now_ms
