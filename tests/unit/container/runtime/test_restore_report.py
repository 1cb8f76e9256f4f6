"""What AM and history hear of restores."""

from __future__ import annotations

from typing import Any

from homeport.container.progress.restore import RestorePlan
from homeport.container.runtime.restore_report import RestoreReport
from homeport.job_coordinator.http.container_report import ContainerReport, RestoreProgress
from homeport.job_coordinator.http.messages import Restored, RestoreKind
from homeport.job_coordinator.model.ids import TaskName

ONE, TWO = TaskName("Partition 1"), TaskName("Partition 2")


def _progress(task: TaskName, records: int) -> RestoreProgress:
    return RestoreProgress("s", task, records, 10 * records, 100 - records, 1.0, 5.0)


def test_the_am_hears_of_all_restores_under_way() -> None:
    """The last word of each; a finished one is no longer told of."""
    events: list[str] = []
    told: list[ContainerReport] = []

    def history(name: str, **_fields: Any) -> None:  # noqa: ANN401 - whatever an event has
        events.append(name)

    report = RestoreReport(history, told.append)
    for task in (ONE, TWO):
        report.restore_started("s", task, RestorePlan(0, 100))
    for progress in (_progress(ONE, 10), _progress(TWO, 20), _progress(ONE, 30)):
        report.restore_progress(progress)
    report.restore_finished("s", ONE, Restored(RestoreKind.FULL, 0, 99, 100))
    report.restore_finished("s", TWO, Restored(RestoreKind.FULL, 0, 99, 100))
    assert told[2:] == [
        ContainerReport((_progress(ONE, 30), _progress(TWO, 20))),
        ContainerReport((_progress(TWO, 20),)),
        ContainerReport(),
    ]
    assert events == ["restore-started"] * 2 + ["restore-finished"] * 2


def test_a_restore_that_was_too_short_to_be_told_of_is_told_of_by_nothing() -> None:
    """A container that comes home leaves no report behind."""
    told: list[ContainerReport] = []
    report = RestoreReport(lambda *_, **__: None, told.append)
    report.restore_started("s", ONE, RestorePlan(0, 0))
    report.restore_finished("s", ONE, Restored(RestoreKind.NONE, None, None, 0))
    assert told == []
