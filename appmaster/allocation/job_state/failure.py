"""Why a container failed last. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause


class FailureKind(Enum):
    """What went wrong."""

    STOPPED = "stopped"
    """A launcher has reported that its stream container ended."""
    LAUNCHER_LOST = "launcher-lost"
    """The launcher ended or fell silent, and the incarnation that it ran is lost with it."""
    NO_LAUNCHER = "no-launcher"
    """No launcher checked in for the request."""
    RETRIES_USED_UP = "retries-used-up"
    """The container failed once too often, and is given up."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of a container.

    ``story``: for people. ``incarnation``: None where none was permitted. ``cause`` and
    ``exit_code``: as its launcher reported them; None where no launcher did. ``host``: where it
    ran, or where a launcher was requested; None: anywhere.
    """

    kind: FailureKind
    story: str
    incarnation: Incarnation | None = None
    host: Host | None = None
    cause: StopCause | None = None
    exit_code: int | None = None

    def __str__(self) -> str:
        return self.story
