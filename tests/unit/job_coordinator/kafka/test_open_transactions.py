"""What an operator learns of transactions that are in the way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.open_transactions import how_to_end, not_initialised

SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "h:1"}), "k")
ENDING = KafkaError(KafkaError.CONCURRENT_TRANSACTIONS, "concurrent")


class _Client:
    """A producer that knows the leaders of Kafka's topic of transactions, or is not answered."""

    def __init__(self, leaders: dict[int, int] | None) -> None:
        self._leaders = leaders

    def poll(self, timeout: float) -> int:
        """Nothing waits."""
        del timeout
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> SimpleNamespace:
        """As the library's."""
        del topic, timeout
        if self._leaders is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        partitions = {p: SimpleNamespace(leader=leader) for p, leader in self._leaders.items()}
        topics = {"__transaction_state": SimpleNamespace(partitions=partitions)}
        return SimpleNamespace(topics=topics if partitions else {}, brokers={7: "h:2/7"})


def _said(error: KafkaError, leaders: dict[int, int] | None) -> str:
    return str(not_initialised(SYSTEM, _Client(leaders), "a-stranger", error))  # type: ignore[arg-type]  # a part of it


def test_an_aborting_command_has_a_warning() -> None:
    """No advice aborts what may have been committed."""
    line = how_to_end(SYSTEM, "log", 3, 17)
    tool = "kafka-transactions.sh --bootstrap-server h:1"
    assert f"`{tool} abort --topic log --partition 3 --start-offset 17`" in line
    assert "if it was aborted" in line
    assert "one that was committed must not be aborted" in line


@pytest.mark.parametrize(
    ("leaders", "named"),
    [
        ({0: 7, 1: 7, 2: 7, 3: 7}, "broker h:2/7 that leads __transaction_state partition 2 makes"),
        ({0: 7, 1: 7, 2: 9, 3: 7}, "the broker that leads __transaction_state partition 2 makes"),
        ({}, "restart of its coordinator makes"),
    ],
)
def test_the_coordinator_of_a_transaction_that_does_not_end_is_named(
    leaders: dict[int, int], named: str
) -> None:
    """As far as it is known, with the command that shows what is missing."""
    line = _said(ENDING, leaders)
    assert "it is still ending the last transaction of this id" in line
    assert "`kafka-transactions.sh --bootstrap-server h:1 describe --transactional-id a-" in line
    assert named in line
    late = _said(KafkaError(KafkaError._TIMED_OUT), leaders)
    assert "it may be still ending the last transaction of this id" in late


def test_of_a_kafka_that_is_away_no_transaction_is_reported() -> None:
    """Nor where it refuses the id."""
    for line in (_said(ENDING, None), _said(KafkaError(KafkaError.INVALID_REQUEST), {0: 7})):
        assert "initialising a-stranger" in line
        assert "check that the brokers run" in line
