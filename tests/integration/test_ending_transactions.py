"""An id whose last transaction Kafka is still ending, on three real brokers.

The end cannot be written into a partition that lacks replicas in sync: until then no client can
take the id.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from broker_faults import topics_of
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata
from job_configs import kafka_system
from topic_records import alter
from waiting import until

from homeport.appmaster.lease import fencing
from homeport.config.errors import UnavailableError
from homeport.container.kafka import transactional_producer
from homeport.job_coordinator.kafka.record_writer import TransactionalWriter
from homeport.job_coordinator.model.incarnation import state_partition
from homeport.local_cluster.cluster import LocalCluster

DEADLINE_S = 60.0
SHORT_S = 3.0


class _Ending:
    """A transaction that is written, and aborted while its partition lacks a replica."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        self.topic = f"ending{uuid.uuid4().hex[:10]}"
        self.transactional_id = f"homeport.{self.topic}"
        new = NewTopic(self.topic, 1, 2)
        self._admin.create_topics([new])[self.topic].result(DEADLINE_S)
        writer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "transactional.id": self.transactional_id,
            }
        )
        writer.init_transactions(DEADLINE_S)
        writer.begin_transaction()
        writer.produce(self.topic, b"value", b"key", partition=0)
        assert writer.flush(DEADLINE_S) == 0
        found = self._partition()
        self._stopped: int | None = next(r for r in found.replicas if r != found.leader)
        cluster.stop_kafka(self._stopped)
        until(lambda: len(self._partition().isrs) == 1)
        self._require_in_sync(2)
        writer.abort_transaction(DEADLINE_S)

    def coordinator(self) -> str:
        """Which broker ends it: the leader of its partition of Kafka's own topic."""
        topic = topics_of(self._admin)["__transaction_state"]
        partition = state_partition(self.transactional_id, len(topic.partitions))
        leader = topic.partitions[partition].leader
        return f"/{leader} that leads __transaction_state partition {partition} makes"

    def mend(self) -> None:
        """All replicas are there again; called twice: once."""
        if self._stopped is not None:
            self._require_in_sync(1)
            self._cluster.start_kafka(broker=self._stopped)
            self._stopped = None

    def _partition(self) -> PartitionMetadata:
        return topics_of(self._admin)[self.topic].partitions[0]

    def _require_in_sync(self, count: int) -> None:
        alter(self._cluster.bootstrap_servers, self.topic, {"min.insync.replicas": str(count)})


@pytest.fixture(name="ending")
def _ending(brokers: LocalCluster) -> Iterator[_Ending]:
    made = _Ending(brokers)
    yield made
    made.mend()


def test_the_error_of_an_id_in_use_says_what_ends_its_transaction(
    ending: _Ending, brokers: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Container, driver and fencing alike; afterwards all of them take it."""
    monkeypatch.setattr(transactional_producer, "_INIT_S", SHORT_S)
    system = kafka_system(brokers.bootstrap_servers)
    name = ending.transactional_id
    writer = TransactionalWriter(system, ending.topic, SHORT_S, name)
    takers: tuple[Callable[[], None], ...] = (
        partial(transactional_producer.fence, system, name),
        partial(fencing.fence, system, name, SHORT_S),
        writer.open,
    )
    for take in takers:
        with pytest.raises(UnavailableError) as refused:
            take()
        line = str(refused.value)
        assert f"initialising {name}: " in line
        assert "still ending the last transaction of this id" in line
        assert f"describe --transactional-id {name}` shows as PrepareCommit or PrepareAbort" in line
        assert ending.coordinator() in line
    ending.mend()
    monkeypatch.setattr(transactional_producer, "_INIT_S", DEADLINE_S)
    transactional_producer.fence(system, name)
    fencing.fence(system, name, DEADLINE_S)
    TransactionalWriter(system, ending.topic, DEADLINE_S, name).open()
