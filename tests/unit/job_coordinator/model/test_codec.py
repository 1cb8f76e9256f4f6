"""JSON form of the JobModel, held still by bytes that Samza's own classes wrote and read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config, masked
from homeport.config.errors import WireError
from homeport.config.secret_values import MASK
from homeport.job_coordinator.grouper.standby_models import with_standbys
from homeport.job_coordinator.model.codec import (
    JobModelPieces,
    decode_job_model,
    decode_locality,
    encode_containers,
    encode_job_model,
    encode_locality,
    encode_part,
    encode_processor_locality,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)
from homeport.job_coordinator.model.json_values import compact_json

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


def _task(name: str, mode: TaskMode = TaskMode.ACTIVE, of: str | None = None) -> TaskModel:
    ssps = (SystemStreamPartition("kafka", "in", 0),)
    return TaskModel(TaskName(name), ssps, 0, mode, TaskName(of) if of else None)


def _container(processor_id: str, task: TaskModel, of: str | None = None) -> ContainerModel:
    tasks = {task.task_name: task}
    return ContainerModel(ProcessorId(processor_id), tasks, ProcessorId(of) if of else None)


def _golden_model() -> JobModel:
    standby = _task("Standby-Partition 0-0", TaskMode.STANDBY, "Partition 0")
    containers = (_container("0-0", standby, "0"), _container("0", _task("Partition 0")))
    return JobModel(Config({"job.name": "j"}), {c.processor_id: c for c in containers})


_OF_CONTAINER: tuple[str | int, ...] = ("containers", "0")
_OF_TASK = (*_OF_CONTAINER, "tasks", "Partition 0")
_OF_SSPS = (*_OF_TASK, "system-stream-partitions")
_GONE = object()
"""A field that is taken away."""


def _decode(*changes: tuple[tuple[str | int, ...], object]) -> JobModel:
    """What is read of the golden bytes after ``changes``: (path of a field, its value)."""
    body = json.loads(GOLDEN)
    for path, value in changes:
        *steps, field = path
        place = body
        for step in steps:
            place = place[step]
        if value is _GONE:
            del place[field]
        else:
            place[field] = value
    return decode_job_model(json.dumps(body).encode())


def test_bytes_are_those_of_samza() -> None:
    """The model of the reference's example has the reference's bytes, in either masking."""
    assert encode_job_model(_golden_model(), mask_secrets=False) == GOLDEN
    assert encode_job_model(_golden_model(), mask_secrets=True) == GOLDEN


def test_samzas_bytes_give_the_model() -> None:
    """G26: reading the reference's bytes gives the model, and writing it the same bytes."""
    assert decode_job_model(GOLDEN) == _golden_model()
    assert encode_job_model(decode_job_model(GOLDEN), mask_secrets=False) == GOLDEN


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


def test_a_standby_belongs_to_what_it_mirrors_and_not_to_what_its_name_says() -> None:
    """Ids that would mislead: an active with a hyphen, a standby that is called like another's."""
    other = (SystemStreamPartition("kafka", "in", 1),)
    active = TaskModel(TaskName("Standby-a-0"), other, 1)
    standby = TaskModel(TaskName("Standby-Partition 0-0"), other, 1, TaskMode.STANDBY)
    containers = (
        _container("0", _task("Partition 0")),
        _container("0-0", active),
        _container("0-1", standby),
    )
    model = JobModel(Config(), {c.processor_id: c for c in containers})
    read = decode_job_model(encode_job_model(model, mask_secrets=False)).containers
    assert read[ProcessorId("0-0")].role is TaskMode.ACTIVE
    assert read[ProcessorId("0-1")].active_processor == "0-0"
    assert read[ProcessorId("0-1")].tasks[standby.task_name].active_task == "Standby-a-0"


def test_a_standby_without_an_active_and_one_beside_active_tasks_are_read() -> None:
    """Its active is unknown where no field names it; with an active task a container is active."""
    stray = TaskModel(TaskName("s"), (), 7, TaskMode.STANDBY)
    beside = _task("Standby-Partition 0-0", TaskMode.STANDBY)
    mixed = _container("1", TaskModel(TaskName("Partition 1"), (), 1))
    mixed = ContainerModel(mixed.processor_id, {**mixed.tasks, beside.task_name: beside})
    containers = (_container("0", _task("Partition 0")), mixed, _container("2", stray))
    model = JobModel(Config(), {c.processor_id: c for c in containers})
    read = decode_job_model(encode_job_model(model, mask_secrets=False)).containers
    assert read[ProcessorId("1")].role is TaskMode.ACTIVE
    assert read[ProcessorId("1")].tasks[beside.task_name].active_task == "Partition 0"
    assert read[ProcessorId("2")].active_processor is None
    assert read[ProcessorId("2")].tasks[stray.task_name].active_task is None


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)


