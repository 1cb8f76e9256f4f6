"""A job coordinator's server before a job of any size, in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from homeport.config.config import Config
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.status.shape import ShownStatus

TOKEN = "of-the-benchmark"  # noqa: S105 - opens this server only
_KEYS = 100


def model_of(containers: int, tasks_each: int, config_bytes: int) -> JobModel:
    """A JobModel of that size; the configuration has 100 keys, or as many as its bytes need."""
    values = {f"stores.store-{n}.rocksdb.compression": "lz4" for n in range(_KEYS)}
    size, n = 0, 0
    while size < config_bytes:
        n += 1
        key, value = f"streams.stream-{n}.samza.physical.name", f"topic-{n * 2654435761 % 2**32:x}"
        values[key] = value
        size += len(key) + len(value) + 6
    found = {}
    for number in range(containers):
        processor_id = ProcessorId(str(number))
        tasks = {}
        for partition in range(number * tasks_each, (number + 1) * tasks_each):
            name = TaskName(f"Partition {partition}")
            ssp = SystemStreamPartition("kafka", "input-topic", partition)
            tasks[name] = TaskModel(name, (ssp,), partition)
        found[processor_id] = ContainerModel(processor_id, tasks)
    return JobModel(Config(values), found)


class _Backend:
    """Serves one model, and nothing else."""

    def __init__(self, model: JobModel) -> None:
        self._model = model

    def job_model(self, version: int | None) -> JobModel | None:
        return self._model if version in {None, 1} else None

    def locality(self) -> Mapping[ProcessorId, Host]:
        return {}

    def status(self) -> ShownStatus:
        return ShownStatus()


async def _serve(model: JobModel) -> None:
    server = JobCoordinatorServer(_Backend(model), TOKEN, "127.0.0.1", 0)
    _, port = await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


def serve(containers: int, tasks_each: int, config_bytes: int) -> None:
    """Print the port, and serve until standard input ends."""
    asyncio.run(_serve(model_of(containers, tasks_each, config_bytes)))
