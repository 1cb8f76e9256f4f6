"""One step of the allocator whose result breaks no invariant."""

from __future__ import annotations

from homeport.appmaster.allocation import invariants
from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event, describe
from homeport.appmaster.report.event_log import EventLog
from homeport.config.errors import InvariantViolation


def checked_step(before: AllocatorState, event: Event, events: EventLog) -> Decision:
    """The decision on ``event``.

    Raises:
        InvariantViolation: a bug of ours; the message has the state, and from ``events`` the last
            ones of the processors that this event is about.
    """
    try:
        decision = step(before, event)
        invariants.check_step(before, decision.state, describe(event), decision.changes)
    except InvariantViolation as e:
        raise InvariantViolation(f"{e}\n{events.trail(event)}") from e
    return decision
