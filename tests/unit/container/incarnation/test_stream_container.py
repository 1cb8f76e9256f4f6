"""What a stream container says of the place where it runs, as far as it goes without Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from homeport.config.config import Config
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import NoLauncher
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.coordinators import ApplicationMaster
from homeport.container.incarnation.environment import Environment
from homeport.container.incarnation.stream_container import StreamContainer
from homeport.container.incarnation.warm_up import GettingReady
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
}
OWN, TASK = ProcessorId("0"), TaskName("Partition 0")


@pytest.mark.parametrize("has_affinity", [True, False])
def test_a_container_says_where_its_tasks_are_where_the_job_has_host_affinity(
    tmp_path: Path, *, has_affinity: bool
) -> None:
    """Stream and history have its host, which later starts ask for; without the key neither."""
    task = TaskModel(TASK, (SystemStreamPartition("kafka", "in", 0),), 0)
    config = Config({**KEYS, "job.host-affinity.enabled": str(has_affinity).lower()})
    model = JobModel(config, {OWN: ContainerModel(OWN, {TASK: task})})
    job = ContainerJob.of(model, OWN)
    environment = Environment("http://127.0.0.1:1/", "", Host("nm1"), str(tmp_path), tmp_path)
    container = StreamContainer(
        job,
        Permit(Incarnation(OWN, 4), 7, ()),
        environment,
        ApplicationMaster(CoordinatorClient("http://127.0.0.1:1/", None)),
        StopFlag(),
        NoLauncher(),
        GettingReady(NoLauncher()),
    )
    stream = InMemoryCoordinatorStream()
    container._write_locality(cast("CoordinatorStreamStore", stream))
    stream.catch_up()
    localities = LocalityManager(stream)
    assert localities.read_processors() == ({OWN: "nm1"} if has_affinity else {})
    assert localities.read_tasks() == ({TASK: "nm1"} if has_affinity else {})
    files = tmp_path.glob("*/.history/*")
    events = [json.loads(line) for f in files for line in f.read_text("utf-8").splitlines()]
    said = [(e["event"], e["locality"], e["tasks"], e["epoch"]) for e in events]
    assert said == ([("locality-written", "nm1", [TASK], 4)] if has_affinity else [])
