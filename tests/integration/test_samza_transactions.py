"""The published classes of Apache Samza 1.8.0 on what the driver writes in transactions."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from samza_streams import Stream, values

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.kafka.clients import LIBRDKAFKA_LOG
from homeport.job_coordinator.kafka.record_writer import TransactionalWriter


def test_samza_follows_transactions_to_their_end(stream: Stream) -> None:
    """A reader of Samza's that stays open sees each transaction whole, and never waits for more.

    The last offset of the topic is a transaction's marker each time, which is no record.
    """
    stream.open()
    with stream.store(transactional_id=f"homeport.{stream.topic}") as store:
        store.fence()
        store.bootstrap()
        for number in range(5):
            # more than the 100 records that Samza's consumer polls at once
            store.write(wire.set_config(f"k{i}", str(number)) for i in range(150))
            expected = {f"k{i}": {"value": str(number)} for i in range(150)}
            _until(lambda: values(stream.samza.ask("all")).get("set-config"), expected)
            texts = {key: value["value"] for key, value in expected.items()}
            _until(lambda: stream.samza.ask("bootstrapped", [])["config"], texts)
    assert stream.theirs()["set-config"] == expected


def _until(found: Callable[[], object], expected: object) -> None:
    """Samza has found what is expected: it reads as far as its last fetch knew of records."""
    deadline = time.monotonic() + 20
    while found() != expected:
        assert time.monotonic() < deadline, found()


def test_aborted_transactions_are_nothing_to_either(stream: Stream) -> None:
    """With isolation.level=read_committed, as the README has it, Samza sees no aborted record.

    Without that key it takes them for true, which is why the README names it.
    """
    stream.write([wire.set_config("k", "1"), wire.set_config("deleted", "1")], driver=True)
    producer = Producer(
        {"bootstrap.servers": stream.servers, "transactional.id": f"homeport.{stream.topic}.2"},
        logger=LIBRDKAFKA_LOG,
    )
    producer.init_transactions(20)
    for _ in range(2):
        producer.begin_transaction()
        for message in (
            wire.set_config("k", "2"),
            wire.set_config("never", "2"),
            wire.tombstone("set-config", "deleted"),
        ):
            key, value = wire.encode(message)
            producer.produce(stream.topic, value, key, partition=0)
        producer.flush(20)
        producer.abort_transaction(20)
    expected = {"k": {"value": "1"}, "deleted": {"value": "1"}}
    assert stream.theirs()["set-config"] == expected
    ours = stream.ours("set-config")
    assert {key: dict(message.values or {}) for key, message in ours.items()} == expected
    assert stream.theirs(more={})["set-config"] == {"k": {"value": "2"}, "never": {"value": "2"}}


@pytest.mark.parametrize("limit", [None, "2000"])
def test_a_record_that_is_too_large_shows_samza_nothing(stream: Stream, limit: str | None) -> None:
    """What was in one transaction with it was never sent, so no isolation level is needed."""
    if limit is not None:
        more = {"systems.kafka.producer.max.request.size": limit}
        stream.config = Config({**stream.config, **more})
    largest = 1_000_000 if limit is None else int(limit)
    (key, value), with_it = (wire.encode(wire.set_config(name, "1")) for name in ("fits", "with"))
    assert value is not None
    fits = value.ljust(largest - 36 - len(key))  # what the library adds
    system = SystemConfig.of(stream.config, "kafka")
    writer = TransactionalWriter(system, stream.topic, 20, f"homeport.{stream.topic}")
    try:
        with pytest.raises(WireError, match=r"set-config.*fits.*too large"):
            writer.write([with_it, (key, fits + b" ")])
        writer.write([(key, fits)])
    finally:
        writer.close()
    assert stream.theirs(more={})["set-config"] == {"fits": {"value": "1"}}
