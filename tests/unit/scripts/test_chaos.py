"""The demo's schedule of faults."""

from __future__ import annotations

import pytest
from flights_demo.chaos import KINDS, LEAST_FAULTS, schedule


def test_a_seed_reproduces_its_schedule() -> None:
    """The same seed, kinds and nodes give the same faults; another seed gives others."""
    assert schedule(7, KINDS, 3) == schedule(7, list(reversed(KINDS)), 3)
    assert schedule(7, KINDS, 3) != schedule(8, KINDS, 3)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kinds", [list(KINDS), ["kill-container", "pause-node-long"]])
def test_every_kind_comes_and_there_are_enough(seed: int, kinds: list[str]) -> None:
    """Each kind at least once, ten faults at least, each of them readable."""
    faults = schedule(seed, kinds, 3)
    assert {fault.kind for fault in faults} == set(kinds)
    assert len(faults) >= LEAST_FAULTS
    assert all(0 <= fault.target < 3 for fault in faults)
    assert all(fault.kind in str(fault) for fault in faults)
    assert all(
        (fault.length_s > 0) == ("pause" in str(fault.kind) or fault.kind == "kill-node")
        for fault in faults
    )
