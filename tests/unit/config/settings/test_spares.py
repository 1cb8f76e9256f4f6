"""Beside which standbys a Spark waits."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.settings.sections import TaskConfig, has_spark_beside

PIPELINE = {"task.pipeline.class": "m:p"}
SMALL = {"cluster-manager.container.memory.mb": "1240"}
LARGE = {"cluster-manager.container.memory.mb": "1280"}
KEY = {"job.hotstandby.prewarm": "true"}


@pytest.mark.parametrize(
    ("values", "own", "temporary"),
    [
        (LARGE, False, False),
        (LARGE | KEY, False, False),
        (LARGE | PIPELINE, False, True),
        (SMALL | PIPELINE, False, False),
        (LARGE | PIPELINE | KEY, True, True),
    ],
    ids=str,
)
def test_who_has_one(values: dict[str, str], *, own: bool, temporary: bool) -> None:
    """Own standbys by the key, temporary ones by their memory; none without a pipeline."""
    config = Config({"job.name": "j", "job.default.system": "kafka", **values})
    task = TaskConfig.of(config)
    assert has_spark_beside(config, task, is_temporary=False) is own
    assert has_spark_beside(config, task, is_temporary=True) is temporary
