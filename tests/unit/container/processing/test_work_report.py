"""What several sources tell of a container that works is one report."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.settings.stores_section import StorageConfig
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


def test_what_one_source_told_stays_when_another_tells() -> None:
    """Drops are told when there are new ones; stores without any, or without a limit, are left."""
    told: list[ContainerReport] = []
    report = WorkReport(told.append)
    guards = [report.count(ValueGuard.of(STORE, TaskName(f"Partition {i}"))) for i in range(2)]
    assert report.count(None) is None
    assert guards[0] is not None
    report.dropped()
    assert told == []
    report.first_work(ContainerReport(first_commit_ms=7))
    for _ in range(2):
        assert guards[0].admitted({b"a": b"1234", b"b": b"123"}) == {b"b": b"123"}
    report.dropped()
    report.dropped()
    dropped = (DroppedValues("s", TASK, 2),)
    assert told[1:] == [ContainerReport(first_commit_ms=7, dropped=dropped)]
    report.first_work(ContainerReport(caught_up_ms=9))
    assert told[2:] == [ContainerReport(caught_up_ms=9, dropped=dropped)]
