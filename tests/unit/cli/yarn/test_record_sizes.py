"""Records that Kafka would not accept are reported before anything is written."""

from __future__ import annotations

import pytest

from homeport.cli.yarn.state_check import check_record_sizes
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.job_model import JobModel, SystemStream

LIMIT = 20_000


def model(partitions: int, **values: str) -> JobModel:
    """A job of one container whose tasks all read kafka.rules#0."""
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "task.inputs": "kafka.in",
            "task.broadcast.inputs": "kafka.rules#0",
            "systems.kafka.consumer.bootstrap.servers": "b:1",
            **values,
        }
    )
    counts = {SystemStream("kafka", "in"): partitions, SystemStream("kafka", "rules"): 1}
    return calculate_job_model(config, counts, NOTHING)


def check(job: JobModel) -> None:
    """As ``run-job`` does, with a stream that takes LIMIT bytes."""
    check_record_sizes(job.config, job, LIMIT)


def test_size_is_of_each_record_not_of_all() -> None:
    """COORD, benefit 1: a configuration has no bound, of keys or of bytes."""
    check(model(10, **{f"key.{n}": "x" * 10_000 for n in range(100)}))


def test_a_value_that_is_too_large_is_named_with_size_limit_and_remedy() -> None:
    """The value itself is cut short, and a secret one is not shown."""
    with pytest.raises(ConfigError) as caught:
        check(model(1, big="x" * LIMIT))
    assert str(caught.value) == (
        f"big = '{'x' * 40}...': it would be a record of 20351 bytes; the coordinator stream takes "
        "20000 at most; shorten it, or raise max.message.bytes of topic "
        "'__samza_coordinator_j_1' and systems.kafka.producer.max.request.size"
    )
    with pytest.raises(ConfigError, match=r"my\.password = '\*+': it would be"):
        check(model(1, **{"my.password": "x" * LIMIT}))
    with pytest.raises(ConfigError) as caught:
        check(model(1, url=f"https://user:{'x' * LIMIT}@host"))
    assert str(caught.value).startswith("url = 'https://user:********@host...': it would be")


def test_a_partition_that_too_many_tasks_read_is_reported_at_submission() -> None:
    """Its record names every task: the one record of a JobModel that grows with the job."""
    check(model(500))
    with pytest.raises(ConfigError) as caught:
        check(model(2000))
    assert caught.value.key == "task.broadcast.inputs"
    assert caught.value.value == "kafka.rules#0"
    assert "set-task-partition-assignment" in caught.value.rule
    assert caught.value.remedy.startswith("broadcast to fewer tasks, or raise max.message.bytes")
