"""What still counts of the failures that earlier drivers have charged. The time is given."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.appmaster.allocation.protocol.events import ChargedFailures
from homeport.job_coordinator.metadata.lifecycle import RetryState
from homeport.job_coordinator.model.ids import ProcessorId


def charged_failures(
    states: Mapping[ProcessorId, RetryState], *, retry_count: int, window_ms: int, now_ms: int
) -> dict[ProcessorId, ChargedFailures]:
    """Return the charges of earlier drivers that still count.

    A container that was given up stays so. A clock that went back forgives nothing.
    """
    found = {}
    for processor_id, state in states.items():
        left_ms = min(window_ms, state.since_ms + window_ms - now_ms)
        if left_ms > 0 or 0 <= retry_count < state.count:
            found[processor_id] = ChargedFailures(state.count, max(left_ms, 1))
    return found
