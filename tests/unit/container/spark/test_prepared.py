"""Which Spark serves which container."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.container.spark.prepared import PipelineSettings

JOB = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.pipeline.class": "my:pipeline",
        "task.spark.conf.spark.x": "1",
        "cluster-manager.container.memory.mb": "1536",
    }
)


def _settings(config: Config, folder: str) -> PipelineSettings:
    found = PipelineSettings.of(config, Path(folder))
    assert found is not None
    return found


def test_a_job_without_a_pipeline_has_no_spark() -> None:
    """None is started for it."""
    assert PipelineSettings.of(JOB.merged({"task.pipeline.class": ""}), Path("/w")) is None


def test_a_spark_serves_wherever_its_files_are() -> None:
    """One that was made ready has them in a folder of its own."""
    wanted = _settings(JOB, "/epoch")
    assert _settings(JOB, "/spare").serves(wanted)
    assert wanted.spark.work_dir == Path("/epoch")
    assert (wanted.name, wanted.spark.app_name, wanted.spark.heap_mb) == ("my:pipeline", "j-1", 672)


def test_plans_last_unless_the_job_says_otherwise() -> None:
    """Another word than the two is refused."""
    assert _settings(JOB, "/w").plans_once
    assert not _settings(JOB.merged({"task.pipeline.plan": "always"}), "/w").plans_once
    with pytest.raises(ConfigError, match=r"task\.pipeline\.plan = 'never'.*once or always"):
        _settings(JOB.merged({"task.pipeline.plan": "never"}), "/w")


@pytest.mark.parametrize(
    "changed",
    [
        {"task.pipeline.class": "my:other"},
        {"task.pipeline.unordered": "true"},
        {"task.pipeline.plan": "always"},
        {"task.spark.conf.spark.x": "2"},
        {"task.spark.driver.memory.mb": "600"},
        {"cluster-manager.container.cpu.cores": "2"},
    ],
)
def test_another_configuration_is_not_served(changed: dict[str, str]) -> None:
    """It was changed while the Spark waited."""
    assert not _settings(JOB, "/w").serves(_settings(JOB.merged(changed), "/w"))
