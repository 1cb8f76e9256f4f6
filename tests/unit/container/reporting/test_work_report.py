"""An active container reports each fact of its work once; the last report has all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from homeport.config.config import Config
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.host import lease_memory
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.reporting.work_report import WorkReport
from homeport.container.storage.typed_store import ValueGuard
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import (
    STAGE_BOUNDS_S,
    AdjunctState,
    ContainerReport,
    DroppedValues,
)
from homeport.job_coordinator.status.figures import Sample

TASK = TaskName("Partition 0")
NONE_YET = ContainerReport(processed=0, input_lag=0)
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


class Stated:
    """The reports, and the clock of their times."""

    def __init__(self) -> None:
        self.elapsed_s = 1.5
        self.lag = 0
        self.reports: list[ContainerReport] = []
        self.work = WorkReport(self.reports.append, lambda: self.elapsed_s)

    def commit(self) -> None:
        """One more transaction."""
        self.work.ended()
        self.work.committed(lambda: self.lag)

    def idle(self, is_caught_up: Callable[[], bool]) -> None:
        """A poll that brought nothing."""
        self.work.idles(is_caught_up, lambda: self.lag)


@pytest.fixture
def stated() -> Stated:
    """Nothing yet, a second and a half after the start."""
    return Stated()


def test_the_first_transaction_is_reported_at_once_and_once(stated: Stated) -> None:
    """Later ones, and empty polls, report nothing and request nothing."""
    stated.commit()
    stated.elapsed_s = 9.0
    stated.commit()
    stated.idle(lambda: pytest.fail("asked on the way of every poll"))
    assert stated.reports == [replace(NONE_YET, first_commit_ms=1500)]


def test_an_empty_input_is_reported_and_the_transaction_after_it(stated: Stated) -> None:
    """It works from when it had seen that nothing waits; a partition may not have answered yet."""
    stated.idle(lambda: False)
    assert stated.reports == [NONE_YET]
    stated.idle(lambda: True)
    stated.elapsed_s = 60.0
    stated.idle(lambda: pytest.fail("it has been reported"))
    stated.commit()
    assert stated.reports[1:] == [
        replace(NONE_YET, caught_up_ms=1500),
        replace(NONE_YET, first_commit_ms=60_000, caught_up_ms=1500),
    ]
    assert [report.works_after_ms for report in stated.reports] == [None, 1500, 1500]


def test_a_launcher_finds_it_in_the_memory_that_it_shares() -> None:
    """The report of a start is over by then: the last word holds."""
    memory = LeaseMemory.endless()
    memory.announce(ContainerReport())
    WorkReport(memory.announce, lambda: 0.25).committed(int)
    assert memory.last_report() == replace(NONE_YET, first_commit_ms=250)
    assert ContainerReport(lag=1).works_after_ms is None


def test_its_launcher_knows_how_long_ago_it_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each commit, and each poll that brings nothing, also where no fact is new."""
    now_ms = [1_000]
    monkeypatch.setattr(lease_memory, "boot_ms", lambda: now_ms[0])
    memory = LeaseMemory.endless()
    assert LeaseMemory(memory.fd).quiet_ms is None
    report = WorkReport(memory.announce, lambda: 0.25, memory.say_works)
    for is_idle in (False, True, False, True):
        if is_idle:
            report.idles(lambda: True, int)
        else:
            report.committed(int)
        assert memory.quiet_ms == 0
        now_ms[0] += 70
        assert memory.quiet_ms == 70
    memory.say_rests(1)
    assert LeaseMemory(memory.fd).quiet_ms is None, "the next incarnation has not worked yet"


def test_without_a_launcher_nothing_is_reported() -> None:
    """As in a benchmark."""
    WorkReport().committed(int)


