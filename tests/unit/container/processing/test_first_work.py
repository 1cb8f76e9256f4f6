"""A container tells of its first work, each fact once, by the report that its launcher hands on."""

from __future__ import annotations

import pytest

from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.processing.first_work import FirstWork
from homeport.job_coordinator.http.container_report import ContainerReport


class Told:
    """What was told, and the clock that it was told by."""

    def __init__(self) -> None:
        self.elapsed_s = 1.5
        self.reports: list[ContainerReport] = []
        self.work = FirstWork(lambda: self.elapsed_s, self.reports.append)


@pytest.fixture
def told() -> Told:
    """Nothing yet, a second and a half after the start."""
    return Told()


def test_the_first_transaction_is_told_at_once_and_once(told: Told) -> None:
    """Later ones, and polls that bring nothing, tell nothing, nor is anybody asked."""
    told.work.committed()
    told.elapsed_s = 9.0
    told.work.committed()
    told.work.idles(lambda: pytest.fail("asked on the way of every poll"))
    assert told.reports == [ContainerReport(first_commit_ms=1500)]


def test_where_no_input_waits_that_is_told_and_the_transaction_after_it(told: Told) -> None:
    """It works from when it had seen that nothing waits; a partition may not have answered yet."""
    told.work.idles(lambda: False)
    assert told.reports == []
    told.work.idles(lambda: True)
    told.elapsed_s = 60.0
    told.work.idles(lambda: pytest.fail("it has been told"))
    told.work.committed()
    assert told.reports == [
        ContainerReport(caught_up_ms=1500),
        ContainerReport(first_commit_ms=60_000, caught_up_ms=1500),
    ]
    assert [report.works_after_ms for report in told.reports] == [1500, 1500]


def test_a_launcher_finds_it_in_the_memory_that_it_shares() -> None:
    """The report of a start is over by then: the last word holds."""
    memory = LeaseMemory.create(1, 1)
    memory.tell(ContainerReport())
    FirstWork(lambda: 0.25, memory.tell).committed()
    assert memory.told() == ContainerReport(first_commit_ms=250)
    assert ContainerReport(lag=1).works_after_ms is None


def test_without_a_launcher_nobody_is_told() -> None:
    """As in a benchmark."""
    FirstWork().committed()
