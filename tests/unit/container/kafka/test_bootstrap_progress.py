"""What the log says while inputs wait for bootstrap streams."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, cast

import pytest
from confluent_kafka import Consumer

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.progress.input_schedule import StoredInputs
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.testing.broker import Broker
from homeport.testing.clients import MemoryConsumer

_TABLE, _IN = (SystemStreamPartition("kafka", name, 0) for name in ("table", "in"))


def test_the_log_says_how_long_other_inputs_still_wait(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every few seconds, by the rate since the start, and once when they begin."""
    caplog.set_level(logging.INFO)
    now, holds_back = [1000.0], [False]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    broker = Broker(lambda _topic: 1, lambda: 0)
    for topic in ("table", "table", "table", "table", "in"):
        broker.append(topic, b"k", b"v", partition=0)
    config = Config(
        {
            "systems.kafka.consumer.bootstrap.servers": "none:9092",
            "systems.kafka.streams.table.samza.bootstrap": "true",
        }
    )

    def connect(_system: SystemConfig, properties: Mapping[str, Any]) -> Consumer:
        says_ends = bool(properties.get("enable.partition.eof"))
        return cast("Consumer", MemoryConsumer(broker, says_ends=says_ends))

    source = InputConsumer(
        {"kafka": SystemConfig.of(config, "kafka")},
        {TaskName("Partition 0"): {_TABLE: 0, _IN: 0}},
        connect,
        ends={_TABLE: 4, _IN: 1},
        stored=StoredInputs(
            frozenset({_TABLE}), {}, lambda: "planes: no end" if holds_back[0] else None
        ),
    )
    assert source.bootstrap_left([_IN]) is None
    assert source.bootstrap_left([_TABLE, _IN]) == (4, None)
    assert (source.lag_of([_TABLE]), source.lag_of([_TABLE, _IN])) == (4, 5)
    for _ in range(3):
        source.poll(1, 0)
        now[0] += 6
    left = source.bootstrap_left([_TABLE])
    assert left is not None
    assert (left[0], source.lag_of([_TABLE])) == (1, 1)
    assert left[1] == pytest.approx(6.0)
    assert "at 0 of 4" in caplog.text
    assert "other inputs begin in about 12 s: 2 records are left" in caplog.text
    source.poll(1, 0)
    assert "bootstrap streams are read to their ends: other inputs begin" in caplog.text
    assert source.bootstrap_left([_TABLE]) is None
    holds_back[0] = True
    for _ in range(2):
        now[0] += 6
        assert source.poll(1, 0) is None
    said = "other inputs wait for the first version of planes: no end"
    assert caplog.text.count(said) == 2
    holds_back[0] = False
    batch = source.poll(1, 0)
    assert batch is not None
    assert batch.table["stream"].to_pylist() == ["in"]
    source.close()
