"""Points of the last hour: what they are made of, how many there are, and what they take."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from statuses import container_of

from homeport.job_coordinator.status.shape import ShownContainer
from homeport.job_coordinator.ui.plots import MAX_CONTAINERS, POINTS, STEP_MS, Plots

BEGIN_MS = 1_000 * STEP_MS
"""Some time after the machine has started."""


def container(name: str = "0", **changes: object) -> ShownContainer:
    """An active one, in its third incarnation."""
    report = {
        "processed": changes.pop("processed", 0),
        "input_lag": changes.pop("lag", 5),
        "stages": changes.pop("stages", []),
    }
    return container_of({"processor_id": name, "epoch": 3, "report": report, **changes})


def stages(tasks: tuple[int, int], sending: tuple[int, int]) -> list[dict[str, Any]]:
    """What two stages have worked, in ms, and how often."""
    named = (("tasks", tasks), ("sending", sending))
    return [{"stage": name, "ms": ms, "times": times} for name, (ms, times) in named]


def series(plots: Plots, name: str = "0") -> dict[str, list[float | None]]:
    """The last three points of each series."""
    found = plots.to_json([name])["series"][name]
    assert {len(values) for values in found.values()} == {POINTS}
    return {n: values[-3:] for n, values in found.items()}


def test_rates_and_times_come_of_two_looks() -> None:
    """Of the first one there is the lag alone; without a batch in between there is no time."""
    plots = Plots()
    plots.take([container(stages=stages((100, 10), (50, 5)))], BEGIN_MS)
    after = container(processed=300, lag=7, stages=stages((160, 12), (80, 6)))
    plots.take([after], BEGIN_MS + STEP_MS)
    plots.take([after], BEGIN_MS + 2 * STEP_MS)
    assert series(plots) == {
        "lag": [5.0, 7.0, 7.0],
        "records_per_s": [None, 20.0, 0.0],
        "batch_ms": [None, 30.0, None],
        "commit_ms": [None, 30.0, None],
    }
    newest = {"lag": 7.0, "records_per_s": 0.0, "batch_ms": None, "commit_ms": None}
    assert plots.newest("0") == newest
    assert plots.newest("1") == dict.fromkeys(newest)
    assert plots.to_json(["1"]) == {"step_ms": STEP_MS, "series": {}}


def test_a_pipeline_is_part_of_its_batch() -> None:
    """Its time is added, and the batch counts once."""
    plots = Plots()
    piped = [{"stage": "pipeline", "ms": 0, "times": 0}]
    plots.take([container(stages=[*stages((0, 0), (0, 0)), *piped])], BEGIN_MS)
    piped = [{"stage": "pipeline", "ms": 100, "times": 4}]
    plots.take([container(stages=[*stages((20, 4), (0, 0)), *piped])], BEGIN_MS + STEP_MS)
    assert plots.newest("0")["batch_ms"] == 30.0


def test_another_incarnation_begins_from_nothing() -> None:
    """Its counters are no continuation; one that reports nothing has no numbers."""
    plots = Plots()
    plots.take([container(processed=900)], BEGIN_MS)
    plots.take([container(processed=10, epoch=4)], BEGIN_MS + STEP_MS)
    assert plots.newest("0")["records_per_s"] is None
    plots.take([replace(container(), report=None)], BEGIN_MS + 2 * STEP_MS)
    assert plots.newest("0") == dict.fromkeys(("lag", "records_per_s", "batch_ms", "commit_ms"))
    plots.take([container(processed=40, epoch=4)], BEGIN_MS + 3 * STEP_MS)
    assert plots.newest("0")["records_per_s"] is None


def test_a_standby_has_the_lag_of_its_changelogs() -> None:
    """And nothing else; a container of an earlier version does not count its batches."""
    plots = Plots()
    standby = {"processor_id": "0-0", "replica_of": "0", "lag": 12, "report": {"input_lag": None}}
    plots.take([container_of(standby)], BEGIN_MS)
    assert plots.newest("0-0")["lag"] == 12.0
    old = [{"stage": "tasks", "ms": 5}, {"stage": "sending", "ms": 5}]
    for step in range(2):
        plots.take([container(stages=old)], BEGIN_MS + step * STEP_MS)
    assert plots.newest("0")["batch_ms"] is None


def test_missed_points_are_gaps_and_the_oldest_are_overwritten() -> None:
    """Of two looks within one point the later one holds."""
    plots = Plots()
    plots.take([container(lag=1)], BEGIN_MS)
    plots.take([container(lag=2)], BEGIN_MS + 2 * STEP_MS)
    plots.take([container(lag=3)], BEGIN_MS + 2 * STEP_MS + 1)
    assert series(plots)["lag"] == [1.0, None, 3.0]
    plots.take([container(lag=4)], BEGIN_MS + (2 + 5 * POINTS) * STEP_MS)
    whole = plots.to_json(["0"])["series"]["0"]["lag"]
    assert whole == [None] * (POINTS - 1) + [4.0]


def test_a_lag_that_falls_says_when_it_is_nothing() -> None:
    """At the rate of the last minute; one that stands still, or is nothing, does not."""
    plots = Plots()
    for step, lag in enumerate((900, 800, 700, 600)):
        plots.take([container(lag=lag)], BEGIN_MS + step * STEP_MS)
    assert plots.caught_up_in_s("0") is None
    plots.take([container(lag=500)], BEGIN_MS + 4 * STEP_MS)
    assert plots.caught_up_in_s("0") == 75.0
    plots.take([replace(container(), report=None)], BEGIN_MS + 5 * STEP_MS)
    assert plots.caught_up_in_s("0") is None
    for step in range(6, 12):
        plots.take([container(lag=0)], BEGIN_MS + step * STEP_MS)
    assert plots.caught_up_in_s("0") is None
    assert plots.caught_up_in_s("1") is None


def test_what_is_gone_is_forgotten_and_a_large_job_has_no_points() -> None:
    """So the bytes are bounded."""
    plots = Plots()
    plots.take([container("0"), container("1")], BEGIN_MS)
    plots.take([container("1")], BEGIN_MS + STEP_MS)
    assert len(plots) == 1
    plots.take([container(str(n)) for n in range(MAX_CONTAINERS)], BEGIN_MS + 2 * STEP_MS)
    assert len(plots) == MAX_CONTAINERS
    values = plots._series["1"].values
    assert sum(v.itemsize * len(v) for v in values) == 3_840
    plots.take([container(str(n)) for n in range(MAX_CONTAINERS + 1)], BEGIN_MS + 3 * STEP_MS)
    assert len(plots) == 0
