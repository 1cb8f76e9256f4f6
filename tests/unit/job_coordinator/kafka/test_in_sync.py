"""What keeps a partition from taking records."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata, PartitionMetadata, TopicMetadata

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.in_sync import await_writable, shortage
from homeport.job_coordinator.kafka.topics import TopicAdmin

SYSTEM = SystemConfig.of(Config({"systems.kafka.consumer.bootstrap.servers": "b:1"}), "kafka")


class Client:
    """A producer whose brokers know one topic, of these partitions: (leader, replicas, in sync)."""

    def __init__(self, *partitions: tuple[int, list[int], list[int]]) -> None:
        self.metadata = ClusterMetadata()
        topic = TopicMetadata()
        for number, (leader, replicas, in_sync) in enumerate(partitions):
            found = PartitionMetadata()
            found.id, found.leader = number, leader
            found.replicas, found.isrs = replicas, in_sync
            topic.partitions[number] = found
        self.metadata.topics["t"] = topic
        self.failures = 0

    def poll(self, _timeout: float) -> int:
        """Nothing is heard."""
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """What they know, after so many failures."""
        del topic, timeout
        if self.failures:
            self.failures -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
        return self.metadata


@pytest.fixture(autouse=True)
def _in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TopicAdmin, "topic_config", lambda *_: {"min.insync.replicas": "2"})


def test_only_the_partitions_that_are_written_to_count() -> None:
    """Of another partition of the topic nothing is needed."""
    client = Client((1, [1, 2, 3], [1]), (2, [1, 2, 3], [1, 2]))
    assert shortage(SYSTEM, client, {("t", 1)}) is None
    assert shortage(SYSTEM, client, {("absent", None)}) is None
    assert shortage(SYSTEM, client, {("t", None)}) == (
        "topic 't' partition 0 has 1 of 3 replicas in sync, and its min.insync.replicas is 2: "
        "start the brokers 2, 3, or lower min.insync.replicas"
    )


def test_a_broker_asks_for_no_more_replicas_than_there_are() -> None:
    """As Kafka itself reads min.insync.replicas."""
    assert shortage(SYSTEM, Client((1, [1], [1])), {("t", 0)}) is None


def test_a_partition_without_a_leader_takes_nothing() -> None:
    """Whatever was in sync."""
    story = shortage(SYSTEM, Client((-1, [2, 1], [1, 2])), {("t", 0)})
    assert story == "topic 't' partition 0 has no leader: start the brokers 1, 2"


def test_kafka_that_goes_away_meanwhile_is_waited_for() -> None:
    """As a replica is."""
    client = Client((1, [1], [1]))
    client.failures = 2
    with pytest.raises(UnavailableError, match="asking for replicas in sync: no answer"):
        shortage(SYSTEM, client, {("t", 0)})
    waited: list[float] = []
    await_writable(SYSTEM, Connection(), client, {("t", 0)}, waited.append)
    assert len(waited) == 1
