"""What the configuration says to the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.appmaster.allocation.events import ShutdownRequested
from homeport.appmaster.runtime.hold_back import NOTHING, Inheritance
from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(frozen=True)
class DriverSettings:
    """What the configuration says to the driver. Units: ms.

    ``environment``: what every launcher gets. ``adopt``: what an earlier driver of this attempt may
    have left running.
    ``inherited``: what this attempt found; ``isolation_ms``: how long that may run on unseen;
    ``witnessed``: those of it that have stopped. ``ending``: the end that an earlier driver began.
    """

    check_in_interval_ms: int
    lease_ms: int
    catch_up_interval_ms: int
    environment: Mapping[str, str]
    adopt: tuple[Incarnation, ...] = ()
    inherited: Inheritance = NOTHING
    isolation_ms: int = 0
    witnessed: frozenset[Incarnation] = frozenset()
    ending: ShutdownRequested | None = None
