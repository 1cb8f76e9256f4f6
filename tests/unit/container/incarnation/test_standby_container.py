"""The start of a standby container, as far as it goes without Kafka."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import NoLauncher
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.container.incarnation import standby_container, start_up
from homeport.container.incarnation.coordinators import ApplicationMaster
from homeport.container.incarnation.environment import Environment
from homeport.container.incarnation.standby_container import StandbyContainer
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.grouper.standby_models import with_standbys
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.class": "m:C",
        "task.inputs": "kafka.in",
        "systems.kafka.consumer.bootstrap.servers": "a:1",
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": "kafka.log",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "json",
    }
)
OWN = ProcessorId("0-0")
EARLIER = (Incarnation(OWN, 3), Incarnation(ProcessorId("0"), 2))


def _job() -> ContainerJob:
    task = TaskModel(TaskName("Partition 0"), (SystemStreamPartition("kafka", "in", 0),), 0)
    active = ContainerModel(ProcessorId("0"), {task.task_name: task})
    containers = with_standbys({active.processor_id: active}, 1)
    return ContainerJob.of(JobModel(CONFIG, containers), OWN)


class _Stream(InMemoryCoordinatorStream):
    """Says when it is read; by then a later permit of the standby is in it."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self._steps = steps
        EpochManager(self).write_processor_epoch(OWN, ProcessorEpoch(5, 7, ()))

    def bootstrap(self) -> None:
        """It is read to its head."""
        self._steps.append("read")
        self.catch_up()


def test_a_standby_fences_its_list_before_it_looks_whether_it_was_overtaken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Safety I3: in this order; one that was overtaken goes no further, and writes nothing."""
    steps: list[str] = []
    stream = _Stream(steps)
    before = list(stream.log)
    monkeypatch.setattr(standby_container, "give_way", lambda: None)
    monkeypatch.setattr(start_up, "open_coordinator_stream", lambda _: nullcontext(stream))
    monkeypatch.setattr(start_up, "await_kafka", lambda *_: steps.append("kafka"))
    monkeypatch.setattr(start_up, "fence", lambda _, id_: steps.append(id_))
    job = _job()
    container = StandbyContainer(
        job,
        Permit(Incarnation(OWN, 4), 7, EARLIER),
        Environment("http://127.0.0.1:1/", "", Host("nm1"), str(tmp_path), tmp_path),
        ApplicationMaster(CoordinatorClient("http://127.0.0.1:1/", None)),
        StopFlag(),
        NoLauncher(),
    )
    with pytest.raises(OvertakenError, match="processor 0-0 epoch 4 was overtaken by epoch 5"):
        container.run()
    assert (steps[0], steps[-1]) == ("kafka", "read")
    assert sorted(steps[1:-1]) == sorted(job.transactional_id(i) for i in EARLIER)
    assert stream.log == before
