"""Which errors pass by themselves."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from homeport.job_coordinator.kafka.transient_errors import is_transient


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError._MSG_TIMED_OUT,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_CONTROLLER,
    ],
)
def test_errors_that_kafka_retries_are_transient(code: int) -> None:
    """What the library says so of as well, whatever it is."""
    assert is_transient(KafkaError(code))
    assert is_transient(KafkaError(KafkaError._FAIL, "once more", retriable=True))


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.INVALID_MSG,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.PRODUCER_FENCED,
        KafkaError._FENCED,
    ],
)
def test_errors_that_only_a_change_mends_are_not_transient(code: int) -> None:
    """A caller that waited for it would wait for ever."""
    assert not is_transient(KafkaError(code))
