"""What AM and history hear of restores."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from homeport.container.incarnation import restoring
from homeport.container.incarnation.restoring import RestoreReport
from homeport.container.progress.restore import RestorePlan, progress_line
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind
from homeport.job_coordinator.status.container_report import ContainerReport, RestoreProgress

ONE, TWO = TaskName("Partition 1"), TaskName("Partition 2")


def _progress(task: TaskName, records: int) -> RestoreProgress:
    return RestoreProgress("s", task, records, 10 * records, 100 - records, 1.0, 5.0)


def test_the_am_hears_of_all_restores_under_way() -> None:
    """The last report of each; a finished one is no longer reported."""
    events: list[str] = []
    stated: list[ContainerReport] = []

    def history(name: str, **_fields: Any) -> None:  # noqa: ANN401 - whatever an event has
        events.append(name)

    report = RestoreReport(history, stated.append)
    for task in (ONE, TWO):
        report.restore_started("s", task, RestorePlan(0, 100))
    for progress in (_progress(ONE, 10), _progress(TWO, 20), _progress(ONE, 30)):
        report.restore_progress(progress)
    report.restore_finished("s", ONE, Restored(RestoreKind.FULL, 0, 99, 100))
    report.restore_finished("s", TWO, Restored(RestoreKind.FULL, 0, 99, 100))
    assert stated[2:] == [
        ContainerReport((_progress(ONE, 30), _progress(TWO, 20))),
        ContainerReport((_progress(TWO, 20),)),
        ContainerReport(),
    ]
    assert events == ["restore-started"] * 2 + ["restore-finished"] * 2


def test_a_restore_that_was_too_short_to_be_seen_is_never_reported() -> None:
    """A container that comes home leaves no report behind."""
    stated: list[ContainerReport] = []
    report = RestoreReport(lambda *_, **__: None, stated.append)
    report.restore_started("s", ONE, RestorePlan(0, 0))
    report.restore_finished("s", ONE, Restored(RestoreKind.NONE, None, None, 0))
    assert stated == []


def test_the_log_says_how_far_a_restore_is_every_five_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of each store by itself, however often it gets on."""
    now = 1000.0
    monkeypatch.setattr(restoring, "time", SimpleNamespace(monotonic=lambda: now))
    report = RestoreReport(lambda *_, **__: None, lambda _: None)
    report.restore_started("s", ONE, RestorePlan(0, 100))
    now = 1003.0
    report.restore_started("s", TWO, RestorePlan(0, 100))
    with caplog.at_level(logging.INFO, restoring.__name__):
        for second in range(1003, 1014):
            now = float(second)
            for task in (ONE, TWO):
                report.restore_progress(_progress(task, second - 1000))
    said = [(1005, ONE), (1008, TWO), (1010, ONE), (1013, TWO)]
    expected = [progress_line(_progress(task, second - 1000)) for second, task in said]
    assert [record.getMessage() for record in caplog.records] == expected
