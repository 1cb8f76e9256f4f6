"""JSON form of the JobModel, held still by bytes that Samza's own classes wrote and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.secret_names import MASK
from homeport.job_coordinator.model.codec import (
    decode_job_model,
    encode_container_model,
    encode_job_model,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

GOLDEN = (
    b'{"config":{"job.name":"j"},"containers":{'
    b'"0":{"processor-id":"0","tasks":{"Partition 0":{"task-name":"Partition 0",'
    b'"system-stream-partitions":[{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}],'
    b'"changelog-partition":0,"task-mode":"Active"}}},'
    b'"0-0":{"processor-id":"0-0","tasks":{"Standby-Partition 0-0":{'
    b'"task-name":"Standby-Partition 0-0",'
    b'"system-stream-partitions":[{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}],'
    b'"changelog-partition":0,"task-mode":"Standby"}}}},'
    b'"max-change-log-stream-partitions":1}'
)


def _container(processor_id: str, task: str, mode: TaskMode) -> ContainerModel:
    name = TaskName(task)
    model = TaskModel(name, (SystemStreamPartition("kafka", "in", 0),), 0, mode)
    return ContainerModel(ProcessorId(processor_id), {name: model})


def _golden_model() -> JobModel:
    containers = (
        _container("0-0", "Standby-Partition 0-0", TaskMode.STANDBY),
        _container("0", "Partition 0", TaskMode.ACTIVE),
    )
    return JobModel(Config({"job.name": "j"}), {c.processor_id: c for c in containers})


def _golden_body() -> dict[str, Any]:
    body: dict[str, Any] = json.loads(GOLDEN)
    return body


def _decode(body: object) -> JobModel:
    return decode_job_model(json.dumps(body).encode())


def _task_of(body: dict[str, Any]) -> dict[str, Any]:
    task: dict[str, Any] = body["containers"]["0"]["tasks"]["Partition 0"]
    return task


def test_bytes_are_those_of_samza() -> None:
    """The model of the reference's example has the reference's bytes, in either masking."""
    assert encode_job_model(_golden_model(), mask_secrets=False) == GOLDEN
    assert encode_job_model(_golden_model(), mask_secrets=True) == GOLDEN


def test_samzas_bytes_give_the_model() -> None:
    """Reading the reference's bytes gives the model, and writing it the same bytes."""
    assert decode_job_model(GOLDEN) == _golden_model()
    assert encode_job_model(decode_job_model(GOLDEN), mask_secrets=False) == GOLDEN


def test_a_container_has_the_bytes_it_has_inside_the_job() -> None:
    """One container alone is written as within its JobModel."""
    model = _golden_model()
    assert encode_container_model(model.containers[ProcessorId("0")]) in GOLDEN


def test_a_job_without_containers() -> None:
    """No containers: an empty object, and changelogs of no partition."""
    assert encode_job_model(JobModel(Config(), {}), mask_secrets=False) == (
        b'{"config":{},"containers":{},"max-change-log-stream-partitions":0}'
    )


def test_non_ascii_is_utf_8() -> None:
    """Non-ASCII is written as UTF-8, not escaped, and read back."""
    model = JobModel(Config({"job.name": "Flüge 🛫"}), {})
    data = encode_job_model(model, mask_secrets=False)
    assert "Flüge 🛫".encode() in data
    assert decode_job_model(data) == model


def test_secrets_are_masked_only_where_asked() -> None:
    """The value of a secret key leaves only where masking is off."""
    model = JobModel(Config({"db.password": "pw", "job.name": "j"}), {})
    assert decode_job_model(encode_job_model(model, mask_secrets=False)) == model
    shown = decode_job_model(encode_job_model(model, mask_secrets=True))
    assert dict(shown.config) == {"db.password": MASK, "job.name": "j"}


def test_unknown_fields_are_ignored() -> None:
    """A newer writer may add fields at every level."""
    body = _golden_body()
    body["new"] = body["containers"]["0"]["new"] = _task_of(body)["new"] = 1
    _task_of(body)["system-stream-partitions"][0]["new"] = 1
    assert _decode(body) == _golden_model()


@pytest.mark.parametrize("mode", ["", None])
def test_a_task_without_mode_is_active(mode: str | None) -> None:
    """``task-mode`` missing, null or empty means active."""
    body = _golden_body()
    _task_of(body)["task-mode"] = mode
    assert _decode(body) == _golden_model()
    del _task_of(body)["task-mode"]
    assert _decode(body) == _golden_model()


def test_a_partition_without_key_bucket_has_minus_one() -> None:
    """``keyBucket`` missing means -1."""
    body = _golden_body()
    del _task_of(body)["system-stream-partitions"][0]["keyBucket"]
    assert _decode(body) == _golden_model()


def test_the_number_container_id_is_read_where_processor_id_is_missing() -> None:
    """``{"container-id":0}`` is the processor "0"; ``processor-id`` wins where both are there."""
    body = _golden_body()
    body["containers"]["0"]["container-id"] = 7
    assert _decode(body) == _golden_model()
    body["containers"]["0"].update({"processor-id": None, "container-id": 0})
    assert _decode(body) == _golden_model()


def test_a_container_without_any_id_is_refused() -> None:
    """Neither ``processor-id`` nor ``container-id``: refused in Samza's words."""
    body = _golden_body()
    del body["containers"]["0"]["processor-id"]
    with pytest.raises(WireError, match="missing processor-id and container-id"):
        _decode(body)


@pytest.mark.parametrize("field", ["config", "containers"])
@pytest.mark.parametrize("value", [None, 7, [], "x"])
def test_a_wrong_part_of_the_job_is_refused(field: str, value: object) -> None:
    """Both parts of the JobModel must be there, as objects."""
    with pytest.raises(WireError, match=field):
        _decode(_golden_body() | {field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task-name", None),
        ("changelog-partition", None),
        ("changelog-partition", "0"),
        ("task-mode", "Passive"),
        ("task-mode", 1),
        ("system-stream-partitions", None),
        ("system-stream-partitions", [1]),
        ("system-stream-partitions", [{}]),
        ("system-stream-partitions", [{"system": "s", "stream": "t", "partition": True}]),
        (
            "system-stream-partitions",
            [{"system": "s", "stream": "t", "partition": 0, "keyBucket": "x"}],
        ),
    ],
)
def test_a_wrong_field_of_a_task_is_refused(field: str, value: object) -> None:
    """Every field of a task and of its partitions is checked."""
    body = _golden_body()
    _task_of(body)[field] = value
    with pytest.raises(WireError):
        _decode(body)


@pytest.mark.parametrize(
    "container", [None, [], {"processor-id": "0"}, {"processor-id": 0, "tasks": {}}]
)
def test_a_wrong_container_is_refused(container: object) -> None:
    """A container is an object with an id of text and with tasks."""
    body = _golden_body()
    body["containers"]["0"] = container
    with pytest.raises(WireError):
        _decode(body)


@pytest.mark.parametrize("container_id", ["1", 1.0, True])
def test_a_container_id_that_is_no_number_is_refused(container_id: object) -> None:
    """Samza would read the text "1" as container 0; we refuse it."""
    body = _golden_body()
    body["containers"]["0"] = {"container-id": container_id, "tasks": {}}
    with pytest.raises(WireError, match="container-id"):
        _decode(body)


def test_a_config_value_that_is_no_text_is_refused() -> None:
    """Configuration is text to text."""
    with pytest.raises(WireError, match=r"job\.id"):
        _decode(_golden_body() | {"config": {"job.id": 1}})
