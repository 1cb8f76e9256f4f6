"""What changelogs must look like, and what is reported of those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.errors import ConfigError, InvariantViolation
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.job_coordinator.kafka import changelog_topics
from homeport.job_coordinator.kafka.changelog_topics import (
    ChangelogTopics,
    changelog_topic_spec,
    differences,
    task_beyond,
    topic_fault,
)
from homeport.job_coordinator.kafka.topics import FoundTopic, TopicSpec
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.model.ids import TaskName

_CONFIG = Config(
    {
        "job.name": "my_job",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
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


def test_a_changelog_is_compacted_and_sized_as_samzas() -> None:
    """Replication 2, one partition for each task; a negative time to live is none."""
    spec = changelog_topic_spec(store(), 8)
    assert (spec.name, spec.partitions, spec.replication) == ("s-log", 8, 2)
    assert spec.replication_key == "stores.s.changelog.replication.factor"
    assert spec.config == {
        "cleanup.policy": "compact",
        "segment.bytes": "536870912",
        "max.message.bytes": "1000012",
        "delete.retention.ms": "86400000",
    }
    ageless = StorageConfig.of(_CONFIG.merged({"stores.s.rocksdb.ttl.ms": "-1"})).stores["s"]
    assert changelog_topic_spec(ageless, 8) == spec


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


_PARTITIONS = (
    "topic = 's-log': it has {} partitions and must have 8, one for each task; name another topic "
    "by stores.s.changelog, or, where it holds the job's state, set job.changelogs.grow=true, or "
    "begin from nothing by run-job --reset-state"
)
_POLICY = (
    "topic = 's-log': its cleanup.policy is '{0}' and must be 'compact': records that grow old "
    "would be deleted, and with them state of store 's'; set cleanup.policy=compact on the topic, "
    "or, if that is meant, stores.s.changelog.kafka.cleanup.policy={0}"
)
_IN_SYNC = (
    "topic = 's-log': its min.insync.replicas is 3 and it has 2 replicas, so that no transaction "
    "can be written; give it more replicas, or lower min.insync.replicas of the topic or of the "
    "brokers"
)
_SMALLER = (
    "stores.s.changelog.max.message.bytes = '2000': topic 's-log' takes records of at most 1999 "
    "bytes; write 1999, or raise max.message.bytes of the topic"
)


@pytest.mark.parametrize(
    ("config", "topic", "line"),
    [
        (store(), found(store(), 4), _PARTITIONS.format(4)),
        (store(), found(store(), 9), _PARTITIONS.format(9)),
        (store(), found(store(), cleanup_policy="delete"), _POLICY.format("delete")),
        (
            store(),
            found(store(), cleanup_policy="compact,delete"),
            _POLICY.format("compact,delete"),
        ),
        (store(), found(store(), min_insync_replicas="3"), _IN_SYNC),
        (store(max_message_bytes="2000"), found(store(), max_message_bytes="1999"), _SMALLER),
    ],
    ids=["too few", "too many", "deletes", "compacts and deletes", "no transaction", "smaller"],
)
def test_a_topic_that_cannot_hold_the_state_is_refused(
    config: StoreConfig, topic: FoundTopic, line: str
) -> None:
    """The tasks of a job with state stay what they are; old records would be gone."""
    assert str(topic_fault(config, changelog_topic_spec(config, 8), topic)) == line


_LARGER = replace(found(store(), max_message_bytes="2000000", segment_bytes="1"), replication=3)
_DELETES = {"kafka_cleanup_policy": "delete"}
_BOTH = {"kafka_cleanup_policy": "compact,delete"}


@pytest.mark.parametrize(
    ("config", "topic", "lines"),
    [
        (store(), found(store()), []),
        (store(), _LARGER, []),
        (store(kafka_segment_bytes="2"), _LARGER, ["segment.bytes in force is 1, configured is 2"]),
        (store(**_DELETES), found(store(**_DELETES)), []),
        (store(**_BOTH), found(store(), cleanup_policy="delete, compact"), []),
        (
            store(**_DELETES),
            found(store(), cleanup_policy="compact"),
            ["cleanup.policy in force is compact, configured is delete"],
        ),
        (
            store(min_compaction_lag_ms="5", replication_factor="2"),
            replace(
                found(store(), delete_retention_ms="100", min_compaction_lag_ms="0"), replication=1
            ),
            [
                "delete.retention.ms in force is 100, configured is 86400000",
                "min.compaction.lag.ms in force is 0, configured is 5",
                "it has 1 replicas, configured are 2",
            ],
        ),
    ],
    ids=["as made", "larger", "segments", "deletes", "order", "keeps more", "all else"],
)
def test_a_topic_that_differs_is_reported_with_the_value_in_force(
    config: StoreConfig, topic: FoundTopic, lines: list[str]
) -> None:
    """More replicas, larger records and a policy that keeps more are fine; none is altered."""
    spec = changelog_topic_spec(config, 8)
    assert topic_fault(config, spec, topic) is None
    assert differences(config, spec, topic) == [f"changelog s-log: {line}" for line in lines]


class _Kafka:
    """The changelogs that there are, {topic: its form}, and what was requested."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **topics: FoundTopic) -> None:
        self.topics = {f"{name}-log": topic for name, topic in topics.items()}
        self.asked: list[tuple[str, int]] = []
        self.stream = InMemoryCoordinatorStream()
        monkeypatch.setattr(changelog_topics, "TopicAdmin", lambda _: self)
        monkeypatch.setattr(changelog_topics, "holds_records", lambda *_: True)

    def of(self, **more: str) -> ChangelogTopics:
        """The changelogs of the job, with further keys, dots as underscores."""
        own = {key.replace("_", "."): value for key, value in more.items()}
        self.stream.catch_up()
        return ChangelogTopics(_CONFIG.merged(own), self.stream)

    def described(self, names: list[str]) -> dict[str, FoundTopic]:
        """As ``TopicAdmin`` does."""
        return {name: self.topics[name] for name in names if name in self.topics}

    def ensure(self, spec: TopicSpec) -> None:
        """Make it."""
        self.asked.append((spec.name, spec.partitions))
        self.topics[spec.name] = found(store(), spec.partitions)

    def grow(self, name: str, partitions: int) -> None:
        """Give it so many."""
        self.ensure(replace(changelog_topic_spec(store(), partitions), name=name))


