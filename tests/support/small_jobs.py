"""Small jobs for tests of containers: few keys, one container and its standby, no Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from homeport.config.config import Config
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.context import IncarnationContext, history_of
from homeport.container.incarnation.coordinators import ApplicationMaster
from homeport.container.incarnation.environment import Environment
from homeport.job_coordinator.grouper.standby_models import with_standbys
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

NOWHERE = "http://127.0.0.1:1/"
KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
}


def store_keys(name: str = "s", serde: str = "bytes", **more: str) -> dict[str, str]:
    """Return the keys of a store in RocksDB, whose keys and values have the serde.

    In ``more`` a dot is written as an underscore.
    """
    own = {"factory": "rocksdb", "key.serde": serde, "msg.serde": serde}
    own |= {key.replace("_", "."): value for key, value in more.items()}
    return {f"stores.{name}.{key}": value for key, value in own.items()}


LOGGED = {**KEYS, **store_keys(changelog="kafka.log")}


def task_of(partition: int = 0, *streams: str) -> TaskModel:
    """Return the task that reads this partition of each stream, or of ``kafka.in``."""
    places = (stream.split(".") for stream in streams or ("kafka.in",))
    inputs = tuple(SystemStreamPartition(system, name, partition) for system, name in places)
    return TaskModel(TaskName(f"Partition {partition}"), inputs, partition)


def model_of(keys: Mapping[str, str], *tasks: TaskModel) -> JobModel:
    """Return the JobModel of container 0, which has these tasks or one, and its standby 0-0."""
    own = ProcessorId("0")
    container = ContainerModel(own, {task.task_name: task for task in tasks or (task_of(),)})
    return JobModel(Config(keys), with_standbys({own: container}, 1))


def job_of(keys: Mapping[str, str], processor_id: str = "0", *tasks: TaskModel) -> ContainerJob:
    """Return what that container of ``model_of`` knows."""
    return ContainerJob.of(model_of(keys, *tasks), ProcessorId(processor_id))


def environment_in(folder: Path, base: Path | None = None) -> Environment:
    """Return the surroundings of a container on nm1 that works in the folder.

    ``base``: below which its state lives; without one below the folder.
    """
    return Environment(Host("nm1"), str(base or folder), folder)


def no_master() -> ApplicationMaster:
    """Return an application master that does not answer."""
    return ApplicationMaster(CoordinatorClient(NOWHERE, None), StopFlag())


def context_in(
    folder: Path,
    job: ContainerJob,
    permit: Permit,
    stop: StopFlag | None = None,
    **more: Any,  # noqa: ANN401 - as the fields are
) -> IncarnationContext:
    """Return the context of an incarnation in the folder, with ``more`` of its fields.

    Its AM does not answer, and its launcher's memory has no reader.
    """
    environment, stop, launcher = environment_in(folder), stop or StopFlag(), LeaseMemory.endless()
    own = (history_of(job, permit, environment), launcher.announce, stop.pause)
    made = IncarnationContext(job, permit, environment, no_master(), stop, launcher, *own)
    return replace(made, **more)
