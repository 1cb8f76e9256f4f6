"""What a transactional producer says of its end, on a real broker."""

from __future__ import annotations

import time
import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from homeport.config.config import Config
from homeport.config.sections import SystemConfig
from homeport.container.kafka.transactional_producer import (
    RecordRefusedError,
    TransactionalProducer,
)
from homeport.container.progress.commit import Send

DEADLINE_S = 30.0


@pytest.fixture(name="topic")
def _topic(kafka: str) -> str:
    name = f"t{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    return name


def _send_on(producer: TransactionalProducer, topic: str) -> None:
    """Records are handed over until that fails."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        producer.send([Send(topic, None, b"y", 0)])


def test_a_record_refused_while_others_are_handed_over_is_the_reason(
    kafka: str, topic: str
) -> None:
    """Not the state that the refusal has put the library into."""
    config = Config(
        {
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.consumer.bootstrap.servers": kafka,
            "systems.kafka.producer.bootstrap.servers": kafka,
            "systems.kafka.producer.max.request.size": "5000000",
        }
    )
    producer = TransactionalProducer(SystemConfig.of(config, "kafka"), topic)
    producer.initialise()
    producer.begin()
    producer.send([Send(topic, None, b"x" * 1_500_000, 0)])
    with pytest.raises(RecordRefusedError, match="Message size too large"):
        _send_on(producer, topic)
    producer.begin()
    producer.send([Send(topic, None, b"y", 0)])
    producer.deliver()
    assert list(producer.commit()) == [(topic, 0)]
    producer.close()
