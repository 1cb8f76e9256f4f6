"""What the library says of an offset, and what that means."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo

from homeport.job_coordinator.kafka.clients import error_of
from homeport.job_coordinator.kafka.offsets import reported_offset


def answer(offset: int) -> Future[ListOffsetsResultInfo]:
    """The library's, with this offset."""
    future: Future[ListOffsetsResultInfo] = Future()
    future.set_result(ListOffsetsResultInfo(offset, -1, -1))
    return future


@pytest.mark.parametrize("offset", [0, 7, -1])
def test_an_offset_that_was_returned_is_the_offset(offset: int) -> None:
    """-1: there is no record of that time."""
    assert reported_offset(answer(offset)) == offset


def test_the_number_that_means_no_answer_is_an_error() -> None:
    """One that Kafka's absence is known by."""
    with pytest.raises(KafkaException) as caught:
        reported_offset(answer(-1001))
    assert error_of(caught.value).code() == KafkaError._TIMED_OUT
