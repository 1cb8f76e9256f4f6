"""What an upgrade sees: check-ins and the allocator's state, and which ends are failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.job_state.draft import Changes
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
)
from homeport.appmaster.allocation.protocol.events import (
    ContainerStopped,
    Event,
    LagsReported,
    LauncherSilent,
    PlacementRequested,
    ResourceEnded,
    ShutdownRequested,
)
from homeport.appmaster.allocation.retries import CHARGED_CAUSES
from homeport.appmaster.upgrade.sources import Evidence, failure_of, has_launcher, next_package
from homeport.job_coordinator.http.messages import CheckIn
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import FORCE_RESTART_LAST_SEEN, PlacementRequest
from homeport.job_coordinator.status.container_report import ContainerReport
from tests.unit.appmaster.allocation.conftest import SETTINGS, Machine, deployed, inc

NEW = "ab" * 32
P0 = ProcessorId("0")
FIRST = inc("0", 1)
LAG = ContainerReport(input_lag=7)


def heard(
    running: Incarnation | None = FIRST,
    package: str | None = None,
    report: ContainerReport | None = LAG,
    quiet_ms: int | None = None,
    fault: str | None = "no space left",
) -> CheckIn:
    """A check-in."""
    nm1, r0 = Host("a"), ResourceId("r0")
    return CheckIn(r0, "h", 1, nm1, 42, running, report, None, package, NEW, fault, quiet_ms)


def running() -> AllocatorState:
    """Processor 0 runs on a."""
    return Machine().at_home({"0": "a"}, "b").state


def test_what_a_launcher_says_of_a_live_incarnation_is_seen() -> None:
    """Its package, what is ready, its lag, and for how long it was seen to run."""
    evidence, state = Evidence(), running()
    (unheard,) = evidence.seen(state, "", {}, 1).containers
    assert (unheard.is_running, unheard.is_known, unheard.watched_ms) == (True, False, 0)
    evidence.heard(heard(), 1)
    evidence.seen(state, "", {}, 10)
    evidence.heard(heard(report=None), 11)
    seen = evidence.seen(state, "", {FIRST: "not now"}, 15)
    (container,) = seen.containers
    assert seen.step_ms == 0
    assert (container.is_known, container.package, container.prepared) == (True, None, NEW)
    assert (container.lag, container.watched_ms, container.refusal) == (None, 5, "not now")
    assert (container.unprepared, container.is_down) == ("no space left", False)
    assert (seen.retry_count, seen.hindrance, seen.obstacle) == (2, "", "")
    assert evidence.ran(FIRST) == (None,)
    assert evidence.ran(inc("0", 2)) is None


def test_another_package_of_the_same_incarnation_is_watched_anew() -> None:
    """As its first check-in may come from a launcher of an earlier release."""
    evidence, state = Evidence(), running()
    evidence.heard(heard(), 1)
    evidence.seen(state, "", {}, 10)
    evidence.heard(heard(None), 11)
    evidence.heard(heard(package=NEW), 12)
    (container,) = evidence.seen(state, "", {}, 15).containers
    assert (container.package, container.watched_ms, container.lag) == (NEW, 0, 7)


def test_one_that_has_finished_is_not_seen() -> None:
    """It gets no permit any more."""
    finished = step(running(), ContainerStopped(FIRST, StopCause.FINISHED, 0)).state
    assert Evidence().seen(finished, "", {}, 1).containers == ()


def test_a_standby_for_one_move_is_not_seen() -> None:
    """It is gone before the upgrade comes to it."""
    state = running()
    (container,) = state.containers
    temporary = replace(container, processor_id=ProcessorId("0-t"), is_temporary=True)
    both = replace(state, containers=Containers([container, temporary]))
    assert [c.processor_id for c in Evidence().seen(both, "", {}, 1).containers] == [P0]


RESTART = PlacementRequest("u", "a", P0, FORCE_RESTART_LAST_SEEN, None, 1)


@pytest.mark.parametrize(
    ("event", "hindrance"),
    [
        (ShutdownRequested(), "the job begins or ends"),
        (PlacementRequested(RESTART), "a command for processor 0 is under way"),
    ],
)
def test_what_else_goes_on_is_in_the_way(event: Event, hindrance: str) -> None:
    """What the driver knows comes first."""
    state = step(running(), event).state
    assert Evidence().seen(state, "", {}, 1).hindrance == hindrance
    assert Evidence().seen(state, "other", {}, 1).hindrance == "other"


@pytest.mark.parametrize("phase", [JobPhase.NEW, JobPhase.ACTIVE])
def test_a_job_that_begins_or_ends_is_in_the_way(phase: JobPhase) -> None:
    """Either alone: it has no JobModel yet, or what it will end with is decided."""
    ending = step(running(), ShutdownRequested()).state.ending
    state = replace(running(), phase=phase, ending=ending if phase is JobPhase.ACTIVE else None)
    assert Evidence().seen(state, "", {}, 1).hindrance == "the job begins or ends"


def test_a_command_for_a_processor_that_is_not_there_is_under_way() -> None:
    """Until the allocator has refused it."""
    assert has_launcher(running(), ProcessorId("9"))


def test_a_report_grows_old() -> None:
    """With the container's own word of when it last worked, and since that came."""
    evidence, state = Evidence(), running()
    evidence.heard(heard(quiet_ms=None), 100)
    assert evidence.seen(state, "", {}, 100).containers[0].quiet_ms == 0
    assert evidence.seen(state, "", {}, 150).containers[0].quiet_ms == 50, (
        "since it was seen to run"
    )
    evidence.heard(heard(quiet_ms=7), 200)
    assert evidence.seen(state, "", {}, 203).containers[0].quiet_ms == 10


