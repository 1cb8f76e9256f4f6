"""An open transaction of another writer in an input, on a real broker: the log names it."""

from __future__ import annotations

import logging
import time
import uuid

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from job_configs import kafka_system
from stream_containers import until_led

from homeport.container.kafka import input_consumer
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


def test_what_waits_behind_an_open_transaction_says_so(
    kafka: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Position, last stable offset and high watermark; what follows is read after its end."""
    monkeypatch.setattr(input_consumer, "_QUIET_S", 0.5)
    topic = f"in-{uuid.uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    until_led(admin, TopicPartition(topic, 0))
    foreign = Producer({"bootstrap.servers": kafka, "transactional.id": uuid.uuid4().hex})
    foreign.init_transactions(30)
    foreign.begin_transaction()
    foreign.produce(topic, b"open", partition=0)
    assert foreign.flush(30) == 0
    plain = Producer({"bootstrap.servers": kafka})
    for _ in range(3):
        plain.produce(topic, b"behind", partition=0)
    assert plain.flush(30) == 0
    ssp = SystemStreamPartition("kafka", topic, 0)
    consumer = InputConsumer({"kafka": kafka_system(kafka)}, {TaskName("T"): {ssp: 0}})
    caplog.set_level(logging.WARNING)
    deadline_s = time.monotonic() + 60
    while not caplog.messages:
        assert time.monotonic() < deadline_s
        assert consumer.poll(10, 0.1) is None
    (line,) = caplog.messages
    assert line.startswith(f"input kafka.{topic} partition 0 has stood at offset 0 for ")
    assert "a transaction is open there (last stable offset 0, high watermark 4)" in line
    assert consumer.held()[ssp] >= 0.5
    foreign.abort_transaction(30)
    read = 0
    while read < 3:
        assert time.monotonic() < deadline_s
        batch = consumer.poll(10, 0.1)
        read += 0 if batch is None else batch.table.num_rows
    consumer.close()
