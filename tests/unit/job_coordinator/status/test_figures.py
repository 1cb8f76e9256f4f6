"""The figures of a container: what the wire carries of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from statuses import status_of

from homeport.config.errors import WireError
from homeport.job_coordinator.http.metrics import figures, stage_times
from homeport.job_coordinator.status.container_report import STAGE_BOUNDS_S, ContainerReport
from homeport.job_coordinator.status.figures import Sample
from homeport.job_coordinator.status.shape import ShownStatus


def _figures(*items: Any) -> tuple[Sample, ...]:  # noqa: ANN401 - JSON
    return ContainerReport.from_json({"figures": [*items]}).figures


def test_a_figure_of_another_version_is_left_out() -> None:
    """The others stay, in their order."""
    items = [["store_entries", ["s"], 1], ["of tomorrow", [], 2], ["rocksdb_cache_bytes", [], 3.5]]
    assert _figures(*items) == (
        Sample("store_entries", ("s",), 1),
        Sample("rocksdb_cache_bytes", (), 3.5),
    )


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("store_entries", "Expected `array`"),
        (["store_entries", ["s"]], "at least length 3"),
        ([7, ["s"], 1], "Expected `str`"),
        (["store_entries", "s", 1], "Expected `array`"),
        (["store_entries", ["s"], "1"], "Expected `float`"),
        (["store_entries", [], 1], "has the labels"),
        (["store_entries", [7], 1], "Expected `str`"),
        (["store_entries", ["s"], True], "Expected `float`"),
        (["store_entries", ["s"], -1], ">= 0"),
        (["store_entries", ["s"], float("nan")], ">= 0"),
        (["store_entries", ["s"], 1e19], "< 1e"),
    ],
)
def test_a_wrong_figure_is_refused(item: Any, why: str) -> None:  # noqa: ANN401 - JSON
    """The error has the rule."""
    with pytest.raises(WireError, match=why):
        _figures(item)


def _status(*reports: dict[str, Any]) -> ShownStatus:
    """Processors 0, 1 and so on, with these reports."""
    rows = [{"processor_id": str(n), "report": body} for n, body in enumerate(reports)]
    return status_of({"containers": rows})


def test_each_processor_has_its_own_series() -> None:
    """A figure that nothing reports has none; what grows is a counter."""
    reports: list[dict[str, Any]] = [
        {"figures": [["task_rows", ["Partition 0"], 5]]},
        {},
        {"figures": [["task_rows", ["Partition 2"], 7]]},
    ]
    series = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in figures(_status(*reports))
        for sample in metric.samples
    }
    assert series == {
        ("homeport_task_rows_total", "0", "Partition 0"): 5,
        ("homeport_task_rows_total", "2", "Partition 2"): 7,
    }


def test_times_of_a_stage_are_a_histogram() -> None:
    """Counts add up from bound to bound; a container with other bounds is left out."""
    counts = [0] * (len(STAGE_BOUNDS_S) + 1)
    counts[1], counts[-1] = 2, 1
    stages = [{"stage": "tasks", "ms": 1500, "times": 3, "buckets": counts}]
    other = [{"stage": "tasks", "ms": 1, "times": 1, "buckets": [1]}, {"stage": "fetch", "ms": 1}]
    metric = stage_times(_status({"stages": stages}, {"stages": other}, {}))
    found = {
        (s.name.removeprefix("homeport_stage_duration_seconds"), s.labels.get("le")): s.value
        for s in metric.samples
    }
    assert found["_bucket", "0.005"] == 0
    assert found["_bucket", "0.01"] == 2
    assert found["_bucket", "30.0"] == 2
    assert found["_bucket", "+Inf"] == 3
    assert (found["_sum", None], found["_count", None]) == (1.5, 3)
    assert {s.labels["processor"] for s in metric.samples} == {"0"}