@settings(deadline=None)  # the machine may be busy
@given(_TEXT, _TEXT, _TEXT, _TEXT, st.integers(0, 999))
def test_any_names_survive(
    processor_id: str, task: str, system: str, stream: str, number: int
) -> None:
    """Defect 17.2: dots, hyphens, quotes, any script, in ids of every kind: read as written."""
    ssp = SystemStreamPartition(system, stream, number)
    container = _container(processor_id, TaskModel(TaskName(task), (ssp,), number))
    model = JobModel(Config({stream: task}), {container.processor_id: container})
    assert decode_job_model(encode_job_model(model, mask_secrets=False)) == model


def test_secrets_are_masked_only_on_request() -> None:
    """The value of a secret key leaves only where masking is off."""
    model = JobModel(Config({"db.password": "pw", "job.name": "j"}), {})
    assert decode_job_model(encode_job_model(model, mask_secrets=False)) == model
    shown = decode_job_model(encode_job_model(model, mask_secrets=True))
    assert dict(shown.config) == {"db.password": MASK, "job.name": "j"}


@pytest.mark.parametrize(
    "changes",
    [
        [((*path, "new"), 1) for path in ((), _OF_CONTAINER, _OF_TASK, (*_OF_SSPS, 0))],
        [((*_OF_TASK, "task-mode"), "")],
        [((*_OF_TASK, "task-mode"), None)],
        [((*_OF_TASK, "task-mode"), _GONE)],
        [((*_OF_SSPS, 0, "keyBucket"), _GONE)],
    ],
    ids=["new fields", "empty mode", "null mode", "no mode", "no key bucket"],
)
def test_other_writers_bytes_give_the_model(
    changes: list[tuple[tuple[str | int, ...], object]],
) -> None:
    """G26: unknown fields are ignored, a task without a mode is active, a key bucket is -1."""
    assert _decode(*changes) == _golden_model()


def test_the_number_container_id_is_read_where_processor_id_is_missing() -> None:
    """G26: ``{"container-id":0}`` is the processor "0"; ``processor-id`` wins if both are there."""
    id_, number = (*_OF_CONTAINER, "processor-id"), (*_OF_CONTAINER, "container-id")
    assert _decode((number, 7)) == _golden_model()
    assert _decode((id_, None), (number, 0)) == _golden_model()


def test_a_processors_location_is_read_back_and_nothing_is_written_without_one() -> None:
    """HA-STANDALONE: ContainerModel's ``locationId``; a model of YARN has Samza's bytes."""
    task = TaskModel(TaskName("t"), (SystemStreamPartition("kafka", "in", 0),), 0)
    mirror = TaskModel(
        TaskName("s"), task.system_stream_partitions, 0, TaskMode.STANDBY, task.task_name
    )
    container = ContainerModel(ProcessorId("p"), {task.task_name: task}, location_id=Host("nm1"))
    standby = ContainerModel(
        ProcessorId("q"), {mirror.task_name: mirror}, ProcessorId("p"), Host("nm2")
    )
    model = JobModel(Config(), {c.processor_id: c for c in (container, standby)})
    encoded = encode_job_model(model, mask_secrets=False)
    assert b'"location-id":"nm1"' in encoded
    assert decode_job_model(encoded) == model
    nowhere = {container.processor_id: replace(container, location_id=None)}
    assert b"location-id" not in encode_containers(JobModel(Config(), nowhere))


_SSP = {"system": "s", "stream": "t", "partition": 0}
_NO_OBJECTS: tuple[object, ...] = (None, 7, [], "x")


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        *(((f,), value, f) for f in ("config", "containers") for value in _NO_OBJECTS),
        (("config",), {"job.id": 1}, r"job\.id"),
        (_OF_CONTAINER, None, "container '0'"),
        (_OF_CONTAINER, [], "container '0'"),
        (_OF_CONTAINER, {"processor-id": "0"}, "tasks"),
        (_OF_CONTAINER, {"processor-id": 0, "tasks": {}}, "processor-id"),
        # Defect 17.3: Samza would read the text "1" as container 0.
        *(
            (_OF_CONTAINER, {"container-id": value, "tasks": {}}, "container-id")
            for value in ("1", 1.0, True)
        ),
        ((*_OF_CONTAINER, "processor-id"), _GONE, "missing processor-id and container-id"),
        ((*_OF_TASK, "task-name"), None, "task-name"),
        ((*_OF_TASK, "changelog-partition"), None, "changelog-partition"),
        ((*_OF_TASK, "changelog-partition"), "0", "changelog-partition"),
        ((*_OF_TASK, "task-mode"), "Passive", "task-mode"),
        ((*_OF_TASK, "task-mode"), 1, "task-mode"),
        (_OF_SSPS, None, "system-stream-partitions"),
        (_OF_SSPS, [1], "system-stream-partition"),
        (_OF_SSPS, [{}], "system"),
        (_OF_SSPS, [_SSP | {"partition": True}], "partition"),
        (_OF_SSPS, [_SSP | {"keyBucket": "x"}], "keyBucket"),
    ],
)
def test_a_wrong_part_is_refused(path: tuple[str | int, ...], value: object, fault: str) -> None:
    """G26: each field is checked, and named; a container without any id in Samza's words."""
    with pytest.raises(WireError, match=fault):
        _decode((path, value))


