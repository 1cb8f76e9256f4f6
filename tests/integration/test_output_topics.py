"""Declared outputs of a job on a real broker: refused where they are missing, or created."""

from __future__ import annotations

import uuid

import pytest
from job_configs import job_config
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.job.kafka_check import check_kafka
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.output_topics import create_outputs
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.topics import OutputTopicManager


def test_a_missing_output_is_refused_or_created(kafka: str) -> None:
    """By one key; a topic that exists keeps its partitions."""
    there, missing = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("there", "missing"))
    outputs = f"kafka.{missing}, kafka.{there}-out"
    config = job_config(kafka, {"task.inputs": f"kafka.{there}", "task.outputs": outputs})
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    for name in (there, f"{there}-out"):
        admin.create(name, 2, 1, {})
    with pytest.raises(ConfigError, match=rf"task\.outputs = 'kafka\.{missing}': .*not exist.*; "):
        check_kafka(config)
    assert create_outputs(config, InMemoryCoordinatorStream()) == ()
    assert admin.partition_counts([missing]) == {}

    creating = config.merged({"task.outputs.create.partitions": "3"})
    check_kafka(creating)
    stream = InMemoryCoordinatorStream()
    assert create_outputs(creating, stream) == (f"kafka.{missing}",)
    assert create_outputs(creating, stream) == ()
    stream.catch_up()
    made = {SystemStream("kafka", missing): admin.topic_ids([missing])[missing]}
    assert OutputTopicManager(stream).read() == made
    counts = admin.partition_counts([missing, f"{there}-out"])
    assert counts == {missing: 3, f"{there}-out": 2}
    check_kafka(config)


def test_more_replicas_than_brokers_are_refused_with_the_key(kafka: str) -> None:
    """Kafka says so; the line names what to set."""
    config = job_config(
        kafka,
        {
            "task.outputs": f"kafka.wide-{uuid.uuid4().hex[:8]}",
            "task.outputs.create.partitions": "1",
            "systems.kafka.default.stream.replication.factor": "3",
        },
    )
    with pytest.raises(ConfigError, match=r"systems\.kafka\.default\.stream\.replication\.factor"):
        create_outputs(config, InMemoryCoordinatorStream())
