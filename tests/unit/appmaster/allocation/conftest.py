"""A machine that checks every invariant after every step; short words for what goes in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.exclusion import EXCLUSION_MS
from homeport.appmaster.allocation.invariants import check, check_step
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    ContainerState,
    initial_state,
)
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
    LauncherSilent,
    PlacementRequested,
    ResourceAllocated,
    ResourceEnded,
    Timer,
    TimerFired,
    TimerKind,
    describe,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    DeletePlacementRequest,
    Instruction,
    PermitContainer,
    Record,
    ReleaseResource,
    RequestResource,
    SetTimer,
    StopContainer,
    WritePlacementResponse,
    WriteProcessorEpoch,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementStatus

SETTINGS = AllocatorSettings(
    host_affinity_enabled=True,
    retry_count=2,
    retry_window_ms=300_000,
    fail_job_after_retries=True,
    request_timeout_ms=5_000,
    check_in_timeout_ms=60_000,
)


A, B, C = Host("a"), Host("b"), Host("c")
ZERO = ProcessorId("0")


class Machine:
    """An allocator; after every step all invariants hold, or the test fails with the story."""

    def __init__(self, settings: AllocatorSettings = SETTINGS) -> None:
        self.state: AllocatorState = initial_state(settings)
        self.records: tuple[Record, ...] = ()
        check(self.state)

    def decide(self, event: Event) -> Decision:
        """One step."""
        decision = step(self.state, event)
        check_step(self.state, decision.state, describe(event), decision.changes)
        check(decision.state)
        assert all(i.cause == describe(event) for i in decision.instructions)
        assert hash(decision.state) == hash(replace(decision.state))
        self.state = decision.state
        self.records += decision.records
        return decision

    def feed(self, *events: Event) -> tuple[Instruction, ...]:
        """Steps, one per event, and the instructions of all of them."""
        return tuple(i for event in events for i in self.decide(event).instructions)

    def stale(self, *events: Event) -> None:
        """Each of these events is counted as stale and changes nothing else."""
        for event in events:
            before = self.state
            decision = self.decide(event)
            assert (decision.records, decision.instructions) == ((), ()), event
            assert decision.state == replace(before, stale_events=before.stale_events + 1), event

    def deploy(self, homes: Mapping[str, str | None], *hosts: str) -> tuple[Instruction, ...]:
        """A model of these processors and their homes, then these hosts."""
        return self.feed(model(homes), live(*hosts))

    def run(self, processor: str, resource: str, host: str, request: int | None = None) -> None:
        """The launcher checks in, is permitted to run this processor, which starts."""
        self.feed(check_in(resource, host, request=request))
        container = self.container(processor)
        assert container.resource_id == resource
        self.feed(started(processor, container.epoch))

    def at_home(self, homes: Mapping[str, str], *others: str) -> Machine:
        """Each processor runs at home, the first one in r0; other hosts are live too."""
        self.deploy(homes, *dict.fromkeys((*homes.values(), *others)))
        for number, (processor, host) in enumerate(homes.items()):
            self.run(processor, f"r{number}", host, number + 1)
        return self

    def container(self, processor: str) -> ContainerState:
        """The container of this processor."""
        container = self.state.container(ProcessorId(processor))
        assert container is not None
        return container

    def phase(self, processor: str) -> ContainerPhase:
        """The phase of this processor."""
        return self.container(processor).phase

    @property
    def permits(self) -> tuple[WriteProcessorEpoch, ...]:
        """The records of permits so far."""
        return tuple(r for r in self.records if isinstance(r, WriteProcessorEpoch))

    @property
    def phases(self) -> tuple[ContainerPhase, ...]:
        """The phases of all processors, in the order of their ids."""
        return tuple(c.phase for c in self.state.containers)


@pytest.fixture
def machine() -> Machine:
    """A machine with host affinity and two retries."""
    return Machine()


MachineWith = Callable[..., Machine]


@pytest.fixture
def machine_with() -> MachineWith:
    """A machine with some settings changed."""

    def build(**changes: bool | int | tuple[Host, ...] | None) -> Machine:
        return Machine(replace(SETTINGS, **changes))  # type: ignore[arg-type] # by field name

    return build


def inc(processor: str, epoch: int) -> Incarnation:
    """An incarnation."""
    return Incarnation(ProcessorId(processor), epoch)


def model(homes: Mapping[str, str | None], version: int = 1, **epochs: int) -> JobModelPublished:
    """A JobModel; epochs as ``p0=3`` for processor 0."""
    return JobModelPublished(
        version,
        {ProcessorId(p): None if h is None else Host(h) for p, h in homes.items()},
        {ProcessorId(p.removeprefix("p")): epoch for p, epoch in epochs.items()},
    )


def live(*hosts: str) -> HostsObserved:
    """These hosts are live."""
    return HostsObserved(tuple(Host(h) for h in hosts))


def check_in(
    resource: str, host: str, running: Incarnation | None = None, request: int | None = None
) -> LauncherCheckedIn:
    """A check-in."""
    request_id = None if request is None else RequestId(request)
    return LauncherCheckedIn(ResourceId(resource), Host(host), running, request_id)


def allocated(request: int) -> ResourceAllocated:
    """Skein runs this request's launcher."""
    return ResourceAllocated(RequestId(request))


