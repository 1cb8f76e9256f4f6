"""Whether a partition that cannot be read is Kafka's absence or a fault of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.kafka_names import HELD, Role
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import (
    PartitionError,
    follow_properties,
    input_properties,
    plain_producer_properties,
    producer_properties,
    restore_properties,
    unread,
)
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.clients import COMMITTED

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
    ("error", "codes"),
    [
        (
            UnavailableError,
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
        ),
        (
            PartitionError,
            [
                KafkaError.UNKNOWN_TOPIC_OR_PART,
                KafkaError.OFFSET_OUT_OF_RANGE,
                KafkaError._AUTO_OFFSET_RESET,
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
            ],
        ),
    ],
    ids=["transient", "permanent"],
)
def test_an_error_that_waiting_mends_is_not_charged_to_the_container(
    error: type[Exception], codes: list[int]
) -> None:
    """The retry keys do not count it. One of the others would start a container for ever."""
    found = {code: type(unread(SYSTEM, "reading a", KafkaError(code))) for code in codes}
    assert found == dict.fromkeys(codes, error)


CLIENTS: list[tuple[str, Callable[[SystemConfig], Mapping[str, Any]]]] = [
    ("consumer", lambda system: input_properties(system, 1_000_000)),
    ("consumer", restore_properties),
    ("consumer", follow_properties),
    (
        "consumer",
        lambda system: _made_with("Consumer", lambda: clients.consumer(system, COMMITTED)),
    ),
    ("producer", lambda system: producer_properties(system, "id")),
    ("producer", plain_producer_properties),
    ("producer", lambda system: _made_with("Producer", lambda: clients.producer(system, {}))),
]


def _made_with(kind: str, make: Callable[[], object]) -> Mapping[str, Any]:
    """Return the properties that ``make`` gives to the library."""
    found: dict[str, Any] = {}

    def library(properties: Mapping[str, Any], **_: object) -> None:
        found.update(properties)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, kind, library)
        make()
    return found


@pytest.mark.parametrize(("role", "client"), CLIENTS, ids=range(len(CLIENTS)))
def test_what_a_client_does_not_take_is_warned_of(
    role: str, client: Callable[[SystemConfig], Mapping[str, Any]]
) -> None:
    """Of each property that a client of ours has, the user's value holds, or is warned of."""
    servers = {"systems.kafka.consumer.bootstrap.servers": "broker:9092"}
    names = set(client(SystemConfig.of(Config(servers), "kafka"))) - {"bootstrap.servers"}
    assert names
    value = "30000"  # a number, as some are counted by here
    for name in sorted(names | set(HELD[Role(role)])):
        key = f"systems.kafka.{role}.{name}"
        config = Config({**servers, key: value})
        system = SystemConfig.of(config, "kafka")
        is_warned = key in system.ignored
        assert (client(system).get(name) == value) is not is_warned, name
