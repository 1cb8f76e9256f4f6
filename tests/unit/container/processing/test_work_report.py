"""An active container reports each fact of its work once; the last report has all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.config import Config
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.processing.work_report import WorkReport
from homeport.container.storage.value_guard import ValueGuard
from homeport.job_coordinator.http.container_report import ContainerReport, DroppedValues
from homeport.job_coordinator.model.ids import TaskName

TASK = TaskName("Partition 0")
STORE = StorageConfig.of(
    Config(
        {
            "job.default.system": "kafka",
            "stores.s.factory": "rocksdb",
            "stores.s.changelog": "kafka.log",
            "stores.s.key.serde": "bytes",
            "stores.s.msg.serde": "bytes",
            "stores.s.changelog.max.message.size.bytes": "3",
            "stores.s.drop.large.messages": "true",
        }
    )
).stores["s"]


class Told:
    """The reports, and the clock of their times."""

    def __init__(self) -> None:
        self.elapsed_s = 1.5
        self.reports: list[ContainerReport] = []
        self.work = WorkReport(self.reports.append, lambda: self.elapsed_s)


@pytest.fixture
def stated() -> Told:
    """Nothing yet, a second and a half after the start."""
    return Told()


def test_the_first_transaction_is_reported_at_once_and_once(stated: Told) -> None:
    """Later ones, and empty polls, report nothing and request nothing."""
    stated.work.committed()
    stated.elapsed_s = 9.0
    stated.work.committed()
    stated.work.idles(lambda: pytest.fail("asked on the way of every poll"))
    assert stated.reports == [ContainerReport(first_commit_ms=1500)]


def test_an_empty_input_is_reported_and_the_transaction_after_it(stated: Told) -> None:
    """It works from when it had seen that nothing waits; a partition may not have answered yet."""
    stated.work.idles(lambda: False)
    assert stated.reports == []
    stated.work.idles(lambda: True)
    stated.elapsed_s = 60.0
    stated.work.idles(lambda: pytest.fail("it has been reported"))
    stated.work.committed()
    assert stated.reports == [
        ContainerReport(caught_up_ms=1500),
        ContainerReport(first_commit_ms=60_000, caught_up_ms=1500),
    ]
    assert [report.works_after_ms for report in stated.reports] == [1500, 1500]


def test_a_launcher_finds_it_in_the_memory_that_it_shares() -> None:
    """The report of a start is over by then: the last word holds."""
    memory = LeaseMemory.create(1, 1)
    memory.announce(ContainerReport())
    WorkReport(memory.announce, lambda: 0.25).committed()
    assert memory.last_report() == ContainerReport(first_commit_ms=250)
    assert ContainerReport(lag=1).works_after_ms is None


def test_without_a_launcher_nothing_is_reported() -> None:
    """As in a benchmark."""
    WorkReport().committed()


def test_dropped_values_are_reported_with_the_next_commit(stated: Told) -> None:
    """Stores that dropped none, or have no limit, are left out; other facts stay."""
    guards = [stated.work.count(ValueGuard.of(STORE, TaskName(f"Partition {i}"))) for i in range(2)]
    assert stated.work.count(None) is None
    assert guards[0] is not None
    stated.work.committed()
    for _ in range(2):
        assert guards[0].admitted({b"a": b"1234", b"b": b"123"}) == {b"b": b"123"}
    stated.work.committed()
    stated.work.committed()
    first = ContainerReport(first_commit_ms=1500)
    assert stated.reports == [first, replace(first, dropped=(DroppedValues("s", TASK, 2),))]
