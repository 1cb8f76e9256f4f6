"""The JobModels of an attempt, by version."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.config.config import Config
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.metadata.epochs import JobModelVersion
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel

P0, P1 = ProcessorId("0"), ProcessorId("1")


def model(*processor_ids: ProcessorId) -> JobModel:
    """A model with a secret and these processors."""
    config = Config({"systems.kafka.consumer.sasl.password": "secret"})
    return JobModel(config, {p: ContainerModel(p, {}) for p in processor_ids})


def named(version: int, of: JobModel) -> JobModelVersion:
    """As the coordinator stream names it."""
    body = encode_job_model(of, mask_secrets=False)
    return JobModelVersion(version, hashlib.sha256(body).hexdigest())


def test_a_saved_model_comes_back_by_version_and_digest(tmp_path: Path) -> None:
    """In a new process too, with its secrets, from a private file."""
    JobModelStore(tmp_path).save(3, model(P0))
    assert JobModelStore(tmp_path).find(named(3, model(P0))) == model(P0)
    assert (tmp_path / "job-model-3.json").stat().st_mode & 0o077 == 0


def test_a_model_that_was_never_published_is_not_found(tmp_path: Path) -> None:
    """A driver saved it and died: the stream names another digest, or a lower version."""
    job_models = JobModelStore(tmp_path)
    job_models.save(1, model(P0))
    job_models.save(2, model(P0, P1))
    assert job_models.find(named(2, model(P1))) is None
    assert job_models.find(named(3, model(P0))) is None
    job_models.enter(1, model(P0))
    assert job_models.get(2) is None


def test_every_version_of_the_attempt_is_served(tmp_path: Path) -> None:
    """The newest by default; more than are kept in memory, and none of before the attempt."""
    job_models = JobModelStore(tmp_path)
    assert job_models.get(None) is None
    models = {v: model(*(ProcessorId(str(n)) for n in range(v))) for v in range(4, 14)}
    for version, each in models.items():
        job_models.save(version, each)
        job_models.enter(version, each)
    assert job_models.get(None) == models[13]
    assert (job_models.version, job_models.model) == (13, models[13])
    assert {v: job_models.get(v) for v in models} == models
    assert [job_models.get(v) for v in (0, 3, 14)] == [None] * 3


def test_a_damaged_file_is_no_model(tmp_path: Path) -> None:
    """The store fetches the model as if the file did not exist."""
    job_models = JobModelStore(tmp_path)
    (tmp_path / "job-model-1.json").write_bytes(b"{")
    job_models.enter(2, model(P0))
    assert job_models.get(1) is None
    digest = hashlib.sha256(b"{").hexdigest()
    assert job_models.find(JobModelVersion(1, digest)) is None


def test_processors_of_former_models_are_known(tmp_path: Path) -> None:
    """A retired one is heard until it has stopped."""
    job_models = JobModelStore(tmp_path)
    with pytest.raises(InvariantViolation):
        job_models.model  # noqa: B018 - the property raises
    job_models.enter(1, model(P0, P1))
    job_models.enter(2, model(P0))
    job_models.remember([ProcessorId("7")])
    assert [job_models.knows(ProcessorId(p)) for p in ("0", "1", "7", "8")] == [
        True,
        True,
        True,
        False,
    ]
