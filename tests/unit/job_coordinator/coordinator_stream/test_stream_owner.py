"""Whose coordinator stream a topic is."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.coordinator_stream.stream_owner import StreamOwner


def job(name: str, job_id: str | None = None) -> JobConfig:
    """The job of that name; without an id it has the default one."""
    values = {"job.name": name, "job.default.system": "kafka"}
    return JobConfig.of(Config(values if job_id is None else {**values, "job.id": job_id}))


def stream(**values: str) -> dict[str, CoordinatorStreamMessage]:
    """The stream's configuration; a dot is written as an underscore."""
    named = {key.replace("_", "."): value for key, value in values.items()}
    return {key: wire.set_config(key, value) for key, value in named.items()}


@pytest.mark.parametrize(
    ("name", "job_id", "key", "value"),
    [("etl-daily", None, "job.name", "etl-daily"), ("etl_daily", "a_b", "job.id", "a_b")],
)
def test_the_stream_of_another_job_is_refused(
    name: str, job_id: str | None, key: str, value: str
) -> None:
    """One line names the key, both jobs and the remedy; a reset of the state is never advised."""
    other = stream(job_name="etl_daily", job_id="a-b" if job_id else "1")
    wanted = job(name, job_id)
    with pytest.raises(ConfigError) as caught:
        StreamOwner.of(wanted).require(other, wanted.coordinator_topic)
    assert str(caught.value) == (
        f"{key} = '{value}': the coordinator stream '{wanted.coordinator_topic}' belongs to the "
        f"job with job.name = 'etl_daily' and job.id = '{'a-b' if job_id else '1'}': in names of "
        "topics _ and - are the same; choose another job.name or job.id"
    )


def test_the_own_stream_and_an_unowned_one_are_accepted() -> None:
    """A new one, one of Samza's without a name, and one whose default id was never written."""
    own = StreamOwner.of(job("etl_daily"))
    for configs in (
        stream(),
        stream(job_id="7"),
        stream(job_name=""),
        stream(job_name="etl_daily"),
        stream(job_name="etl_daily", job_id="1"),
    ):
        own.require(configs, "t")
