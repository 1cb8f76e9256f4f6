"""The published classes of Apache Samza 1.8.0 on our JobModel, localities and URLs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from coordinator_server import RUNNING, Backend, Loop, serving
from samza_peer import SamzaPeer

from homeport.config.config import Config
from homeport.job_coordinator.model.codec import (
    decode_job_model,
    decode_locality,
    encode_job_model,
    encode_locality,
    encode_processor_locality,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
    mirrored,
)

#: What JSON is particular about.
_ODD = 'größe-ß "日本" \\ 😀\t\x01\u2028.x'


def _container(id_: str, *tasks: TaskModel) -> ContainerModel:
    return ContainerModel(ProcessorId(id_), {task.task_name: task for task in tasks})


def _task(name: str, number: int, mode: TaskMode, *streams: str) -> TaskModel:
    ssps = [SystemStreamPartition("kafka", stream, n) for n, stream in enumerate(streams)]
    return TaskModel(TaskName(name), tuple(sorted(ssps)), number, mode)


_CONTAINERS = (
    _container("0", _task("Partition 0", 0, TaskMode.ACTIVE, "my-topic.v1", "to all")),
    _container("0-0", _task("Standby-Partition 0-0", 0, TaskMode.STANDBY, "my-topic.v1", "to all")),
    _container("prozessor-ä.1 b", _task(_ODD, 12, TaskMode.ACTIVE, _ODD)),
)
_MIXED = (
    _container("0", _task("a", 0, TaskMode.ACTIVE, "t"), _task("a 2", 2, TaskMode.ACTIVE, "u")),
    _container("1", _task("Standby-a-0", 0, TaskMode.STANDBY, "t")),
    _container("2"),
    _container("3", _task("b", 1, TaskMode.ACTIVE, "v"), _task("s", 2, TaskMode.STANDBY, "u")),
)


def _model(*containers: ContainerModel, **keys: str) -> JobModel:
    config = Config({"job.name": _ODD, **keys})
    return JobModel(config, mirrored(config, {c.processor_id: c for c in containers}))


_MODEL = _model(*_CONTAINERS)
_MIXED_MODEL = _model(*_MIXED, **{"job.container.mixed-roles": "true"})


def _sorted_inputs(text: str) -> str:
    """Samza keeps a task's inputs in a hash set: their order is not one."""
    body = json.loads(text)
    for container in body["containers"].values():
        for task in container["tasks"].values():
            task["system-stream-partitions"].sort(key=lambda s: (s["system"], s["stream"]))
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("model", [_MODEL, _MIXED_MODEL], ids=["one role", "mixed roles"])
def test_a_job_model_survives_samza_byte_for_byte(samza: SamzaPeer, model: JobModel) -> None:
    """G26: our bytes, read by Samza and written again, are our bytes, and read as our model.

    Mixed containers may have both modes, standby tasks alone, or no task.
    """
    ours = encode_job_model(model, mask_secrets=False).decode()
    theirs = samza.ask("job-model", ours)
    assert _sorted_inputs(theirs) == ours
    assert decode_job_model(theirs.encode()) == model


def test_old_job_models_read_alike(samza: SamzaPeer) -> None:
    """G26: a number as container-id, no task-mode, no keyBucket, unknown fields: as Samza reads."""
    old = (
        '{"config":{},"unknown":1,"containers":{"1":{"container-id":1,"tasks":{"T":{"task-name":'
        '"T","system-stream-partitions":[{"system":"s","partition":0,"stream":"t"}],'
        '"changelog-partition":3}}}}}'
    )
    theirs = samza.ask("job-model", old)
    assert theirs.encode() == encode_job_model(decode_job_model(old.encode()), mask_secrets=False)


def test_localities_survive_samza_byte_for_byte(samza: SamzaPeer) -> None:
    """Of one processor or of all, with a host or without: read by Samza and written again."""
    known = {ProcessorId("0-0"): Host("nm-1.größe"), ProcessorId("1"): Host("nm2")}
    ours = encode_locality(known).decode()
    theirs = samza.ask("locality-model", ours)
    assert json.loads(theirs) == json.loads(ours)
    assert decode_locality(theirs.encode()) == known
    for host in (Host("nm1"), None):
        one = encode_processor_locality(ProcessorId("0"), host).decode()
        assert samza.ask("processor-locality", one) == one


@pytest.fixture
def url() -> Iterator[str]:
    """A job coordinator's server, with the slash at its end that Samza expects."""
    backend = Backend()
    backend.models = {None: _MODEL}
    backend.localities = {ProcessorId("0-0"): Host("nm1")}
    with closing(Loop()) as loop, serving(loop, backend) as served:
        yield served.url


def test_samzas_container_reads_our_url(samza: SamzaPeer, url: str) -> None:
    """G30: SamzaContainer's own reader gets the JobModel, localities and heartbeats parse."""
    theirs = samza.ask("job-model-at", url)
    assert _sorted_inputs(theirs).encode() == encode_job_model(_MODEL, mask_secrets=False)
    localities = samza.ask("locality-model", samza.ask("text-at", f"{url}locality"))
    assert json.loads(localities)["processor-localities"]["0-0"]["host"] == "nm1"
    unknown = samza.ask("text-at", f"{url}locality?processorId=9")
    assert json.loads(samza.ask("processor-locality", unknown))["host"] == ""
    assert samza.ask("is-alive", [url, RUNNING]) is True
    assert samza.ask("is-alive", [url, f"{RUNNING}3"]) is False
