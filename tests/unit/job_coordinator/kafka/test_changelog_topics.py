"""What changelogs must look like, and what is reported of those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError, InvariantViolation
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.job_coordinator.kafka.changelog_topics import (
    changelog_topic_spec,
    differences,
    task_beyond,
    topic_fault,
)
from homeport.job_coordinator.kafka.topics import FoundTopic
from homeport.job_coordinator.model.ids import TaskName

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
_OWN = "stores.s.changelog."


def store(**more: str) -> StoreConfig:
    """The store with further keys of its changelog, dots written as underscores."""
    keys = {_OWN + key.replace("_", "."): value for key, value in more.items()}
    return StorageConfig.of(_CONFIG.merged(keys)).stores["s"]


def found(config: StoreConfig, partitions: int = 8, **more: str) -> FoundTopic:
    """The topic of the store as it is created, with other properties, dots as underscores."""
    spec = changelog_topic_spec(config, partitions)
    properties = {**spec.config, "min.insync.replicas": "1", "preallocate": "false"}
    changed = {key.replace("_", "."): value for key, value in more.items()}
    return FoundTopic("id", partitions, spec.replication, {**properties, **changed})


def fault(config: StoreConfig, topic: FoundTopic) -> str:
    """What is said of the topic where eight partitions are wanted."""
    return str(topic_fault(config, changelog_topic_spec(config, 8), topic))


def test_a_changelog_is_compacted_and_sized_as_samzas() -> None:
    """Replication 2, one partition for each task."""
    spec = changelog_topic_spec(store(), 8)
    assert (spec.name, spec.partitions, spec.replication) == ("s-log", 8, 2)
    assert spec.replication_key == "stores.s.changelog.replication.factor"
    assert spec.config == {
        "cleanup.policy": "compact",
        "segment.bytes": "536870912",
        "max.message.bytes": "1000012",
        "delete.retention.ms": "86400000",
    }


def test_a_compaction_lag_is_set_only_where_it_is_configured() -> None:
    """S17: without the key no lag is set, with standbys or without; nothing is ever trimmed."""
    standbys = {"job.hotstandby.enabled": "true", "job.host-affinity.enabled": "true"}
    with_standbys = StorageConfig.of(_CONFIG.merged(standbys)).stores["s"]
    for config in (store(), with_standbys):
        assert "min.compaction.lag.ms" not in changelog_topic_spec(config, 8).config
    spec = changelog_topic_spec(store(min_compaction_lag_ms="5"), 8)
    assert spec.config["min.compaction.lag.ms"] == "5"


@pytest.mark.parametrize(
    ("ttl_ms", "retention"), [("5000", "5000"), ("0", "1000"), ("999", "1000")]
)
def test_entries_that_are_kept_for_a_time_are_deleted_by_age(ttl_ms: str, retention: str) -> None:
    """In place of being compacted, after a second at the earliest; records may be of any size."""
    aging = StorageConfig.of(_CONFIG.merged({"stores.s.rocksdb.ttl.ms": ttl_ms})).stores["s"]
    assert changelog_topic_spec(aging, 1).config == {
        "cleanup.policy": "delete",
        "retention.ms": retention,
        "segment.bytes": "536870912",
        "delete.retention.ms": "86400000",
    }
    own = {"stores.s.rocksdb.ttl.ms": ttl_ms, f"{_OWN}kafka.retention.ms": "7"}
    meant = StorageConfig.of(_CONFIG.merged(own)).stores["s"]
    assert changelog_topic_spec(meant, 1).config["retention.ms"] == "7"
    topic = FoundTopic("id", 1, 2, {"cleanup.policy": "delete", "retention.ms": "7"})
    assert topic_fault(meant, changelog_topic_spec(meant, 1), topic) is None


def test_a_negative_time_to_live_is_none() -> None:
    """Such a store is compacted as any."""
    ageless = StorageConfig.of(_CONFIG.merged({"stores.s.rocksdb.ttl.ms": "-1"})).stores["s"]
    assert changelog_topic_spec(ageless, 8) == changelog_topic_spec(store(), 8)


def test_the_compaction_lag_has_a_key_of_its_own() -> None:
    """The other way is refused, as by Samza: the lag would be another than the restore goes by."""
    with pytest.raises(ConfigError) as caught:
        store(kafka_min_compaction_lag_ms="5")
    assert str(caught.value) == (
        "stores.s.changelog.kafka.min.compaction.lag.ms = '5': the lag has a key of its own; set "
        "stores.s.changelog.min.compaction.lag.ms"
    )


def test_properties_of_the_users_win() -> None:
    """Whatever stands below ``stores.<store>.changelog.kafka.``."""
    spec = changelog_topic_spec(
        store(kafka_cleanup_policy="compact,delete", kafka_segment_bytes="1048576"), 8
    )
    assert spec.cleanup_policy == "compact,delete"
    assert spec.config["segment.bytes"] == "1048576"


def test_a_store_without_changelog_has_no_topic() -> None:
    """Asking for one is a bug of ours."""
    without = StorageConfig.of(_CONFIG.merged({"stores.s.changelog": ""})).stores["s"]
    with pytest.raises(InvariantViolation, match="has no changelog"):
        changelog_topic_spec(without, 1)


def test_a_topic_as_it_was_made_is_fine() -> None:
    """Neither a fault nor a difference; more replicas and larger records than needed are fine."""
    config = store()
    topic = found(config)
    assert topic_fault(config, changelog_topic_spec(config, 8), topic) is None
    assert differences(config, changelog_topic_spec(config, 8), topic) == []
    larger = replace(found(config, max_message_bytes="2000000", segment_bytes="1"), replication=3)
    assert topic_fault(config, changelog_topic_spec(config, 8), larger) is None
    assert differences(config, changelog_topic_spec(config, 8), larger) == []
    meant = store(kafka_segment_bytes="2")
    assert differences(meant, changelog_topic_spec(meant, 8), larger) == [
        "changelog s-log: segment.bytes in force is 1, configured is 2"
    ]


@pytest.mark.parametrize("partitions", [4, 9])
def test_a_changelog_has_one_partition_for_each_task(partitions: int) -> None:
    """Neither fewer nor more: the tasks of a job with state stay what they are."""
    config = store()
    assert fault(config, found(config, partitions)) == (
        f"topic = 's-log': it has {partitions} partitions and must have 8, one for each task; name "
        "another topic by stores.s.changelog, or, where it holds the job's state, begin from "
        "nothing by run-job --reset-state"
    )


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_policy_that_would_lose_state_is_refused(policy: str) -> None:
    """Old records would be gone; a user that wants this says so in the configuration."""
    config = store()
    assert fault(config, found(config, cleanup_policy=policy)) == (
        f"topic = 's-log': its cleanup.policy is {policy!r} and must be 'compact': records that "
        "grow old would be deleted, and with them state of store 's'; set cleanup.policy=compact "
        f"on the topic, or, if that is meant, stores.s.changelog.kafka.cleanup.policy={policy}"
    )
    meant = store(kafka_cleanup_policy=policy)
    assert topic_fault(meant, changelog_topic_spec(meant, 8), found(meant)) is None


def test_a_policy_that_keeps_more_than_wanted_is_only_reported() -> None:
    """Nothing is lost where records are compacted that might be deleted."""
    config = store(kafka_cleanup_policy="delete")
    topic = found(config, cleanup_policy="compact")
    spec = changelog_topic_spec(config, 8)
    assert topic_fault(config, spec, topic) is None
    assert differences(config, spec, topic) == [
        "changelog s-log: cleanup.policy in force is compact, configured is delete"
    ]


def test_the_order_in_which_policies_are_listed_does_not_matter() -> None:
    """Brokers say ``compact,delete`` and ``delete,compact``."""
    config = store(kafka_cleanup_policy="compact,delete")
    topic = found(config, cleanup_policy="delete, compact")
    assert differences(config, changelog_topic_spec(config, 8), topic) == []


def test_a_topic_that_takes_no_transaction_is_refused() -> None:
    """More replicas must be in step than there are."""
    config = store()
    assert fault(config, found(config, min_insync_replicas="3")) == (
        "topic = 's-log': its min.insync.replicas is 3 and it has 2 replicas, so that no "
        "transaction can be written; give it more replicas, or lower min.insync.replicas of the "
        "topic or of the brokers"
    )


def test_a_topic_that_takes_smaller_records_than_configured_is_refused() -> None:
    """A record in between would fail the container each time."""
    config = store(max_message_bytes="2000")
    assert fault(config, found(config, max_message_bytes="1999")) == (
        "stores.s.changelog.max.message.bytes = '2000': topic 's-log' takes records of at most "
        "1999 bytes; write 1999, or raise max.message.bytes of the topic"
    )


def test_other_differences_are_reported_with_the_value_in_force() -> None:
    """Retention, lag, sizes, replicas: the topic's own count, and it is not altered."""
    config = store(min_compaction_lag_ms="5")
    topic = found(config, delete_retention_ms="100", min_compaction_lag_ms="0")
    assert differences(config, changelog_topic_spec(config, 8), replace(topic, replication=1)) == [
        "changelog s-log: delete.retention.ms in force is 100, configured is 86400000",
        "changelog s-log: min.compaction.lag.ms in force is 0, configured is 5",
        "changelog s-log: it has 1 replicas, configured are 2",
    ]


def test_a_task_beyond_the_changelogs_is_a_record_to_put_right() -> None:
    """The state stays where it is: nothing advises to throw it away."""
    numbers = {TaskName("Partition 0"): 9, TaskName("Partition 1"): 1, TaskName("Partition 2"): 2}
    fault = task_beyond(numbers, 3)
    assert fault is not None
    assert str(fault) == (
        "set-changelog Partition 0 = '9': the changelogs that hold the state have the partitions 0 "
        "to 2; write it back: coordinator-stream-writer --type=set-changelog --key='Partition 0' "
        "--value=0"
    )
    assert task_beyond(numbers, 10) is None