def test_a_command_for_what_has_no_place_is_not_in_the_way() -> None:
    """It waits, and may do so for ever."""
    machine = Machine().at_home({"0": "a"}, "b")
    machine.feed(PlacementRequested(RESTART))
    machine.feed(LauncherSilent(ResourceId("r0")))
    assert machine.state.placements
    seen = Evidence().seen(machine.state, "", {}, 1)
    assert (seen.hindrance, seen.containers[0].is_down) == ("", True)


def test_a_failover_is_in_the_way() -> None:
    """Until the active container runs at its new place; a standby's lag is the allocator's."""
    machine = deployed(Machine(), {"0": "a", "0-0": "b"}, "a", "b", "c")
    machine.feed(LagsReported({ProcessorId("0-0"): 9}))
    evidence = Evidence()
    evidence.heard(heard(inc("0-0", 1), report=None), 1)
    seen = evidence.seen(machine.state, "", {}, 1)
    assert seen.hindrance == ""
    standby = seen.find(ProcessorId("0-0"))
    assert standby is not None
    assert (standby.lag, standby.quiet_ms) == (9, 0)
    machine.feed(LauncherSilent(ResourceId("r0")))
    assert evidence.seen(machine.state, "", {}, 1).obstacle == "processor 0, 0-0 does not run"


def decided(event: Event) -> tuple[AllocatorState, Decision]:
    """The state before, and the decision."""
    before = running()
    return before, step(before, event)


@pytest.mark.parametrize("cause", [c for c in StopCause if c in CHARGED_CAUSES])
def test_a_failure_is_one_of_the_container(cause: StopCause) -> None:
    """A hang too."""
    event = ContainerStopped(FIRST, cause, 1)
    found = failure_of(*decided(event), event)
    assert found == (FIRST, f"0@1 on a: {cause.value}, exit code 1")


@pytest.mark.parametrize(
    "event",
    [
        ContainerStopped(FIRST, StopCause.LEASE_LOST, 1),
        ContainerStopped(FIRST, StopCause.CUT_OFF, 1),
        ContainerStopped(FIRST, StopCause.FINISHED, 0),
        LauncherSilent(ResourceId("r0")),
        ResourceEnded(RequestId(1), ResourceId("r0"), "lost", is_taken_back=True),
    ],
)
def test_a_lost_host_is_no_failure(event: Event) -> None:
    """Nor a lost lease, nor its own end."""
    assert failure_of(*decided(event), event) is None


def test_a_failure_from_before_is_none_of_this_event() -> None:
    """And one of a processor that the model has no more is none."""
    machine = Machine().at_home({"0": "a"}, "b")
    machine.feed(ContainerStopped(FIRST, StopCause.FAILED, 1))
    machine.run("0", "r0", "a")
    before = machine.state
    event = ShutdownRequested()
    assert failure_of(before, step(before, event), event) is None
    ended = ContainerStopped(FIRST, StopCause.FAILED, 1)
    for state in (running(), before):
        assert failure_of(Machine().state, step(state, ended), ended) is None
        gone = replace(step(running(), ended), state=Machine().state)
        assert failure_of(state, gone, ended) is None


def test_the_failure_of_one_is_found_among_others_that_changed() -> None:
    """Before it stands one that is down, and one that has failed with an event before."""
    machine = Machine()
    machine.deploy({"0": "a", "1": "a", "2": "a"}, "a")
    for name in "012":
        machine.run(name, f"r{name}", "a")
    machine.feed(ContainerStopped(inc("1", 1), StopCause.FAILED, 1))
    machine.run("1", "r1", "a")
    before = machine.state
    down = replace(before, containers=Containers([_down(c) for c in before.containers]))
    event = ContainerStopped(inc("2", 1), StopCause.FAILED, 1)
    decision = step(before, event)
    all_changed = Changes(frozenset(map(ProcessorId, "012")))
    found = failure_of(down, replace(decision, changes=all_changed), event)
    assert found is not None
    assert found[0] == inc("2", 1)


def _down(container: ContainerState) -> ContainerState:
    is_first = container.processor_id == P0
    return replace(container, phase=ContainerPhase.QUEUED) if is_first else container


# --- which package each processor is to have


ACTIVE, STANDBY, TEMPORARY = ProcessorId("0"), ProcessorId("0-0"), ProcessorId("0-warm")


@pytest.fixture
def group() -> AllocatorState:
    """An active container, its standby, and the standby of its warm move."""
    containers = Containers(
        [
            ContainerState(ACTIVE),
            ContainerState(STANDBY, ACTIVE),
            ContainerState(TEMPORARY, ACTIVE, is_temporary=True),
        ]
    )
    return AllocatorState(SETTINGS, containers=containers)


def test_a_temporary_standby_has_the_package_of_its_active(group: AllocatorState) -> None:
    """The code that it prepares state for; a standby of the JobModel has its own."""
    packages = {ACTIVE: "a", STANDBY: "b", TEMPORARY: "never asked"}.get
    assert next_package(packages, group, ACTIVE) == "a"
    assert next_package(packages, group, STANDBY) == "b"
    assert next_package(packages, group, TEMPORARY) == "a"


def test_a_processor_that_the_model_has_no_more_is_asked_for_by_its_name(
    group: AllocatorState,
) -> None:
    """Its launcher hears it until it has stopped."""
    assert next_package({ProcessorId("7"): "c"}.get, group, ProcessorId("7")) == "c"