def test_dropped_values_are_reported_with_the_next_commit(stated: Stated) -> None:
    """Stores that dropped none, or have no limit, are left out; other facts stay."""
    guards = [stated.work.count(ValueGuard.of(STORE, TaskName(f"Partition {i}"))) for i in range(2)]
    assert stated.work.count(None) is None
    assert guards[0] is not None
    stated.commit()
    for _ in range(2):
        assert guards[0].admitted({b"a": b"1234", b"b": b"123"}) == {b"b": b"123"}
    stated.commit()
    stated.commit()
    first = replace(NONE_YET, first_commit_ms=1500)
    assert stated.reports == [first, replace(first, dropped=(DroppedValues("s", TASK, 2),))]


def test_records_and_lag_are_reported_once_a_second_at_most(stated: Stated) -> None:
    """Records of a transaction count once it is committed; an idle container reports the rest."""
    stated.work.read(10)
    stated.lag = 7
    stated.idle(lambda: False)
    stated.elapsed_s = 2.0
    stated.commit()
    for _ in range(5):
        stated.work.read(1)
        stated.commit()
    stated.elapsed_s = 2.5
    stated.lag = 2
    stated.idle(lambda: True)
    stated.idle(lambda: True)
    numbers = [(report.processed, report.input_lag) for report in stated.reports]
    assert numbers == [(0, 7), (0, 7), (15, 2)]


def test_records_that_are_read_while_a_transaction_is_sent_are_not_of_it(stated: Stated) -> None:
    """They count with the next one."""
    stated.work.read(10)
    stated.work.ended()
    stated.work.read(5)
    stated.work.committed(lambda: 0)
    stated.elapsed_s = 3.0
    stated.commit()
    assert [report.processed for report in stated.reports] == [10, 15]


def test_the_time_of_each_stage_is_reported_with_the_numbers(stated: Stated) -> None:
    """In milliseconds, as a sum since the container began; and how often each has worked."""
    for stage, seconds in (("tasks", 0.5), ("fetch", 0.25), ("tasks", 1.0)):
        stated.work.spent(stage, seconds)
    stated.commit()
    (fetch, tasks) = stated.reports[-1].stages
    assert (fetch.stage, fetch.ms, fetch.times) == ("fetch", 250, 1)
    assert (tasks.stage, tasks.ms, tasks.times) == ("tasks", 1500, 2)
    took = {
        bound: count for bound, count in zip(STAGE_BOUNDS_S, tasks.buckets, strict=False) if count
    }
    assert took == {0.5: 1, 1.0: 1}  # a time that is a bound is within it
    assert len(tasks.buckets) == len(STAGE_BOUNDS_S) + 1


def test_figures_are_sampled_every_five_seconds_and_stay_between(stated: Stated) -> None:
    """The numbers of each second come with the last sample; rows of tasks are counted."""
    values = iter(range(100))
    stated.work.add_figures(lambda: [Sample("rocksdb_cache_bytes", (), next(values))])
    seen = []
    for _ in range(8):
        stated.work.had_rows("Partition 0", 3)
        stated.commit()
        seen.append({sample.name: sample.value for sample in stated.reports[-1].figures})
        stated.elapsed_s += 1
    assert [x["rocksdb_cache_bytes"] for x in seen] == [0, 0, 0, 0, 0, 1, 1, 1]
    assert [x["task_rows"] for x in seen] == [3, 3, 3, 3, 3, 18, 18, 18]


def test_adjunct_stores_are_reported_about_once_a_second(stated: Stated) -> None:
    """As all that changes all the time."""
    asked = []

    def states() -> tuple[AdjunctState, ...]:
        asked.append(stated.elapsed_s)
        return (AdjunctState("a", TASK, "kafka.a", "broadcast", len(asked)),)

    stated.work.report_adjuncts(states)
    for _ in range(3):
        stated.commit()
    stated.elapsed_s = 2.5
    stated.commit()
    assert asked == [1.5, 2.5]
    assert [state.records for report in stated.reports for state in report.adjuncts] == [1, 2]
