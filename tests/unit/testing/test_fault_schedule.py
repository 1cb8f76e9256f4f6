"""Schedules of faults: what a seed reproduces, and what is in them."""

from __future__ import annotations

import pytest

from homeport.testing.fault_schedule import KINDS, LEAST_FAULTS, Extent, schedule

EXTENT = Extent(processors=3, nodes=3, lease_ms=3000)
KILLED = ("kill-container", "kill-launcher")


def test_a_seed_reproduces_its_schedule() -> None:
    """The same seed, kinds and extent give the same faults; another seed gives others."""
    assert schedule(7, KINDS, EXTENT) == schedule(7, list(reversed(list(KINDS))), EXTENT)
    assert schedule(7, KINDS, EXTENT) != schedule(8, KINDS, EXTENT)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kinds", [list(KINDS), ["kill-container", "pause-node-long"]])
def test_every_kind_comes_and_there_are_enough(seed: int, kinds: list[str]) -> None:
    """Each kind at least once, ten faults at least, each of them readable."""
    faults = schedule(seed, kinds, EXTENT)
    assert {fault.kind for fault in faults} == set(kinds)
    assert len(faults) >= LEAST_FAULTS
    assert all(0 <= fault.target < 3 for fault in faults)
    assert all(fault.kind in str(fault) for fault in faults)
    lasting = ("pause", "cut", "kill-node")
    assert all((fault.length_s > 0) == fault.kind.startswith(lasting) for fault in faults)


@pytest.mark.parametrize("seed", range(20))
def test_short_is_within_the_lease_and_long_is_not(seed: int) -> None:
    """By the job's own lease."""
    for fault in schedule(seed, KINDS, Extent(3, 3, 20_000)):
        if fault.kind.endswith("short"):
            assert fault.length_s <= 10
        if fault.kind.endswith("long"):
            assert fault.length_s >= 40


def test_a_kill_loop_has_twenty_kills_and_nothing_else() -> None:
    """Of containers and of launchers; every processor is hit, some when all work, some not."""
    kills = schedule(7, KILLED, EXTENT, 20)
    assert len(kills) == 20
    assert {fault.kind for fault in kills} == set(KILLED)
    assert {fault.target for fault in kills} == {0, 1, 2}
    assert {fault.waits for fault in kills} == {True, False}
    assert {fault.length_s for fault in kills} == {0.0}
