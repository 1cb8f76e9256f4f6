"""What the job's own topics must look like."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.sections import JobConfig, TaskConfig
from homeport.job_coordinator.kafka.topics import (
    checkpoint_topic_spec,
    coordinator_topic_spec,
)

_CONFIG = Config(
    {
        "job.name": "my_job",
        "job.default.system": "kafka",
    }
)


def test_coordinator_topic() -> None:
    """One compacted partition, segments of 25 MiB unless configured, replication 3."""
    spec = coordinator_topic_spec(JobConfig.of(_CONFIG))
    assert (spec.name, spec.partitions, spec.replication) == (
        "__samza_coordinator_my-job_1",
        1,
        3,
    )
    assert spec.config == {"cleanup.policy": "compact", "segment.bytes": "26214400"}
    assert spec.cleanup_policy == "compact"
    other = _CONFIG.merged({"systems.kafka.default.stream.segment.bytes": "1000"})
    assert coordinator_topic_spec(JobConfig.of(other)).config["segment.bytes"] == "1000"


def test_checkpoint_topic() -> None:
    """One compacted partition, with the largest message that Samza allows."""
    spec = checkpoint_topic_spec(TaskConfig.of(_CONFIG))
    assert (spec.partitions, spec.replication) == (1, 3)
    assert spec.config == {
        "cleanup.policy": "compact",
        "segment.bytes": "26214400",
        "max.message.bytes": "1000012",
    }
