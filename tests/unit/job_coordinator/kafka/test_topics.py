"""What the job's own topics must look like."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import InvariantViolation
from homeport.config.sections import JobConfig, TaskConfig
from homeport.config.stores_section import StorageConfig
from homeport.job_coordinator.kafka.topics import (
    changelog_topic_spec,
    checkpoint_topic_spec,
    coordinator_topic_spec,
)

_CONFIG = Config(
    {
        "job.name": "my_job",
        "job.default.system": "kafka",
        "stores.s.factory": "rocksdb",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "json",
        "stores.s.changelog": "s-log",
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


def test_changelog_topic() -> None:
    """Compacted, with Samza's sizes; a compaction lag only if configured; overrides win."""
    spec = changelog_topic_spec(StorageConfig.of(_CONFIG).stores["s"], 8)
    assert (spec.name, spec.partitions, spec.replication) == ("s-log", 8, 2)
    assert spec.config == {
        "cleanup.policy": "compact",
        "segment.bytes": "536870912",
        "max.message.bytes": "1000012",
        "delete.retention.ms": "86400000",
    }
    more = _CONFIG.merged(
        {
            "stores.s.changelog.min.compaction.lag.ms": "5",
            "stores.s.changelog.kafka.cleanup.policy": "compact,delete",
        }
    )
    other = changelog_topic_spec(StorageConfig.of(more).stores["s"], 8)
    assert other.config["min.compaction.lag.ms"] == "5"
    assert other.config["cleanup.policy"] == "compact,delete"


def test_a_store_without_changelog_has_no_topic() -> None:
    """Asking for one is a bug of ours."""
    store = StorageConfig.of(_CONFIG.merged({"stores.s.changelog": ""})).stores["s"]
    with pytest.raises(InvariantViolation, match="has no changelog"):
        changelog_topic_spec(store, 1)
