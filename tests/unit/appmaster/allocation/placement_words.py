"""Short names for operators' commands: the request, the answer, what follows."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import PlacementRequested, ResourceEnded
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    DeletePlacementRequest,
    Instruction,
    PermitContainer,
    ReleaseResource,
    RequestResource,
    StopContainer,
    WritePlacementResponse,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementStatus
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    allocated,
    check_in,
    releases,
    stopped,
    stops,
)

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
