"""What the configuration says to the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(frozen=True)
class DriverSettings:
    """What the configuration says to the driver. Units: ms.

    ``hold_back_ms``: how long the first placement waits for what an earlier attempt started.
    ``environment``: what every launcher gets. ``adopt``: what an earlier driver of this attempt may
    have left running.
    """

    check_in_interval_ms: int
    lease_ms: int
    catch_up_interval_ms: int
    hold_back_ms: int
    environment: Mapping[str, str]
    adopt: tuple[Incarnation, ...] = ()
