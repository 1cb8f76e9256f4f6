"""Operators' commands as the allocator knows them: see ``placement_actions``.

PURE.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementSource,
    PlacementStatus,
)


class PlacementStep(Enum):
    """Where an operator's command is."""

    WAITING = "waiting"
    """For its turn, or for the container to run."""
    RESERVING = "reserving"
    """A launcher at the destination is requested; the container is as it was."""
    WARMING = "warming"
    """A standby on the destination reads the state, and follows it; the container runs on."""
    GIVING_WAY = "giving-way"
    """That standby got the order to stop; its launcher is reserved for the container."""
    MOVING = "moving"
    """The launcher is reserved: the container stops, is assigned it, starts."""
    RESTARTING = "restarting"
    """The container got the order to stop, or was placed, and is to come back."""


class SparkWait(Enum):
    """Whether a warm move waits for the Spark that its container is to find."""

    NOT_YET = "not-yet"
    """The standby is not near, or the Spark was ready before."""
    AWAITED = "awaited"
    """All else is ready; the timer runs."""
    OVER = "over"
    """It did not come in time: the container starts one itself."""


@dataclass(frozen=True, slots=True)
class Placement:
    """An operator's command under way: see ``placement``.

    ``status``: the last that was answered. ``source``: where the container was when it began;
    ``host``: where it is to go, ``resource_id``: the launcher reserved there; ``is_launched``:
    whether the container has been assigned that. ``standby``: of a warm move, whose place it takes;
    ``spark``: and what it still waits for. ``least``: how many records were left to read in this
    step, at the least, for what it waits for (None: not known). ``story``: what it waits for, as
    was answered last, for people.
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
    """Return the sort key of commands: first those that have begun, then by timestamp."""
    request = placement.request
    return placement.step is PlacementStep.WAITING, request.timestamp_ms, request.uuid