_GROWS = {"job_changelogs_grow": "true"}
_PLAIN = {"factory": "rocksdb", "key_serde": "string", "msg_serde": "json"}


def test_a_changelog_is_made_once_and_grows_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never shrinks; without the key it keeps its number, and another one is refused."""
    kafka = _Kafka(monkeypatch)
    assert kafka.of().check(4, may_be_replaced=False) == []
    kafka.of().make(4)
    kafka.of(**_GROWS).make(4)
    assert kafka.asked == [("s-log", 4)]
    with pytest.raises(ConfigError, match="4 partitions and must have 6, one for each"):
        kafka.of().check(6, may_be_replaced=False)
    kafka.of().make(6)
    assert kafka.asked == [("s-log", 4)]
    assert kafka.of(**_GROWS).check(6, may_be_replaced=False) == []
    kafka.of(**_GROWS).make(6)
    kafka.of(**_GROWS).make(4)
    assert kafka.asked == [("s-log", 4), ("s-log", 6)]
    assert kafka.of(**_GROWS).check(4, may_be_replaced=False) == []
    assert kafka.of().check(None, may_be_replaced=False) == []


def test_a_changelog_that_the_job_has_not_made_keeps_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where changelogs grow: its records may be another job's."""
    kafka = _Kafka(monkeypatch, s=found(store(), 4))
    with pytest.raises(ConfigError, match="4 partitions and must have 6, one for each"):
        kafka.of(**_GROWS).check(6, may_be_replaced=True)
    (line,) = kafka.of(**_GROWS).check(4, may_be_replaced=True)
    assert line.startswith("changelog kafka.s-log holds records that this job has not written")


def test_each_changelog_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one that is not there yet, too; a store without one has none to judge."""
    more = {f"stores_{n}_{key}": value for n in "tn" for key, value in _PLAIN.items()}
    more["stores_t_changelog"] = "t-log"
    differs = found(store(), 4, delete_retention_ms="1")
    kafka = _Kafka(monkeypatch, t=differs)
    monkeypatch.setattr(changelog_topics, "holds_records", lambda *_: False)
    line = "changelog t-log: delete.retention.ms in force is 1, configured is 86400000"
    assert kafka.of(**more).check(4, may_be_replaced=True) == [line]
    with pytest.raises(ConfigError, match="topic = 't-log': it has 4 partitions and must have 5"):
        kafka.of(**more).check(5, may_be_replaced=True)
    kafka.of(**more).make(4)
    assert kafka.asked == [("s-log", 4)]


def test_a_task_beyond_the_changelogs_of_the_state_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before a fault of the topic; of one that the job has not made yet nothing is known."""
    kafka = _Kafka(monkeypatch, s=found(store(), 2))
    assert kafka.of().check(2, may_be_replaced=False) == []
    kafka.of().make(2)
    ChangelogPartitionManager(kafka.stream).write({TaskName("a"): 0, TaskName("b"): 2})
    with pytest.raises(ConfigError, match="set-changelog b = '2': the changelogs that hold"):
        kafka.of(**_GROWS).check(3, may_be_replaced=False)


def test_a_task_that_is_gone_keeps_a_partition_in_each_changelog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also once changelogs grow no more, and in that of a store that comes meanwhile."""
    kafka = _Kafka(monkeypatch)
    kafka.of(**_GROWS).make(6)
    ChangelogPartitionManager(kafka.stream).write({TaskName(f"{n}"): n for n in range(6)})
    more = {"stores_t_factory": "rocksdb", "stores_t_changelog": "kafka.t-log"}
    more |= {"stores_t_key_serde": "string", "stores_t_msg_serde": "json"}
    assert kafka.of().check(4, may_be_replaced=False) == []
    for keys in (more, {**more, **_GROWS}):
        assert kafka.of(**keys).check(4, may_be_replaced=False) == []
        kafka.of(**keys).make(4)
    assert kafka.asked == [("s-log", 6), ("t-log", 6)]
    assert kafka.of(**more).check(4, may_be_replaced=False) == []


def test_state_that_is_gone_is_no_changelog_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was recreated counts at a submission, which may have brought its records back."""
    kafka = _Kafka(monkeypatch)
    kafka.of().make(2)
    kafka.topics["s-log"] = replace(kafka.topics["s-log"], topic_id="other")
    with pytest.raises(ConfigError, match="s-log"):
        kafka.of().check(2, may_be_replaced=False)
    assert kafka.of().check(2, may_be_replaced=True) == [
        "changelog kafka.s-log was recreated, and the state is what it holds now"
    ]
    monkeypatch.setattr(changelog_topics, "holds_records", lambda *_: False)
    with pytest.raises(ConfigError, match="s-log"):
        kafka.of().check(2, may_be_replaced=True)
    del kafka.topics["s-log"]
    with pytest.raises(ConfigError, match="s-log"):
        kafka.of().check(2, may_be_replaced=True)


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
