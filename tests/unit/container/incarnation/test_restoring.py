"""What AM and history hear of restores; a directory that another process still holds."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_jobs import LOGGED, context_in, job_of

from homeport.config.errors import UnavailableError
from homeport.container.container_job import ContainerJob
from homeport.container.host.permit import Permit
from homeport.container.incarnation import restoring
from homeport.container.incarnation.restoring import (
    RestoreReport,
    is_predecessor,
    open_stores,
    restore_stores,
)
from homeport.container.incarnation.start_up import longest_stop_s
from homeport.container.progress.restore import RestorePlan, progress_line
from homeport.container.storage import host_survey
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import LOCK_FILE, NO_WAIT, DirectoryHeldError, Holder
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
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
    times = [(1005, ONE), (1008, TWO), (1010, ONE), (1013, TWO)]
    expected = [progress_line(_progress(task, second - 1000)) for second, task in times]
    assert [record.getMessage() for record in caplog.records] == expected


KEYS = {**LOGGED, "task.shutdown.ms": "20000", "cluster-manager.container.lease.ms": "10000"}
P0, P1 = ProcessorId("0"), ProcessorId("1")
PERMIT = Permit(Incarnation(P0, 5), 1, (Incarnation(P1, 2),))


def _holder(processor_id: ProcessorId, epoch: int, job: str = "j-1") -> Holder:
    return Holder.of(job, Incarnation(processor_id, epoch), Host("NM1"))


def _storage(folder: Path, job: ContainerJob, epoch: int) -> ContainerStorage:
    return ContainerStorage(
        folder, folder / "scratch", job.stores, job.tasks, 1 << 24, "G", NO_WAIT, _holder(P0, epoch)
    )


def test_the_wait_covers_a_stop_and_a_lease_that_runs_out() -> None:
    """task.shutdown.ms, the lease, and the AM's margin of a fifth of it."""
    assert longest_stop_s(job_of(KEYS)) == 32.0


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        (_holder(P0, 4), True),
        (_holder(P0, 5), False),
        (_holder(P0, 6), False),
        (_holder(P1, 2), True),
        (_holder(P1, 3), False),
        (_holder(P0, 4, "other-1"), False),
        (Holder.of_this_process(), False),
    ],
)
def test_predecessors_are_earlier_incarnations_and_those_of_the_permit(
    holder: Holder, *, expected: bool
) -> None:
    """Of this job alone: another's, a later one, and a tool are none."""
    assert is_predecessor("j-1", PERMIT, holder) is expected


def test_a_predecessor_that_has_not_ended_is_no_failure_of_ours(tmp_path: Path) -> None:
    """The container ends as it does when Kafka is away, which the retry keys are not charged."""
    job = job_of(KEYS)
    predecessor = _storage(tmp_path, job, 4)
    predecessor.open()
    stated = r"has it open: pid [0-9]+ on NM1 .*epoch 4\): a predecessor that has not ended yet"
    with pytest.raises(UnavailableError, match=stated):
        open_stores(_storage(tmp_path, job, 5), job, PERMIT)
    predecessor.close()
    successor = _storage(tmp_path, job, 5)
    open_stores(successor, job, PERMIT)
    successor.close()


@pytest.mark.parametrize("is_listed", [True, False])
def test_what_samza_has_left_is_no_condition_of_a_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_listed: bool,
) -> None:
    """The log names it; a folder that may be entered and not listed has none to name."""

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    if not is_listed:
        monkeypatch.setattr(host_survey, "os", SimpleNamespace(scandir=refused))
    monkeypatch.setattr(ContainerStorage, "restore", lambda *_: {"s": {}})
    (tmp_path / "s" / "Partition_0-17-18").mkdir(parents=True)
    job = job_of(KEYS)
    storage = _storage(tmp_path, job, 5)
    assert restore_stores(context_in(tmp_path, job, PERMIT), storage, {}) == {"s": {}}
    storage.close()
    lines = [line for line in caplog.messages if "Samza's store checkpoints" in line]
    assert len(lines) == (1 if is_listed else 0)


@pytest.mark.parametrize(
    ("is_known", "expected"),
    [(True, r"has it open: pid [0-9]+ on "), (False, "its lock does not say")],
)
def test_another_that_holds_a_directory_is_a_failure(
    tmp_path: Path, expected: str, *, is_known: bool
) -> None:
    """A tool is not part of the job, and may hold it for ever; an unknown holder is none either.

    A lock with an empty file, as on a full disk, counts as held by an unknown process.
    """
    other = StoreDirectory(tmp_path / "s" / "Partition_0")
    if not is_known:
        (tmp_path / "s" / "Partition_0" / LOCK_FILE).write_bytes(b"")
    job = job_of(KEYS)
    with pytest.raises(DirectoryHeldError, match=expected):
        open_stores(_storage(tmp_path, job, 5), job, PERMIT)
    other.release()


def test_generations_of_standalone_processors_are_in_one_order() -> None:
    """A lower one of any processor may still hold a directory, also one that was fenced before."""
    permit = replace(PERMIT, model="{}")
    assert is_predecessor("j-1", permit, _holder(P1, 3))
    assert not is_predecessor("j-1", permit, _holder(P1, 5))
