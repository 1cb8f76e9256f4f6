"""Whether a partition that cannot be read is Kafka's absence or a fault of its own."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.clients import PartitionError, unread

SYSTEM = SystemConfig.of(
    Config(
        {
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.consumer.bootstrap.servers": "broker:9092",
        }
    ),
    "kafka",
)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.NETWORK_EXCEPTION,
    ],
)
def test_a_transient_error_is_not_charged_to_the_container(code: int) -> None:
    """The retry keys do not count it."""
    assert isinstance(unread(SYSTEM, "reading a", KafkaError(code)), UnavailableError)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ],
)
def test_an_error_that_waiting_does_not_mend_is_permanent(code: int) -> None:
    """Else a container would be started for ever."""
    assert isinstance(unread(SYSTEM, "reading a", KafkaError(code)), PartitionError)
