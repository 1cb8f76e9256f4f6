"""A driver's transaction whose outcome is not known, on a real Kafka."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import KafkaError, KafkaException
from job_configs import kafka_system
from topic_records import topic_records

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.record_writer import TransactionalWriter
from homeport.job_coordinator.kafka.topics import TopicAdmin

DEADLINE_S = 20.0


def test_no_transaction_begins_before_an_unknown_one_is_settled(kafka: str) -> None:
    """The library itself refuses to begin; the writer settles the commit, and then begins.

    A writer that forgot the commit would be over at the refusal, and its process would end; nothing
    would be committed that it was not asked for.
    """
    topic, system = f"t-{uuid.uuid4().hex[:12]}", kafka_system(kafka)
    TopicAdmin(system).create(topic, 1, 1, {})
    writer = TransactionalWriter(system, topic, DEADLINE_S, f"homeport.{topic}.1.am.1.a.1")
    try:
        writer.open()
        writer._timeout_s = 0.0  # no broker answers a commit within a millisecond
        with pytest.raises(UnavailableError, match="the outcome is not known"):
            writer.write([(b"a", b"1")])
        with pytest.raises(KafkaException) as refused:
            writer._producer().begin_transaction()
        # _CONFLICT while the call is under way, _STATE once it is over and its answer not fetched.
        code = clients.error_of(refused.value).code()
        assert code in {KafkaError._CONFLICT, KafkaError._STATE}
        writer._timeout_s = DEADLINE_S
        writer.write([(b"b", b"2")])
    finally:
        writer.close()
    assert topic_records(kafka, topic) == [(b"a", b"1"), (b"b", b"2")]
