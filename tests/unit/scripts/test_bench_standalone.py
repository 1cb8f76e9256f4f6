"""scripts/bench standalone: what it makes of versions, of deaths and of histories."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.standalone.plan import measured
from benchmarks.standalone.runs import longest_pause_ms
from benchmarks.standalone.sigkill import PHASES, Loss, line_of, rows_of


def figures(found: dict[str, object], key: str) -> dict[str, Any]:
    """Those of one version."""
    one = found[key]
    assert isinstance(one, dict)
    return one


@pytest.mark.parametrize("standbys", [0, 1])
def test_a_small_job_goes_through_the_versions_of_the_large_one(standbys: int) -> None:
    """A death moves the dead one's tasks alone, a newcomer gets its share.

    The neighbour at the dead one's location has no standby of its tasks, and gets one for evenness.
    """
    found = measured(10, 100, standbys)
    assert [figures(found, k)["moved"] for k in ("first", "death", "loss")] == [0, 10, 10]
    assert figures(found, "join")["moved"] == 9
    lost = 10 if standbys else 0
    assert [figures(found, k)["lost"] for k in ("first", "death", "join")] == [0, lost, 0]
    assert figures(found, "death")["unbacked"] == standbys
    assert all(figures(found, k)["cpu_s"] > 0 for k in ("first", "death", "loss", "join"))


def test_deaths_become_medians_and_ranges() -> None:
    """The whole beside its target, each phase after the one before, and the machine."""
    phases = (3.0, 0.6, 0.2, 1.2, 0.5)
    losses = [Loss(5.5, phases, 2, 1.0, 0.5), Loss(9.5, (7.0, *phases[1:]), 2, 3.0, 0.9)]
    rows = list(rows_of("no standby", losses, 5.0))
    assert (rows[0].value, rows[0].target, rows[0].reached) == (
        "7.5 s (5.5 to 9.5)",
        "<= 5 s",
        False,
    )
    assert dict(rows[0].parts) == dict(zip(PHASES, (5.0, *phases[1:]), strict=True))
    assert len(rows) == 1 + len(PHASES) + 2
    assert line_of(losses[0]) == (
        "2 tasks after 5.50 s (session over +3.00, published +0.60, barrier done +0.20, first "
        "commit +1.20, last commit +0.50); load 1.0, cores 50% busy"
    )


def test_the_pause_of_a_task_is_the_longest_time_between_commits_of_a_span() -> None:
    """One that lies outside the span does not count."""
    times = [0, 900, 1000, 1100, 1500, 1600, 3000]
    assert longest_pause_ms(times, 950, 1600) == 1400
    assert longest_pause_ms(times, 950, 1550) == 400
    assert longest_pause_ms([5], 0, 10) == 0
