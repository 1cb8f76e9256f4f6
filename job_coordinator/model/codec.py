"""Writes and reads the JSON of the JobModel, whole and in pieces, and of localities, as Samza 1.8.

PURE. Rules for editing: the order of the fields below *is* the format; the golden bytes in the unit
tests hold it still. The odd ones out: ``keyBucket`` is the only name in camel case, and an input
partition lists its own number before its stream. Unknown fields are ignored on reading, so that a
newer writer can add some.

``max-change-log-stream-partitions`` follows from the tasks: it is written, and ignored on reading.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring as json_text
from typing import Any, Self

from homeport.config.config import INT_MAX, Config
from homeport.config.errors import WireError
from homeport.config.secret_names import shown_value
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName, host_of
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
    mirrored,
)
from homeport.job_coordinator.model.json_values import (
    as_object,
    compact_json,
    optional_field,
    optional_number,
    parse_object,
    required_field,
    required_number,
    shown,
    utf_8,
)

_BEGIN = b'{"config":'
_CONTAINERS = b',"containers":{'
_KEYS_AT_ONCE = 1000


def encode_job_model(model: JobModel, *, mask_secrets: bool) -> bytes:
    """Return the JobModel as compact JSON, all in the order of names: equal models, equal bytes.

    ``mask_secrets``: whether secret values of the configuration are replaced by asterisks.
    """
    pieces = JobModelPieces.of(model, mask_secrets=mask_secrets)
    return b"".join((*pieces.head, encode_containers(model), pieces.end))


def decode_job_model(data: bytes) -> JobModel:
    """Return the JobModel that ``data`` holds; a standby's active task is the one it mirrors.

    Old forms are read too: a container that names itself by the number ``container-id``, a task
    without ``task-mode`` (active), a partition without ``keyBucket`` (-1).

    WireError: not JSON, or a field is missing or of the wrong type.
    """
    body = parse_object(data, "JobModel")
    containers = {
        ProcessorId(id_): _read_container(as_object(container, f"container {id_!r}"))
        for id_, container in required_field(body, "containers", dict).items()
    }
    fields = required_field(body, "config", dict)
    config = Config({key: required_field(fields, key, str) for key in fields})
    return JobModel(config, mirrored(config, dict(sorted(containers.items()))))


def _container(container: ContainerModel) -> str:
    """Return Samza's fields, and where it is, if known, which Samza's reader ignores.

    Texts are put together here: an encoder of objects takes three times as long.
    """
    tasks = ",".join([_task(name, container.tasks[name]) for name in sorted(container.tasks)])
    at = container.location_id
    location = "" if at is None else f',"location-id":{json_text(at)}'
    return f'{{"processor-id":{json_text(container.processor_id)},"tasks":{{{tasks}}}{location}}}'


def _task(name: TaskName, task: TaskModel) -> str:
    partitions = ",".join(
        [
            f'{{"system":{json_text(ssp.system)},"partition":{ssp.partition},'
            f'"stream":{json_text(ssp.stream)},"keyBucket":{ssp.key_bucket}}}'
            for ssp in task.system_stream_partitions
        ]
    )
    return (
        f'{json_text(name)}:{{"task-name":{json_text(task.task_name)},'
        f'"system-stream-partitions":[{partitions}],'
        f'"changelog-partition":{task.changelog_partition},"task-mode":"{task.task_mode.value}"}}'
    )


def partition_body(ssp: SystemStreamPartition) -> dict[str, Any]:
    """Return the input partition as JSON, its names in the order that is the format."""
    return {
        "system": ssp.system,
        "partition": ssp.partition,
        "stream": ssp.stream,
        "keyBucket": ssp.key_bucket,
    }


def _read_container(body: dict[str, Any]) -> ContainerModel:
    tasks = {
        TaskName(name): _read_task(as_object(task, f"task {name!r}"))
        for name, task in required_field(body, "tasks", dict).items()
    }
    location = optional_field(body, "location-id", str)
    return ContainerModel(
        _read_processor_id(body),
        dict(sorted(tasks.items())),
        location_id=None if location is None else Host(location),
    )


def _read_processor_id(body: dict[str, Any]) -> ProcessorId:
    if body.get("processor-id") is not None:
        return ProcessorId(required_field(body, "processor-id", str))
    if body.get("container-id") is not None:
        # Samza 0.13 and older. Samza reads the text "1" here as container 0; it is refused instead.
        return ProcessorId(str(required_number(body, "container-id", 0, INT_MAX)))
    raise WireError("JobModel was missing processor-id and container-id")


def _read_task(body: dict[str, Any]) -> TaskModel:
    mode = optional_field(body, "task-mode", str)
    try:
        task_mode = TaskMode(mode) if mode else TaskMode.ACTIVE
    except ValueError:
        raise WireError(f"unknown task-mode {shown(mode)}") from None
    partitions = [
        partition_of(as_object(ssp, "system-stream-partition"))
        for ssp in required_field(body, "system-stream-partitions", list)
    ]
    return TaskModel(
        task_name=TaskName(required_field(body, "task-name", str)),
        system_stream_partitions=tuple(sorted(partitions)),
        changelog_partition=required_number(body, "changelog-partition", -1, INT_MAX),
        task_mode=task_mode,
    )


def partition_of(body: dict[str, Any]) -> SystemStreamPartition:
    """Return the input partition that ``body`` is.

    WireError: a field is missing or of the wrong type.
    """
    key_bucket = optional_number(body, "keyBucket", -1, INT_MAX)
    return SystemStreamPartition(
        system=required_field(body, "system", str),
        stream=required_field(body, "stream", str),
        partition=required_number(body, "partition", 0, INT_MAX),
        key_bucket=-1 if key_bucket is None else key_bucket,
    )


@dataclass(frozen=True, slots=True)
class JobModelPieces:
    """The bytes around the containers of a JobModel, encoded once for a thousand containers.

    ``config``: the JSON object of the configuration; ``end``: all that follows the containers.
    """

    config: bytes
    end: bytes

    @classmethod
    def of(cls, model: JobModel, *, mask_secrets: bool) -> Self:
        """Return the pieces of ``model``; ``mask_secrets`` as in ``encode_job_model``."""
        highest = b"%d" % model.max_change_log_stream_partitions
        return cls(
            _encoded_config(model.config, mask_secrets=mask_secrets),
            b'},"max-change-log-stream-partitions":' + highest + b"}",
        )

    @property
    def head(self) -> tuple[bytes, ...]:
        """All that comes before the first container."""
        return _BEGIN, self.config, _CONTAINERS


def encode_containers(model: JobModel) -> bytes:
    """Return all containers as they stand between the braces of the whole JobModel."""
    return b",".join(_member(id_, model.containers[id_]) for id_ in sorted(model.containers))


def encode_part(model: JobModel, processor_id: ProcessorId) -> bytes:
    """Return a processor's container as it stands between the braces of its part of the JobModel.

    The part of a container with standbys has the containers of their active tasks too: a reader
    recognises these tasks by what both have in common.
    """
    tasks = model.containers[processor_id].tasks.values()
    actives = (task.active_task for task in tasks if task.active_task is not None)
    ids = {processor_id, *(model.owners[name] for name in actives)}
    return b",".join(_member(id_, model.containers[id_]) for id_ in sorted(ids))


def _member(processor_id: ProcessorId, container: ContainerModel) -> bytes:
    return utf_8(f"{json_text(processor_id)}:{_container(container)}")


def _encoded_config(config: Config, *, mask_secrets: bool) -> bytes:
    # Some keys at a time: a configuration of megabytes is never there as objects once more, and
    # other threads get their turn.
    items = iter(config.items())
    pieces = []
    while some := dict(itertools.islice(items, _KEYS_AT_ONCE)):
        if mask_secrets:
            some = {key: shown_value(key, value) for key, value in some.items()}
        pieces.append(compact_json(some)[1:-1])
    return b"{" + b",".join(pieces) + b"}"


def encode_locality(hosts: Mapping[ProcessorId, Host | None]) -> bytes:
    """Return ``{"processor-localities":{"0":{"id":"0","host":"h1",...}}}``, by processor id.

    Shapes: ``hosts`` {processor: the host of its last successful start; None: none is known}.
    """
    localities = {id_: _locality(id_, hosts[id_]) for id_ in sorted(hosts)}
    return compact_json({"processor-localities": localities})


def encode_processor_locality(processor_id: ProcessorId | None, host: Host | None) -> bytes:
    """Return ``{"id":"0","host":"h1","jmx-url":"","jmx-tunneling-url":""}``; no host: empty.

    ``processor_id``: None in the answer to a question that names no processor.
    """
    return compact_json(_locality(processor_id, host))


def decode_locality(data: bytes) -> dict[ProcessorId, Host | None]:
    """Return {processor: its host; None: none is known} of ``data``; unknown fields are ignored.

    WireError: not JSON, or a field is missing or of the wrong type.
    """
    body = required_field(parse_object(data, "LocalityModel"), "processor-localities", dict)
    hosts: dict[ProcessorId, Host | None] = {}
    for id_, value in sorted(body.items()):
        locality = as_object(value, f"locality of {id_!r}")
        required_field(locality, "id", str)
        hosts[ProcessorId(id_)] = host_of(required_field(locality, "host", str)) or None
    return hosts


def _locality(processor_id: ProcessorId | None, host: Host | None) -> dict[str, Any]:
    # The JMX addresses are Samza's; a Python process has none.
    return {"id": processor_id, "host": host or "", "jmx-url": "", "jmx-tunneling-url": ""}
