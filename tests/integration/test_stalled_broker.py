"""A broker stands still for longer than a transaction may take: the container is not to blame."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from suites import long

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.transaction_plan import Send
from homeport.local_cluster.cluster import LocalCluster

STALL_S = 15.0
"""How long the fault lasts, longer than ``transaction.timeout.ms``; nothing is waited for by it."""
RECORDS = 1000


@contextlib.contextmanager
def standing_still(cluster: LocalCluster, number: int | None = None) -> Iterator[None]:
    """The broker stands still from the begin of the block on, and for ``STALL_S`` in all."""
    cluster.pause_kafka(number)
    waking = threading.Timer(STALL_S, cluster.resume_kafka, [number])
    waking.start()
    try:
        yield
    finally:
        waking.join()


class Transactions:
    """Transactions of one producer, each of which has records in all partitions of a topic."""

    def __init__(self, cluster: LocalCluster, replicas: int = 1) -> None:
        servers, self.topic = cluster.bootstrap_servers, f"t{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(self.topic, 3, replicas)])[self.topic].result()
        config = Config(
            {
                "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
                "systems.kafka.consumer.bootstrap.servers": servers,
            }
        )
        self.producer = TransactionalProducer(SystemConfig.of(config, "kafka"), self.topic)
        self.producer.initialise()

    def send(self) -> None:
        """Records are on their way to each partition."""
        self.producer.send(Send(self.topic, b"k", b"v", n % 3) for n in range(RECORDS))

    def close(self) -> None:
        """It is closed; what it then says of an abort a container never hears, as it ends."""
        with contextlib.suppress(KafkaException):
            self.producer.close()

    def commits(
        self, disturbed: str, fault: Callable[[], contextlib.AbstractContextManager[None]]
    ) -> None:
        """A transaction is committed, with the fault from that step on."""
        with contextlib.ExitStack() as faults:
            steps = {
                "begin": self.producer.begin,
                "produce": self.send,
                "flush": self.producer.deliver,
                "commit": self.producer.commit,
            }
            for name, step in steps.items():
                if name == disturbed:
                    faults.enter_context(fault())
                step()


@pytest.mark.parametrize("step", [*map(long, ["begin", "produce"]), "flush", "commit"])
def test_a_transaction_that_a_broker_stalls_is_not_charged(broker: LocalCluster, step: str) -> None:
    """When it fails, the broker is back, and nothing lacks: what counts is what was meanwhile."""
    made = Transactions(broker)
    with contextlib.closing(made):
        made.commits("", contextlib.nullcontext)
        with pytest.raises(UnavailableError):
            made.commits(step, lambda: standing_still(broker))


@pytest.mark.parametrize("number", [1, long(2), long(3)])
def test_one_broker_of_three_that_stalls_is_not_charged(brokers: LocalCluster, number: int) -> None:
    """The others answer all the time; a transaction may be committed by them, or be dropped."""
    made = Transactions(brokers, replicas=3)
    with contextlib.closing(made):
        made.commits("", contextlib.nullcontext)
        with contextlib.suppress(UnavailableError):
            made.commits("commit", lambda: standing_still(brokers, number))
