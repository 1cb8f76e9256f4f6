"""What a child leaves in the shared memory for its launcher."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from homeport.container.host import lease_memory
from homeport.container.host.exit_codes import EXIT_LEASE_LOST
from homeport.container.host.lease_memory import (
    FD_VARIABLE,
    LEASE_THREAD,
    REPORT_BYTES,
    LeaseMemory,
    SpareKind,
    watch_lease,
)
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import ContainerReport, StoreLag
from homeport.job_coordinator.status.figures import Sample
from homeport.job_coordinator.status.own_metrics import OwnMetric

LIMIT_S = 10
LONG = ContainerReport.following([StoreLag("s", TaskName(f"Partition {i}"), 1) for i in range(100)])


def _with(figures: int, own: int) -> ContainerReport:
    return ContainerReport(
        lag=1,
        figures=tuple(Sample("task_rows", (f"{i:0100}",), 1.0) for i in range(figures)),
        own=tuple(OwnMetric(f"m{i:0100}", "counter", (), 1.0) for i in range(own)),
    )


@pytest.fixture(name="memory")
def _memory() -> Iterator[LeaseMemory]:
    memory = LeaseMemory.endless(9)
    memory.deadline_ms = 7
    yield memory
    os.close(memory.fd)


def test_the_launcher_finds_the_last_report_of_the_child(memory: LeaseMemory) -> None:
    """By another mapping of the same memory, a shorter word after a longer one too."""
    child = LeaseMemory(memory.fd)
    assert memory.last_report() is None
    for report in (LONG, ContainerReport(lag=3), ContainerReport()):
        child.announce(report)
        assert memory.last_report() == report
        assert memory.last_report() == report
    assert (memory.deadline_ms, memory.beat_ms) == (7, 9)


def test_standbys_beside_active_tasks_have_a_part_of_the_report(memory: LeaseMemory) -> None:
    """Whichever of the two has said something last."""
    child = LeaseMemory(memory.fd)
    child.announce(ContainerReport(processed=1))
    lags = (StoreLag("s", TaskName("a"), 2, 0.5),)
    child.announce_standbys(ContainerReport.following(lags))
    beside = ContainerReport(lags=lags, lag=2, lag_seconds=0.5, processed=1)
    assert memory.last_report() == beside
    child.announce(ContainerReport(processed=5, input_lag=3))
    assert memory.last_report() == replace(beside, processed=5, input_lag=3)
    child.announce_standbys(ContainerReport())
    assert memory.last_report() == ContainerReport(processed=5, input_lag=3)


def test_a_report_that_is_being_written_is_left_for_the_next_look(memory: LeaseMemory) -> None:
    """Bytes that do not fit their checksum are no word: the one before holds."""
    memory.announce(ContainerReport(lag=3))
    assert memory.last_report() == ContainerReport(lag=3)
    os.pwrite(memory.fd, b"[", lease_memory._NUMBERS + lease_memory._HEAD.size)
    assert memory.last_report() == ContainerReport(lag=3)
    memory.announce(ContainerReport(lag=-1))
    assert memory.last_report() is None, "nonsense with a good checksum is not handed on"


def test_of_a_report_that_is_too_long_the_sums_are_passed_on(memory: LeaseMemory) -> None:
    """Single stores are left out."""
    lags = [StoreLag("s" * 100, TaskName(f"Partition {i}"), 2) for i in range(1000)]
    report = ContainerReport.following(lags)
    assert len(str(report.to_json())) > REPORT_BYTES
    memory.announce(report)
    assert memory.last_report() == ContainerReport(lag=2000)


def test_the_launcher_finds_which_spare_is_wanted(memory: LeaseMemory) -> None:
    """With the memory set apart for it; what the child says last counts; nonsense asks for none."""
    child = LeaseMemory(memory.fd)
    assert memory.spare is SpareKind.NONE
    for kind, share_mb in ((SpareKind.PLAIN, 0), (SpareKind.WARM, 928), (SpareKind.SPARK, 0)):
        child.want_spare(kind, share_mb)
        assert (memory.spare, memory.spare_share_mb) == (kind, share_mb)
    assert (memory.deadline_ms, memory.beat_ms, memory.last_report()) == (7, 9, None)
    os.pwrite(memory.fd, b"\xff" * 16, 16)
    assert (memory.spare, memory.spare_share_mb) == (SpareKind.NONE, 0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("is_ready", [True, False]),
        ("is_permit_near", [True]),
        ("is_finished", [True]),
        ("model_version", [8]),
    ],
)
def test_each_side_finds_what_the_other_has_set(
    memory: LeaseMemory, name: str, values: list[int]
) -> None:
    """Nothing at first, whatever else is said: a spare may be ready, and be so no longer."""
    other = LeaseMemory(memory.fd)
    other.announce(LONG)
    other.want_spare(SpareKind.WARM, 7)
    assert not getattr(memory, name)
    for value in values:
        setattr(other, name, value)
        assert getattr(memory, name) == value


def test_without_a_permit_there_is_no_deadline() -> None:
    """Not in a hundred years; that it beats is known from the start."""
    memory = LeaseMemory.endless(9)
    assert memory.deadline_ms - boot_ms() > 100 * 366 * 86_400_000
    assert memory.beat_ms == 9
    os.close(memory.fd)


def test_a_childs_watch_beats_until_the_deadline_in_a_daemon_thread() -> None:
    """Its thread is a daemon: a child that is done ends at once, whatever is left of its lease."""
    memory = LeaseMemory.endless()
    ended: list[int] = []
    others = set(threading.enumerate())
    child = watch_lease({FD_VARIABLE: str(memory.fd)}, ended.append)
    (thread,) = set(threading.enumerate()) - others
    try:
        assert child is not None
        assert (thread.name, thread.daemon) == (LEASE_THREAD, True)
        assert ended == []
    finally:
        memory.deadline_ms = 0
        thread.join(LIMIT_S)
        os.close(memory.fd)
    assert ended == [EXIT_LEASE_LOST]
    assert 0 < memory.beat_ms <= boot_ms()


def test_each_number_has_its_place(memory: LeaseMemory) -> None:
    """A launcher and its children are of one release: no other one reads them."""
    memory.deadline_ms, memory.beat_ms, memory.model_version = 1, 2, 8
    memory.want_spare(SpareKind.WARM, 4)
    memory.is_ready = memory.is_permit_near = memory.is_finished = memory.has_failed = True
    memory.fenced, memory.confirmed, memory.started, memory.resting = 9, 10, 11, 12
    assert list(memory.numbers) == [1, 2, 3, 4, 1, 1, 1, 8, 9, 10, 11, 12, 0, 1]


def test_each_incarnation_of_a_processors_child_speaks_for_itself(memory: LeaseMemory) -> None:
    """What was said by, or to, the one before is not true of the next; its report is gone."""
    child = LeaseMemory(memory.fd)
    child.fenced = 7
    memory.confirmed = 7
    child.started = 7
    child.announce(ContainerReport(processed=1))
    child.announce_standbys(ContainerReport(lag=2))
    child.say_rests(7)
    memory.rest()
    assert memory.deadline_ms > boot_ms() + 10**9
    assert (memory.fenced, child.confirmed, memory.started, memory.resting) == (7, 7, 7, 0)
    assert memory.last_report() == ContainerReport()
    child.announce(ContainerReport(processed=3))
    assert memory.last_report() == ContainerReport(processed=3)


@pytest.mark.parametrize(("figures", "own"), [(10, 10), (1000, 10), (10, 1000), (1000, 1000)])
def test_a_long_report_comes_without_figures_and_then_without_metrics(
    memory: LeaseMemory, figures: int, own: int
) -> None:
    """The metrics of the job's own go last: they alone are of what the job means."""
    memory.announce(_with(figures, own))
    kept = (0 if own > 10 or figures > 10 else figures), (0 if own > 10 else own)
    assert memory.last_report() == _with(*kept)