def silent(resource: str) -> LauncherSilent:
    """This launcher fell silent."""
    return LauncherSilent(ResourceId(resource))


def ended(
    request: int | None = None, resource: str | None = None, story: str = "", **flags: bool
) -> ResourceEnded:
    """YARN calls the container of this request, or of this launcher, ended."""
    request_id = None if request is None else RequestId(request)
    resource_id = None if resource is None else ResourceId(resource)
    return ResourceEnded(request_id, resource_id, story, **flags)


def started(processor: str, epoch: int) -> ContainerStarted:
    """This incarnation started."""
    return ContainerStarted(inc(processor, epoch))


def stopped(
    processor: str,
    epoch: int,
    cause: StopCause = StopCause.FAILED,
    exit_code: int = 1,
    reason: str = "",
) -> ContainerStopped:
    """This incarnation stopped."""
    return ContainerStopped(inc(processor, epoch), cause, exit_code, reason)


def expired(request: int) -> TimerFired:
    """This request's expiry timer fired."""
    return TimerFired(Timer(TimerKind.REQUEST_EXPIRY, RequestId(request)))


def never_came(request: int) -> TimerFired:
    """This request's check-in timer fired."""
    return TimerFired(Timer(TimerKind.CHECK_IN, RequestId(request)))


def window_over(processor: str) -> TimerFired:
    """This processor's retry window timer fired."""
    return TimerFired(Timer(TimerKind.RETRY_WINDOW, ProcessorId(processor)))


def rest_over(processor: str) -> TimerFired:
    """This processor's retry delay timer fired."""
    return TimerFired(Timer(TimerKind.RETRY_DELAY, ProcessorId(processor)))


def rests(processor: str, delay_ms: int, window_ms: int | None = None) -> tuple[Instruction, ...]:
    """A failure is remembered (None: for the window and the delay), and the processor rests."""
    timer, window = (
        Timer(TimerKind.RETRY_DELAY, ProcessorId(processor)),
        SETTINGS.retry_window_ms + delay_ms,
    )
    remembered = SetTimer(
        Timer(TimerKind.RETRY_WINDOW, ProcessorId(processor)), window_ms or window
    )
    return (remembered, SetTimer(timer, delay_ms))


def falls_silent(host: str) -> tuple[Instruction, ...]:
    """A host counts as just fallen silent."""
    return (SetTimer(Timer(TimerKind.SILENCE, Host(host)), SETTINGS.silence_ms),)


def excludes(host: str) -> tuple[Instruction, ...]:
    """A host is not asked for a while."""
    return (SetTimer(Timer(TimerKind.EXCLUSION, Host(host)), EXCLUSION_MS),)


def exclusion_over(host: str) -> TimerFired:
    """This host's exclusion has decayed."""
    return TimerFired(Timer(TimerKind.EXCLUSION, Host(host)))


def asks(request: int, host: str | None) -> tuple[Instruction, ...]:
    """A request and its expiry timer."""
    request_id = RequestId(request)
    return (
        RequestResource(request_id, None if host is None else Host(host)),
        SetTimer(Timer(TimerKind.REQUEST_EXPIRY, request_id), SETTINGS.request_timeout_ms),
    )


def cancels(request: int, timer: str | None = None) -> tuple[Instruction, ...]:
    """A request cancelled; ``timer`` ("expiry" or "check-in") with this timer disarmed before."""
    return (*(disarms(request, timer) if timer else ()), CancelRequest(RequestId(request)))


def disarms(request: int, timer: str) -> tuple[Instruction, ...]:
    """A request's timer disarmed."""
    kind = {"expiry": TimerKind.REQUEST_EXPIRY, "check-in": TimerKind.CHECK_IN}[timer]
    return (CancelTimer(Timer(kind, RequestId(request))),)


def permits(
    resource: str, processor: str, epoch: int, fence: tuple[Incarnation, ...] = (), version: int = 1
) -> tuple[Instruction, ...]:
    """A permit."""
    return (PermitContainer(ResourceId(resource), inc(processor, epoch), version, fence),)


def records_epoch(
    processor: str, epoch: int, fence: tuple[Incarnation, ...] = (), version: int = 1
) -> WriteProcessorEpoch:
    """The record of a permit."""
    return WriteProcessorEpoch(ProcessorId(processor), epoch, version, fence)


def stops(
    resource: str, processor: str, epoch: int, *, keeps: bool = False
) -> tuple[Instruction, ...]:
    """An order to stop."""
    return (StopContainer(ResourceId(resource), inc(processor, epoch), keeps),)


