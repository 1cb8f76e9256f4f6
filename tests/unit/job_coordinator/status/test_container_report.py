"""What stream containers report, and its JSON form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest
from golden_values import STATUS
from statuses import body_of_status, status_of

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.config.errors import WireError
from homeport.job_coordinator.http.metrics import figures, stage_times
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.standalone.state import WorkPhase
from homeport.job_coordinator.status.container_report import (
    STAGE_BOUNDS_S,
    AdjunctState,
    ContainerReport,
    DroppedValues,
    RestoreProgress,
    StageTime,
    StoreLag,
)
from homeport.job_coordinator.status.figures import Sample
from homeport.job_coordinator.status.shape import Phase, ShownStatus

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
        (["restoring", 0, "store"], None),
        (["restoring", 0, "task"], 1),
        (["restoring", 0, "records"], -1),
        (["restoring", 0, "seconds_left"], -0.5),
        (["restoring", 0, "seconds_left"], float("inf")),
        (["first_commit_ms"], -1),
        (["caught_up_ms"], 0.5),
        (["lags"], {}),
        (["lags", 0, "records"], None),
        (["restoring", 0, "merging"], -1),
        (["dropped", 0, "count"], -1),
        (["lag"], -1),
        (["processed"], -1),
        (["adjuncts"], {}),
        (["adjuncts", 0, "input"], 1),
        (["adjuncts", 0, "kind"], None),
        (["adjuncts", 0, "records"], -1),
        (["adjuncts", 0, "positions"], []),
        (["adjuncts", 0, "positions", "0"], None),
        (["adjuncts", 0, "lag"], -1),
        (["adjuncts", 0, "seconds_left"], -1.0),
        (["adjuncts", 0, "awaits"], 1),
        (["stages", 0, "stage"], None),
        (["stages", 0, "ms"], -1),
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


def _leaves(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each number and text below value."""
    items: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    elif value is not None:
        yield path
    for key, each in items:
        yield from _leaves(each, (*path, key))


@pytest.mark.parametrize("value", [{}, -1], ids=["kind", "negative"])
@pytest.mark.parametrize("path", [*_leaves(REPORT.to_json())], ids=lambda p: ".".join(map(str, p)))
def test_each_field_of_another_kind_or_below_nothing_is_refused(
    path: tuple[Any, ...], value: object
) -> None:
    """All numbers of a report count something."""
    test_a_report_with_a_wrong_field_is_refused(list(path), value)


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


def test_each_phase_of_both_cluster_managers_is_one_of_the_status() -> None:
    """A processor without work is shown as waiting."""
    words = {phase.value for phase in (*ContainerPhase, *WorkPhase)} - {WorkPhase.IDLE.value}
    assert words | {"waiting", "unknown"} == {phase.value for phase in Phase}


def test_a_phase_of_a_later_version_stays_as_it_is() -> None:
    """Shown and passed on; no phase that is known."""
    body = {"containers": [{"processor_id": "0", "phase": "dancing"}]}
    (container,) = status_of(body).containers
    assert (container.phase.value, str(container.phase)) == ("dancing", "dancing")
    assert container.phase not in {*Phase}
    with pytest.raises(ValueError, match="7"):
        Phase(7)  # type: ignore[arg-type]  # wrong on purpose
    assert body_of_status(status_of(body))["containers"][0]["phase"] == "dancing"


def test_a_body_of_another_kind_is_refused() -> None:
    """The line has the path of the field."""
    with pytest.raises(WireError, match=r"the status: .* - at `\$\.containers\[0\]\.phase`"):
        status_of({"containers": [{"processor_id": "0", "phase": 7}]})


def test_a_container_is_found_by_its_name() -> None:
    """None where there is none."""
    (container,) = STATUS.containers
    assert STATUS.container(container.processor_id) is container
    assert STATUS.container(ProcessorId("9")) is None


def test_the_golden_status_leaves_no_field_at_its_default() -> None:
    """So that a renamed field is seen, whichever it is."""

    def defaults(value: msgspec.Struct, path: str) -> list[str]:
        found = []
        for field in msgspec.structs.fields(type(value)):
            own = getattr(value, field.name)
            if not field.required and own == field.default:
                found.append(f"{path}.{field.name}")
            inner = own if isinstance(own, tuple) else (own,)
            found += [
                each
                for one in inner
                if isinstance(one, msgspec.Struct) and one is not STATUS.rolling_restart
                for each in defaults(one, f"{path}.{field.name}")
            ]
        return found

    assert defaults(STATUS, "status") == []
