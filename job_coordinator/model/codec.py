"""JSON form of the JobModel, as Samza 1.8 writes and reads it.

PURE. Rules for editing: the order of the fields below *is* the format; the golden bytes in the unit
tests hold it still. The odd ones out: ``keyBucket`` is the only name in camel case, and an input
partition lists its own number before its stream. Unknown fields are ignored on reading, so that a
newer writer can add some.

``max-change-log-stream-partitions`` follows from the tasks; it is written, and what is read of it
is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from homeport.config.config import INT_MAX, Config, masked
from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
    mirrored,
)
from homeport.job_coordinator.model.json_values import (
    compact_json,
    parse_object,
    required_field,
    required_number,
    shown,
)
from homeport.job_coordinator.model.wire_form import about, value_of

_Count = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
_Index = Annotated[int, msgspec.Meta(ge=-1, le=INT_MAX)]


class _PartitionBody(msgspec.Struct, frozen=True, rename={"key_bucket": "keyBucket"}):
    system: str
    partition: _Count
    stream: str
    key_bucket: _Index | None = None


class _TaskBody(msgspec.Struct, frozen=True, rename="kebab"):
    task_name: TaskName
    system_stream_partitions: tuple[_PartitionBody, ...]
    changelog_partition: _Index
    task_mode: str | None = None


class _ContainerBody(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Samza's fields, and where it is, if that is known, which Samza's reader ignores.

    ``container_id``: a number, which Samza 0.13 and older have in the place of ``processor_id``.
    """

    processor_id: ProcessorId | UnsetType | None = UNSET
    tasks: Annotated[Mapping[TaskName, _TaskBody], about("its tasks, by their names")]
    location_id: Host | UnsetType | None = UNSET
    container_id: Any | UnsetType = UNSET


class JobModelBody(msgspec.Struct, frozen=True, rename="kebab"):
    """The JobModel as JSON."""

    config: Annotated[
        Mapping[str, Annotated[str, about("the value of a key")]], about("all keys, secrets masked")
    ]
    containers: Annotated[
        Mapping[ProcessorId, Annotated[_ContainerBody, about("a container")]],
        about("by the processor id"),
    ]
    max_change_log_stream_partitions: Annotated[int, about("partitions that a changelog has")]


def encode_job_model(model: JobModel, *, mask_secrets: bool) -> bytes:
    """The JobModel as compact JSON, everything in the order of its name: equal models, equal bytes.

    Args:
        model: what is encoded.
        mask_secrets: whether secret values of the configuration are replaced by asterisks.
    """
    body = JobModelBody(
        dict(masked(model.config) if mask_secrets else model.config),
        {id_: _body(model.containers[id_]) for id_ in sorted(model.containers)},
        model.max_change_log_stream_partitions,
    )
    return compact_json(msgspec.to_builtins(body))


def encode_container_model(container: ContainerModel) -> bytes:
    """One container of a JobModel, in the form it has inside one."""
    return compact_json(msgspec.to_builtins(_body(container)))


def decode_job_model(data: bytes) -> JobModel:
    """The JobModel that ``data`` holds; a standby's active task is the one it mirrors.

    Old forms are read too: a container that names itself by the number ``container-id``, a task
    without ``task-mode`` (active), a partition without ``keyBucket`` (-1).

    Raises:
        WireError: not JSON, or a field is missing or of the wrong type.
    """
    whole = parse_object(data, "JobModel")
    config = required_field(whole, "config", dict)
    ours = {"config": {}, "max-change-log-stream-partitions": 0}
    body = value_of(JobModelBody, whole | ours, "JobModel")
    containers = {id_: _container_of(body.containers[id_]) for id_ in sorted(body.containers)}
    return JobModel(
        Config({key: required_field(config, key, str) for key in config}), mirrored(containers)
    )


def _body(container: ContainerModel) -> _ContainerBody:
    return _ContainerBody(
        processor_id=container.processor_id,
        tasks={name: _task_body(container.tasks[name]) for name in sorted(container.tasks)},
        location_id=UNSET if container.location_id is None else container.location_id,
    )


def _task_body(task: TaskModel) -> _TaskBody:
    partitions = tuple(map(_partition_body, task.system_stream_partitions))
    return _TaskBody(task.task_name, partitions, task.changelog_partition, task.task_mode.value)


def _partition_body(ssp: SystemStreamPartition) -> _PartitionBody:
    return _PartitionBody(ssp.system, ssp.partition, ssp.stream, ssp.key_bucket)


def partition_body(ssp: SystemStreamPartition) -> dict[str, Any]:
    """The input partition as JSON, its names in the order that is the format."""
    body: dict[str, Any] = msgspec.to_builtins(_partition_body(ssp))
    return body


def _container_of(body: _ContainerBody) -> ContainerModel:
    return ContainerModel(
        _processor_id(body),
        {name: _task_of(body.tasks[name]) for name in sorted(body.tasks)},
        location_id=body.location_id or None,
    )


def _processor_id(body: _ContainerBody) -> ProcessorId:
    if isinstance(body.processor_id, str):
        return body.processor_id
    if body.container_id is UNSET or body.container_id is None:
        raise WireError("JobModel was missing processor-id and container-id")
    # Samza 0.13 and older. Samza reads the text "1" here as container 0; it is refused instead.
    number = required_number({"container-id": body.container_id}, "container-id", 0, INT_MAX)
    return ProcessorId(str(number))


def _task_of(body: _TaskBody) -> TaskModel:
    try:
        mode = TaskMode(body.task_mode) if body.task_mode else TaskMode.ACTIVE
    except ValueError:
        raise WireError(f"unknown task-mode {shown(body.task_mode)}") from None
    partitions = tuple(sorted(map(_partition, body.system_stream_partitions)))
    return TaskModel(body.task_name, partitions, body.changelog_partition, mode)


def _partition(body: _PartitionBody) -> SystemStreamPartition:
    bucket = -1 if body.key_bucket is None else body.key_bucket
    return SystemStreamPartition(body.system, body.stream, body.partition, bucket)


def partition_of(body: Mapping[str, Any]) -> SystemStreamPartition:
    """The input partition that ``body`` is.

    Raises:
        WireError: a field is missing or of the wrong type.
    """
    return _partition(value_of(_PartitionBody, body, "system-stream-partition"))