def _container_of(id_: str, *partitions: int) -> ContainerModel:
    tasks = {
        TaskName(f"Partition {n}"): TaskModel(
            TaskName(f"Partition {n}"), (SystemStreamPartition("kafka", "in", n),), n
        )
        for n in partitions
    }
    return ContainerModel(ProcessorId(id_), tasks)


MODELS = {
    "empty": JobModel(Config(), {}),
    "of many keys": JobModel(
        Config({f"key-{n}": "v" for n in range(2500)} | {"z.secret": "pw"}), {}
    ),
    "ordinary": JobModel(
        Config({"job.name": "Flüge", "db.password": "pw"}),
        {
            ProcessorId(i): _container_of(i, 2 * n, 2 * n + 1)
            for n, i in enumerate(("b", 'a"\\ä', "c/"))
        },
    ),
}


@pytest.mark.parametrize("mask_secrets", [True, False])
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_the_joined_pieces_are_compact_json(model: JobModel, *, mask_secrets: bool) -> None:
    """A configuration is encoded a thousand keys at a time, and each container by itself."""
    text = encode_job_model(model, mask_secrets=mask_secrets)
    assert compact_json(json.loads(text)) == text
    config = masked(model.config) if mask_secrets else model.config
    assert decode_job_model(text) == replace(model, config=config)


def test_the_part_of_a_standby_has_its_active_too() -> None:
    """So its reader knows whose standby it is, as JSON has no field for that."""
    actives = {c.processor_id: c for c in (_container_of("0", 0, 5), _container_of("1", 1))}
    model = JobModel(Config(), with_standbys(actives, 1))
    standby, active = ProcessorId("1-0"), ProcessorId("1")
    pieces = JobModelPieces.of(model, mask_secrets=False)
    part = b"".join((*pieces.head, encode_part(model, standby), pieces.end))
    expected = {id_: model.containers[id_] for id_ in (active, standby)}
    assert decode_job_model(part).containers == expected
    assert encode_part(model, active) == encode_part(JobModel(Config(), actives), active)


@pytest.mark.parametrize("id_", MODELS["ordinary"].containers)
def test_a_part_of_the_model_has_one_container(id_: ProcessorId) -> None:
    """Samza's reader and ours take it; the number of changelog partitions is the whole's."""
    whole = MODELS["ordinary"]
    pieces = JobModelPieces.of(whole, mask_secrets=False)
    part = b"".join((*pieces.head, encode_part(whole, id_), pieces.end))
    assert decode_job_model(part) == JobModel(whole.config, {id_: whole.containers[id_]})
    assert part.endswith(b'"max-change-log-stream-partitions":6}')


LOCALITY = (
    b'{"processor-localities":{"0":{"id":"0","host":"h1","jmx-url":"","jmx-tunneling-url":""}}}'
)
LOCALITIES = {ProcessorId("0"): Host("h1")}


def test_localities_are_those_of_samza() -> None:
    """All localities, and one alone, have the reference's bytes."""
    assert encode_locality(LOCALITIES) == LOCALITY
    one = encode_processor_locality(ProcessorId("0"), Host("h1"))
    assert one == b'{"id":"0","host":"h1","jmx-url":"","jmx-tunneling-url":""}'


def test_samzas_localities_give_the_model() -> None:
    """Reading gives the model back; a field that is not known is ignored."""
    assert decode_locality(LOCALITY) == LOCALITIES
    assert decode_locality(LOCALITY.replace(b'"id"', b'"new":1,"id"')) == LOCALITIES


def test_an_unknown_processor_has_an_empty_host() -> None:
    """A processor without locality answers with its own id and no host."""
    assert encode_processor_locality(ProcessorId("7"), None) == (
        b'{"id":"7","host":"","jmx-url":"","jmx-tunneling-url":""}'
    )
    read = decode_locality(b'{"processor-localities":{"7":{"id":"7","host":""}}}')
    assert read == {ProcessorId("7"): None}


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"processor-localities":{"0":7}}',
        b'{"processor-localities":{"0":{"id":"0"}}}',
        b'{"processor-localities":{"0":{"host":"h"}}}',
    ],
)
def test_a_strange_body_is_refused(data: bytes) -> None:
    """Every missing or wrong part is a WireError."""
    with pytest.raises(WireError):
        decode_locality(data)
