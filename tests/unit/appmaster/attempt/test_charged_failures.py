"""What a new driver makes of the failures that earlier ones have charged. Times are given."""

from __future__ import annotations

from homeport.appmaster.allocation.protocol.events import ChargedFailures
from homeport.appmaster.attempt.charged_failures import charged_failures
from homeport.job_coordinator.metadata.lifecycle import RetryState
from homeport.job_coordinator.model.ids import ProcessorId

P0 = ProcessorId("0")


def test_a_charged_failure_counts_for_the_rest_of_its_window() -> None:
    """Not longer; what was given up stays so; a clock that went back changes nothing."""

    def left(count: int, since_ms: int) -> ChargedFailures | None:
        states = {P0: RetryState(count, since_ms)}
        found = charged_failures(states, retry_count=2, window_ms=60_000, now_ms=100_000)
        return found.get(P0)

    assert left(2, 50_000) == ChargedFailures(2, 10_000)
    assert left(2, 40_000) is None
    assert left(3, 40_000) == ChargedFailures(3, 1)
    assert left(1, 200_000) == ChargedFailures(1, 60_000)
