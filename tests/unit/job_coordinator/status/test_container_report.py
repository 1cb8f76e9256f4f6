"""What stream containers report, and its JSON form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import (
    AdjunctState,
    ContainerReport,
    DroppedValues,
    RestoreProgress,
    StageTime,
    StoreLag,
)
from homeport.job_coordinator.status.figures import Sample

TASK = TaskName("Partition 0")
PROGRESS = RestoreProgress("s", TASK, 5, 60, 7, 2.5, None)
DROPPED = (DroppedValues("s", TASK, 2),)
STAGES = (StageTime("tasks", 7, 3, (1, 2)),)
FIGURES = (Sample("store_entries", ("s",), 12), Sample("rocksdb_cache_bytes", (), 0.5))
ADJUNCTS = (
    AdjunctState("a", TASK, "kafka.a", "partitioned", 3, positions={"0": 4, "7": 1}),
    AdjunctState(
        "b", TASK, "kafka.b", "broadcast", 3, 4096, {"0": 4}, 5, 6, 7.5, 8.5, 9, 1, "an end"
    ),
)
REPORT = ContainerReport(
    (PROGRESS,),
    (StoreLag("t", TASK, 3, 0.5),),
    3,
    0.5,
    dropped=DROPPED,
    stages=STAGES,
    adjuncts=ADJUNCTS,
    figures=FIGURES,
)


def test_what_is_left_to_read_is_a_lag_or_what_restores_have() -> None:
    """With the files that are merged at the end; of one that does neither it is not known."""
    restores = (PROGRESS, RestoreProgress("t", TASK, 0, 0, 5, 0.0, None, 17))
    reports = [ContainerReport(restores), REPORT, ContainerReport()]
    assert [report.left_to_read for report in reports] == [7 + 5 + 17, 3, None]


@pytest.mark.parametrize(
    "report",
    [
        REPORT,
        ContainerReport(),
        ContainerReport(lags=(StoreLag("t", TASK, 0),), lag=0),
        ContainerReport((RestoreProgress("s", TASK, 0, 0, 0, 0.0, 12.5),)),
        ContainerReport(first_commit_ms=0, caught_up_ms=7),
        ContainerReport(processed=12, input_lag=0),
        ContainerReport(stages=(StageTime("fetch", 0), StageTime("tasks", 7))),
        ContainerReport((RestoreProgress("s", TASK, 0, 0, 0, 0.0, None, 17),)),
    ],
)
def test_every_report_survives_the_wire(report: ContainerReport) -> None:
    """Written as JSON and read again, each is the same."""
    assert ContainerReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_a_container_of_before_does_not_say_what_a_store_awaits() -> None:
    """Its report is taken as it is."""
    body = json.loads(json.dumps(REPORT.to_json()))
    del body["adjuncts"][0]["awaits"]
    assert ContainerReport.from_json(body) == REPORT


def test_a_report_has_the_bytes_of_its_form() -> None:
    """Launchers of an earlier package report to a later driver, field by field."""
    body = ContainerReport(
        (PROGRESS,),
        (StoreLag("t", TASK, 3, 0.5),),
        3,
        0.5,
        dropped=DROPPED,
        stages=STAGES,
        adjuncts=ADJUNCTS[1:],
        figures=FIGURES,
    )
    assert json.dumps(body.to_json()) == (
        '{"restoring": [{"store": "s", "task": "Partition 0", "records": 5, "bytes": 60, '
        '"remaining": 7, "records_per_s": 2.5, "seconds_left": null, "merging": 0}], '
        '"lags": [{"store": "t", "task": "Partition 0", "records": 3, "seconds": 0.5}], '
        '"lag": 3, "lag_seconds": 0.5, "first_commit_ms": null, "caught_up_ms": null, '
        '"dropped": [{"store": "s", "task": "Partition 0", "count": 2}], '
        '"processed": null, "input_lag": null, '
        '"stages": [{"stage": "tasks", "ms": 7, "times": 3, "buckets": [1, 2]}], '
        '"input_lost": null, "adjuncts": [{"store": "b", "task": "Partition 0", '
        '"input": "kafka.b", "kind": "broadcast", "records": 3, "bytes": 4096, '
        '"positions": {"0": 4}, "lag": 5, "remaining": 6, "seconds_left": 7.5, '
        '"age_seconds": 8.5, "version": 9, "late": 1, "awaits": "an end"}], '
        '"figures": [["store_entries", ["s"], 12], ["rocksdb_cache_bytes", [], 0.5]]}'
    )


def test_a_standby_is_as_late_as_its_latest_store() -> None:
    """Records of all its stores together, seconds of the one furthest behind."""
    lags = [StoreLag("s", TASK, 3, 0.5), StoreLag("t", TASK, 4, 2.0), StoreLag("u", TASK, 0)]
    report = ContainerReport.following(lags, ADJUNCTS)
    assert (report.lags, report.lag, report.lag_seconds) == (tuple(lags), 7, 2.0)
    assert report.adjuncts == ADJUNCTS
    assert ContainerReport.following(lags[2:]).lag_seconds is None
    assert report.in_brief() == ContainerReport(lag=7, lag_seconds=2.0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["restoring"], None),
        (["restoring", 0], 1),
        (["restoring", 0, "store"], None),
        (["restoring", 0, "task"], 1),
        (["restoring", 0, "records"], -1),
        (["restoring", 0, "bytes"], True),
        (["restoring", 0, "records_per_s"], "2"),
        (["restoring", 0, "seconds_left"], -0.5),
        (["restoring", 0, "seconds_left"], float("inf")),
        (["first_commit_ms"], -1),
        (["caught_up_ms"], 0.5),
        (["lags"], {}),
        (["lags", 0, "records"], None),
        (["lags", 0, "seconds"], True),
        (["restoring", 0, "merging"], -1),
        (["dropped"], {}),
        (["dropped", 0], 1),
        (["dropped", 0, "count"], -1),
        (["lag"], "7"),
        (["lag"], -1),
        (["processed"], -1),
        (["input_lag"], "0"),
        (["adjuncts"], {}),
        (["adjuncts", 0], 1),
        (["adjuncts", 0, "store"], None),
        (["adjuncts", 0, "input"], 1),
        (["adjuncts", 0, "kind"], None),
        (["adjuncts", 0, "records"], -1),
        (["adjuncts", 0, "bytes"], "4"),
        (["adjuncts", 0, "positions"], []),
        (["adjuncts", 0, "positions", "0"], None),
        (["adjuncts", 0, "lag"], -1),
        (["adjuncts", 0, "remaining"], 0.5),
        (["adjuncts", 0, "seconds_left"], -1.0),
        (["adjuncts", 0, "age_seconds"], "1"),
        (["adjuncts", 0, "version"], True),
        (["adjuncts", 0, "late"], "1"),
        (["adjuncts", 0, "awaits"], 1),
        (["stages"], {}),
        (["stages", 0], 1),
        (["stages", 0, "stage"], None),
        (["stages", 0, "ms"], -1),
        (["lag_seconds"], "1"),
    ],
)
def test_a_report_with_a_wrong_field_is_refused(path: list[Any], value: object) -> None:
    """A WireError, in one line, whatever is wrong."""
    body = json.loads(json.dumps(REPORT.to_json()))
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(WireError, match=r"^[^\n]+$"):
        ContainerReport.from_json(body)


def test_whole_numbers_are_numbers() -> None:
    """JSON of others writes 2 for 2.0."""
    body = REPORT.to_json() | {"lag_seconds": 2}
    assert ContainerReport.from_json(body).lag_seconds == 2.0


def test_an_active_one_works_from_its_first_commit_or_once_nothing_waits() -> None:
    """What came first counts; before both it does not work yet."""
    assert ContainerReport().works_after_ms is None
    assert ContainerReport(first_commit_ms=5).works_after_ms == 5
    assert ContainerReport(first_commit_ms=5, caught_up_ms=3).works_after_ms == 3


def test_standbys_are_shown_beside_active_tasks() -> None:
    """Of one container: the work of its tasks, the lag of its standbys."""
    lags = (StoreLag("s", TaskName("Standby-a-0"), 3, 0.5),)
    both = ContainerReport(processed=7).beside(ContainerReport.following(lags))
    assert (both.processed, both.lags, both.lag, both.lag_seconds) == (7, lags, 3, 0.5)
