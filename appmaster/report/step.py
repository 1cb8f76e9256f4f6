"""One step of the allocator, for its observers, after its records are appended."""

from collections.abc import Callable
from dataclasses import dataclass

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event
from homeport.job_coordinator.http.messages import CheckIn, Started, Stopped

LauncherMessage = CheckIn | Started | Stopped


@dataclass(frozen=True, slots=True)
class Step:
    """An event, the state before it, and the decision on it, whose records are in the stream.

    ``known_ms``: when the event was known, on CLOCK_BOOTTIME. ``message``: the launcher's message
    that it comes from; None: it has another source.
    """

    before: AllocatorState
    event: Event
    decision: Decision
    known_ms: int
    message: LauncherMessage | None = None


StepObserver = Callable[[Step], None]
"""Follows a step, on the driver's event loop."""
