"""The demo's schedule of faults."""

from __future__ import annotations

import pytest
from flights_demo.chaos import KILLED, KILLS, KINDS, LEAST_FAULTS, schedule


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


def test_a_kill_loop_has_twenty_kills_and_nothing_else() -> None:
    """Of containers and of launchers; every processor is hit, some when all work, some not."""
    kills = schedule(7, KILLED, 3, KILLS)
    assert len(kills) == 20
    assert {fault.kind for fault in kills} == {"kill-container", "kill-launcher"}
    assert {fault.target for fault in kills} == {0, 1, 2}
    assert {fault.waits for fault in kills} == {True, False}
    assert {fault.length_s for fault in kills} == {0.0}
