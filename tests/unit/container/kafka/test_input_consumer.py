"""InputConsumer: bootstrap streams, open transactions, and headers whose names are no text."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import pytest
from confluent_kafka import Consumer
from mock_cluster import read_with

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.arrow_records import headers_of, records_of
from homeport.container.kafka.input_consumer import InputConsumer, OpenEnds
from homeport.container.progress.input_schedule import StoredInputs
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.testing.broker import Broker
from homeport.testing.clients import MemoryConsumer

_TABLE, _IN = (SystemStreamPartition("kafka", name, 0) for name in ("table", "in"))
_BOOTSTRAP = Config(
    {
        "systems.kafka.consumer.bootstrap.servers": "none:9092",
        "systems.kafka.streams.table.samza.bootstrap": "true",
    }
)


def _connected(broker: Broker, _system: SystemConfig, properties: Mapping[str, Any]) -> Consumer:
    says_ends = bool(properties.get("enable.partition.eof"))
    return cast("Consumer", MemoryConsumer(broker, says_ends=says_ends))


def test_the_log_says_how_long_other_inputs_still_wait(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every few seconds, by the rate since the start, and once when they begin."""
    caplog.set_level(logging.INFO)
    now, awaited = [1000.0], {TaskName("Partition 0"): "planes: no end"}
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    broker = Broker(lambda _topic: 1, lambda: 0)
    for topic in ("table", "table", "table", "table", "in"):
        broker.append(topic, b"k", b"v", partition=0)
    source = InputConsumer(
        {"kafka": SystemConfig.of(_BOOTSTRAP, "kafka")},
        {TaskName("Partition 0"): {_TABLE: 0, _IN: 0}},
        partial(_connected, broker),
        ends={_TABLE: 4, _IN: 1},
        stored=StoredInputs(frozenset({_TABLE}), {}, lambda: awaited),
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
    for _ in range(2):
        now[0] += 6
        assert source.poll(1, 0) is None
        assert not source.is_caught_up()
    expected = "other inputs wait for the first version of planes: no end"
    assert caplog.text.count(expected) == 2
    awaited.clear()
    batch = source.poll(1, 0)
    assert batch is not None
    assert batch.table["stream"].to_pylist() == ["in"]
    source.close()


A, B = (SystemStreamPartition("kafka", "in", number) for number in (0, 1))


class _Case:
    """Partitions, and what is said of them at a time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.stable: dict[SystemStreamPartition, int | None] = {}
        self.asked: list[SystemStreamPartition] = []
        self.ends = OpenEnds(lambda: self.now_s, self._ask)

    def _ask(self, ssp: SystemStreamPartition) -> int | None:
        self.asked.append(ssp)
        return self.stable.get(ssp)

    def at(self, now_s: float, **places: tuple[int, int]) -> list[str]:
        """What is said then."""
        self.now_s = now_s
        names = {"a": A, "b": B}
        return list(self.ends.reports(lambda: {names[name]: p for name, p in places.items()}))


def test_a_task_that_only_fills_its_store_keeps_no_other_from_reading() -> None:
    """No input waits for its records, which are always at hand: both are read in turns."""
    part = SystemStreamPartition("kafka", "table", 1)
    broker = Broker(lambda _topic: 2, lambda: 0)
    for _ in range(3):
        broker.append("table", b"k", b"v", partition=1)
        broker.append("in", b"k", b"v", partition=0)
    source = InputConsumer(
        {"kafka": SystemConfig.of(_BOOTSTRAP, "kafka")},
        {TaskName("Partition 0"): {_IN: 0}, TaskName("Partition 1"): {part: 0}},
        partial(_connected, broker),
        ends={part: 3},
        stored=StoredInputs(frozenset({part})),
    )
    batches = [source.poll(1, 0) for _ in range(6)]
    found = [name for b in batches if b is not None for name in b.table["stream"].to_pylist()]
    assert found == ["table", "in"] * 3
    source.close()


def test_a_partition_behind_an_open_transaction_is_named_once_a_minute() -> None:
    """With its position, its last stable offset and its high watermark."""
    case = _Case()
    case.stable[A] = 12
    assert case.at(1, a=(12, 40), b=(5, 5)) == []
    assert case.at(10.9, a=(12, 40), b=(5, 5)) == []
    (line,) = case.at(12, a=(12, 41), b=(5, 5))
    assert line.startswith("input kafka.in partition 0 has stood at offset 12 for 11 s: a trans")
    assert "(last stable offset 12, high watermark 41)" in line
    assert case.ends.held() == {A: 11}
    assert case.at(70, a=(12, 41)) == []
    assert len(case.at(72, a=(12, 41))) == 1
    assert case.asked == [A, A]


def test_an_end_that_is_no_record_is_none() -> None:
    """The end of a transaction takes an offset; nor is anything said without an answer."""
    case = _Case()
    case.stable = {A: 13, B: None}
    case.at(1, a=(12, 13), b=(5, 9))
    assert case.at(20, a=(12, 13), b=(5, 9)) == []
    assert case.ends.held() == {}
    assert case.asked == [A, B]


def test_what_moves_does_not_stand_still() -> None:
    """The time counts from its last record, and from its last end."""
    case = _Case()
    case.stable[A] = 14
    case.at(1, a=(12, 40))
    assert case.at(12, a=(14, 40)) == []
    assert case.at(13, a=(40, 40)) == []
    assert case.at(21, a=(40, 50)) == []
    assert case.at(30, a=(40, 50)) == []
    assert case.asked == []
    assert len(case.at(31, a=(40, 50))) == 1
    assert case.ends.held() == {A: 10}
    assert case.at(32, a=(50, 50)) == []
    assert case.ends.held() == {}


def test_partitions_are_looked_at_once_a_second() -> None:
    """An idle loop polls more often."""
    case, looks = _Case(), [0]

    def look() -> dict[SystemStreamPartition, tuple[int, int]]:
        looks[0] += 1
        return {}

    for case.now_s in (0.5, 1.0, 1.9, 2.0):
        list(case.ends.reports(look))
    assert looks == [2]


def test_a_header_whose_name_is_no_text_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The record is one of each task that reads it; it would end its container at each start.

    So it is in a loop that has run for a while, whose calls Python has specialized.
    """
    with read_with([b"a", b"a"]) as usual:
        for _ in range(100):
            assert headers_of(usual) == [("a", b"v"), ("a", b"v")]
    with read_with([b"a", b"\xff", "ü".encode(), b"\xed\xa0\x80", b"<NULL>"]) as message:
        for _ in range(2):
            (row,) = records_of([message]).to_pylist()
            assert row["headers"] == [("a", b"v"), ("ü", b"v"), ("<NULL>", b"v")]
    (line,) = caplog.messages
    assert line.startswith("input in partition 0 offset 0: 2 of its 5 headers have names that are")


def test_ends_of_many_partitions_are_not_looked_at_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a fiftieth of the time; what was read since a look counts at once."""
    looks = 0

    class Slow(MemoryConsumer):
        def get_watermark_offsets(self, *args: Any, **more: Any) -> tuple[int, int]:  # noqa: ANN401 - as its base
            nonlocal looks
            looks += 1
            now[0] += 0.0001
            return super().get_watermark_offsets(*args, **more)

    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    broker = Broker(lambda _topic: 20, lambda: 0)
    parts = [SystemStreamPartition("kafka", "in", number) for number in range(20)]
    source = InputConsumer(
        {"kafka": SystemConfig.of(_BOOTSTRAP, "kafka")},
        {TaskName("a"): dict.fromkeys(parts, 0)},
        lambda *_: cast("Consumer", Slow(broker, says_ends=False)),
    )
    for _ in range(3):
        broker.append("in", b"k", b"v", partition=7)
    assert (source.lag(), source.is_at_end(), source.is_caught_up(), looks) == (3, False, True, 20)
    source.poll(2, 0)
    broker.append("in", b"k", b"v", partition=8)
    assert (source.lag(), source.is_at_end(), looks) == (1, True, 20)
    now[0] += 0.099
    assert (source.lag(), looks) == (2, 40)
    source.close()
