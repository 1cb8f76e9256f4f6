"""Operators' commands in the allocator's state; ``placement_actions`` carries them out. PURE."""

from dataclasses import dataclass
from enum import Enum

from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementSource,
    PlacementStatus,
)


class PlacementStep(Enum):
    """How far an operator's command has come."""

    WAITING = "waiting"
    """It waits for its turn, or until the container runs."""
    RESERVING = "reserving"
    """A launcher at the destination is requested; the container goes on."""
    WARMING = "warming"
    """A standby on the destination reads the state; the container runs on."""
    GIVING_WAY = "giving-way"
    """That standby is ordered to stop; its launcher is reserved for the container."""
    MOVING = "moving"
    """The launcher is reserved: the container stops, is assigned it, starts."""
    RESTARTING = "restarting"
    """The container is ordered to stop, or placed, and is to come back."""


class SparkWait(Enum):
    """Whether a warm move waits for the Spark that its container is to use."""

    NOT_YET = "not-yet"
    """The standby has still too much to read, or the Spark was ready before."""
    AWAITED = "awaited"
    """Only the Spark is missing; the timer runs."""
    OVER = "over"
    """It did not come in time: the container starts one itself."""


@dataclass(frozen=True, slots=True)
class Placement:
    """An operator's command under way.

    Attributes:
        request: the command.
        status: the status of the last answer.
        step: how far it has come.
        source: where the container was when the command began.
        host: where the container is to go.
        resource_id: the launcher reserved there.
        is_launched: whether the container has been assigned that launcher.
        standby: the standby whose place the container takes in a warm move.
        spark: whether a warm move waits for a Spark.
        least: the fewest records left to read in this step; None: not known.
        story: what it waits for, from the last answer, for people.
    """

    request: PlacementRequest
    status: PlacementStatus = PlacementStatus.CREATED
    step: PlacementStep = PlacementStep.WAITING
    source: PlacementSource | None = None
    host: Host | None = None
    resource_id: ResourceId | None = None
    is_launched: bool = False
    standby: ProcessorId | None = None
    spark: SparkWait = SparkWait.NOT_YET
    least: int | None = None
    story: str = ""


def turn(placement: Placement) -> tuple[bool, int, str]:
    """Return the sort key of commands: those that have begun come first, then by timestamp."""
    request = placement.request
    return placement.step is PlacementStep.WAITING, request.timestamp_ms, request.uuid
