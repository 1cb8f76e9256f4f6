"""The allocator's states by number, and what each event leads to from each, computed once.

Worlds share the states of the allocator: a few thousand of them serve some hundred thousand worlds.
``check_step`` judges each step when it is made for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from homeport.appmaster.allocation import container_process_manager
from homeport.appmaster.allocation.invariants import check_step
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    FencesReported,
    HostsObserved,
    LagsReported,
    LauncherCheckedIn,
    LauncherSilent,
    PlacementRequested,
    ResourceAllocated,
    ResourceEnded,
    RetiredStopped,
    ShutdownRequested,
    SparesReported,
    Timer,
    TimerFired,
    describe,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    EndJob,
    PermitContainer,
    Record,
    ReleaseResource,
    RequestResource,
    StopContainer,
    order_for,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementSource
from tests.exhaustive.lasting import judge_records
from tests.exhaustive.things import Command, End, Message, Owner


class Order(NamedTuple):
    """The order to a launcher: "run", "stop", "let go" or "exit"; "let go": its process rests."""

    verb: str
    owner: Owner | None = None
    fence: tuple[Owner, ...] = ()
    version: int = 1


class Outcome(NamedTuple):
    """What one event led to. ``effects``: (what, request or result, host) in their order."""

    machine: int
    records: tuple[Record, ...]
    effects: tuple[tuple[str, Any, str], ...]
    order: Order | None


def resource_of(request: int) -> ResourceId:
    """The resource that came of this request; ids have the order of their requests."""
    return ResourceId(f"r{request:03d}")


def incarnation_of(owner: Owner) -> Incarnation:
    """The incarnation of this name."""
    return Incarnation(ProcessorId(owner[0]), owner[1])


def owner_of(incarnation: Incarnation) -> Owner:
    """The name of this incarnation."""
    return (incarnation.processor_id, incarnation.epoch)


def _check_in(request: int, host: str, running: Owner | None) -> Event:
    child = incarnation_of(running) if running else None
    return LauncherCheckedIn(resource_of(request), Host(host), child, RequestId(request))


def _fences(owner: Owner, fenced: tuple[Owner, ...]) -> Event:
    return FencesReported(incarnation_of(owner), tuple(map(incarnation_of, fenced)))


def placement_of(command: Command, *, is_resumed: bool = False) -> PlacementRequested:
    """What the driver reads of the command in the stream."""
    number, processor, destination, source, is_warm = command
    request = PlacementRequest(
        f"u{number}", "run", ProcessorId(processor), destination, None, number, is_warm
    )
    where = PlacementSource(source[0], Host(source[1])) if source else None
    return PlacementRequested(request, is_resumed=is_resumed, source=where)


def _silent(request: int, said: End) -> Event:
    """The event of ``LauncherTable`` for a launcher that was silent for its whole limit."""
    if said is End.NOT_SAID:
        return LauncherSilent(resource_of(request))
    is_taken_back = said is End.TAKEN_BACK
    return ResourceEnded(RequestId(request), resource_of(request), is_taken_back=is_taken_back)


_EVENTS: Mapping[str, Callable[..., Event]] = {
    "check-in": _check_in,
    "started": lambda owner: ContainerStarted(incarnation_of(owner)),
    "stopped": lambda owner, cause: ContainerStopped(incarnation_of(owner), StopCause(cause), 1),
    "fences": _fences,
    "lag": lambda owner: LagsReported({ProcessorId(owner[0]): 0}),
    "spark": lambda owner: SparesReported({ProcessorId(owner[0]): True}),
    "process": lambda processor: SparesReported({ProcessorId(processor): True}),
    "allocated": ResourceAllocated,
    "ended": lambda request, taken: ResourceEnded(RequestId(request), is_taken_back=taken),
    "retired": lambda owner: RetiredStopped(incarnation_of(owner), "lease-lost"),
    "shutdown": ShutdownRequested,
    "placement": placement_of,
    "resumed": lambda command: placement_of(command, is_resumed=True),
    "silent": _silent,
    "hosts": HostsObserved,
    "timer": TimerFired,
}


def event_of(key: Message) -> Event:
    """The event that a key stands for."""
    kind, *said = key
    return _EVENTS[str(kind)](*said)


class Memory:
    """Every state of the allocator that was met, by number, and every step from it."""

    def __init__(self) -> None:
        self.states: list[AllocatorState] = []
        self._numbers: dict[AllocatorState, int] = {}
        self._steps: dict[tuple[int, Message], Outcome] = {}
        self.timers: list[tuple[Timer, ...]] = []

    def number(self, state: AllocatorState) -> int:
        """The number of this state."""
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
            self.timers.append(tuple(sorted(state.timers, key=str)))
        return number

    def step(self, machine: int, key: Message) -> Outcome:
        """What the event of this key leads to.

        Raises:
            InvariantViolation: the state after it is not sound.
        """
        outcome = self._steps.get((machine, key))
        if outcome is None:
            outcome = self._steps[machine, key] = self.fresh_step(
                self.states[machine], event_of(key)
            )
        return outcome

    def fresh_step(self, before: AllocatorState, event: Event) -> Outcome:
        """The step, not remembered."""
        decision = container_process_manager.step(before, event)
        check_step(before, decision.state, describe(event))
        judge_records(before, event, decision)
        effects: list[tuple[str, Any, str]] = []
        for instruction in decision.instructions:
            match instruction:
                case RequestResource(request_id=request, host=host):
                    effects.append(("ask", int(request), host or ""))
                case CancelRequest(request_id=request):
                    effects.append(("cancel", int(request), ""))
                case EndJob(result=result):
                    effects.append(("end", result.value, ""))
        order = None
        if isinstance(event, LauncherCheckedIn):
            stated = order_for(decision.instructions, event.resource_id)
            match stated:
                case PermitContainer(incarnation=i, fence=fence, model_version=version):
                    order = Order("run", owner_of(i), tuple(map(owner_of, fence)), version)
                case StopContainer(incarnation=i, keeps_process=keeps):
                    order = Order("let go" if keeps else "stop", owner_of(i))
                case ReleaseResource():
                    order = Order("exit")
        number = self.number(decision.state)
        return Outcome(number, tuple(decision.records), tuple(effects), order)