def releases(*resources: str) -> tuple[Instruction, ...]:
    """Orders to exit."""
    return tuple(ReleaseResource(ResourceId(r)) for r in resources)


def remembers_failure(processor: str) -> tuple[Instruction, ...]:
    """The retry window of this processor begins, or begins again."""
    timer = Timer(TimerKind.RETRY_WINDOW, ProcessorId(processor))
    return (SetTimer(timer, SETTINGS.retry_window_ms),)


def forgets_failures(processor: str) -> tuple[Instruction, ...]:
    """The retry window of this processor is over before its time."""
    return (CancelTimer(Timer(TimerKind.RETRY_WINDOW, ProcessorId(processor))),)


TAKEN_BACK = ended(1, "r0", "preempted", is_taken_back=True)
"""The cluster took back the launcher r0."""


def job(homes: dict[str, str | None], version: int = 1, **epochs: int) -> JobModelPublished:
    """A model of 0 and its standbys."""
    standbys = {ProcessorId(p): ProcessorId("0") for p in homes if p != "0"}
    return replace(model(homes, version, **epochs), standbys=standbys)


def deployed(machine: Machine, homes: dict[str, str | None], *hosts: str) -> Machine:
    """Each runs at home: the first one in r0, the second in r1, and so on."""
    machine.feed(job(homes), live(*hosts))
    for number, (processor, host) in enumerate(homes.items()):
        machine.run(processor, f"r{number}", str(host), number + 1)
    return machine


@pytest.fixture
def pair(machine: Machine) -> Machine:
    """0 runs on a in r0, 0-0 on b in r1; c is live, too."""
    return deployed(machine, {"0": "a", "0-0": "b"}, "a", "b", "c")


# --- short names for operators' commands: the request, the answer, what follows


HOSTS = ("h1", "h2", "h3", "h4")
DONE, FAILED, BAD = (PlacementStatus.SUCCEEDED, PlacementStatus.FAILED, PlacementStatus.BAD_REQUEST)
ACCEPTED, BEGUN = PlacementStatus.ACCEPTED, PlacementStatus.IN_PROGRESS


def asked(
    processor: str = "0", to: str = "h3", uuid: str = "u1", at: int = 1, expiry: int | None = None
) -> PlacementRequest:
    """A request."""
    return PlacementRequest(uuid, "run-1", ProcessorId(processor), to, expiry, at)


def wants(*of: str, **fields: str | int | None) -> PlacementRequested:
    """The request is read."""
    return PlacementRequested(asked(*of, **fields))  # type: ignore[arg-type] # by field name


def answers(machine: Machine, uuid: str = "u1") -> list[PlacementStatus]:
    """All answers to that request, in their order."""
    return [stated.status for stated in _stated(machine, uuid)]


def said(machine: Machine, uuid: str = "u1") -> str:
    """The last answer in words."""
    return _stated(machine, uuid)[-1].message


def _stated(machine: Machine, uuid: str) -> list[WritePlacementResponse]:
    found = [r for r in machine.records if isinstance(r, WritePlacementResponse)]
    return [r for r in found if r.request.uuid == uuid]


def taken(machine: Machine) -> list[str]:
    """The requests that were deleted, by uuid."""
    return [r.uuid for r in machine.records if isinstance(r, DeletePlacementRequest)]


def orders(instructions: tuple[Instruction, ...]) -> list[Instruction]:
    """Without timers."""
    kinds = (RequestResource, CancelRequest, StopContainer, PermitContainer, ReleaseResource)
    return [i for i in instructions if isinstance(i, kinds)]


def running(machine: Machine, *hosts: str) -> Machine:
    """0 on h1 and 1 on h2, or where ``hosts`` say, with the launchers r1, r2, ...; all hosts."""
    homes = hosts or ("h1", "h2")
    machine.deploy({str(n): h for n, h in enumerate(homes)}, *HOSTS)
    for number, host in enumerate(homes, start=1):
        machine.run(str(number - 1), f"r{number}", host, number)
    return machine


def settled(machine: Machine, processor: str) -> tuple[str | None, P]:
    """Where the processor is, and how."""
    container = machine.container(processor)
    launcher = machine.state.resources.get(container.resource_id)
    return None if launcher is None else launcher.host, container.phase


def moved(machine: Machine, processor: str, resource: str, host: str, request: int) -> None:
    """From the reservation's launcher to the start there."""
    old = machine.container(processor)
    assert old.resource_id is not None
    stop = machine.feed(allocated(request), check_in(resource, host, request=request))
    assert orders(stop) == list(stops(old.resource_id, processor, old.epoch))
    gone = machine.feed(stopped(processor, old.epoch, StopCause.ORDERED, 143))
    assert orders(gone) == list(releases(old.resource_id))
    machine.run(processor, resource, host)
    machine.feed(ResourceEnded(resource_id=old.resource_id))
