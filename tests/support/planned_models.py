"""JobModels of standalone processors, by the names of their tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode, TaskModel
from homeport.job_coordinator.standalone.plan import Standby


def model_of(
    tasks: Mapping[ProcessorId, Collection[TaskName]],
    standbys: Mapping[ProcessorId, Collection[Standby]] = MappingProxyType({}),
    partition: int = 0,
) -> JobModel:
    """Each processor has these tasks and standbys; ``partition``: of the changelogs, of all."""
    containers = {}
    for id_ in sorted({*tasks, *standbys}):
        active = {t: TaskModel(t, (), partition) for t in tasks.get(id_, ())}
        kept = {
            s.name: TaskModel(s.name, (), partition, TaskMode.STANDBY, s.task)
            for s in standbys.get(id_, ())
        }
        containers[id_] = ContainerModel(id_, {**active, **kept})
    return JobModel(Config({}), containers)
