"""The pieces of a JobModel's bytes against the codec's bytes of the same model."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.grouper.standby_models import with_standbys
from homeport.job_coordinator.model.codec import (
    JobModelPieces,
    decode_job_model,
    encode_containers,
    encode_job_model,
    encode_part,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)


def _container(id_: str, *partitions: int) -> ContainerModel:
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
            ProcessorId(i): _container(i, 2 * n, 2 * n + 1)
            for n, i in enumerate(("b", 'a"\\ä', "c/"))
        },
    ),
}


@pytest.mark.parametrize("mask_secrets", [True, False])
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_the_pieces_joined_are_the_codecs_bytes(model: JobModel, *, mask_secrets: bool) -> None:
    """One form of the whole, however it is made."""
    pieces = JobModelPieces.of(model, mask_secrets=mask_secrets)
    joined = b"".join((*pieces.head, encode_containers(model), pieces.end))
    assert joined == encode_job_model(model, mask_secrets=mask_secrets)


def test_the_part_of_a_standby_has_its_active_too() -> None:
    """So its reader knows whose standby it is, as JSON has no field for that."""
    actives = {c.processor_id: c for c in (_container("0", 0, 5), _container("1", 1))}
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
