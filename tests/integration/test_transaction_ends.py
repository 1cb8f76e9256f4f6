"""When the transaction of a stream container ends, against a real broker."""

from __future__ import annotations

import signal

from confluent_kafka import Producer
from counted_words import begun, has_a_sound_history, has_counted, words
from stream_containers import COUNTER, DEADLINE_S, Make

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


def test_the_first_batch_of_a_start_is_not_held_back(make: Make) -> None:
    """Its transaction ends with it, however long others may take."""
    job = make(task_transaction_ms="600000", task_transaction_idle_ms="-1")
    job.produce(words(100))
    container = job.start(1)
    job.until(lambda: job.processed() > 0, container)
    first = job.processed()
    container.stop(signal.SIGKILL)
    job.produce(words(50, 100))
    again = job.start(2, [1])
    job.until(lambda: job.processed() > first, again)
    assert again.stop() == 143


def test_what_an_idle_input_brought_is_visible_long_before_the_transactions_time(
    make: Make,
) -> None:
    """Each record by itself, though its transaction may take longer than the test waits."""
    job = make(task_transaction_ms="600000", task_transaction_idle_ms="10")
    container = job.start(1)
    for count in (1, 2, 3):
        job.produce(words(1, count - 1))
        job.until(lambda count=count: job.processed() == count, container)  # type: ignore[misc]  # lambda
        has_counted(job, count)
    assert container.stop() == 143
    assert len(job.history("transaction-committed")) == 3
    has_a_sound_history(job)


def test_without_early_ends_a_transaction_stays_open_until_its_time(make: Make) -> None:
    """The record is processed, and the input idle for many polls; at the stop it is dropped."""
    job = make(
        COUNTER.replace(".add(word)", ".add(word); print('counted', word, flush=True)"),
        task_transaction_ms="600000",
        task_transaction_idle_ms="-1",
    )
    container = begun(job, 1)
    job.produce([(0, b"kept open", b"")])
    job.until(lambda: "counted kept open" in container.log.read_text(encoding="utf-8"), container)
    assert container.stop() == 143
    assert job.processed() == 1
    has_counted(job, 1)


def _read(source: InputConsumer, count: int) -> None:
    """Takes exactly ``count`` records, one by one."""
    for _ in range(count):
        batch = None
        while batch is None:
            batch = source.poll(1, DEADLINE_S)
        assert batch.table.num_rows == 1


def test_the_end_of_an_input_is_known_also_behind_a_marker(make: Make) -> None:
    """Records that wait are seen; the end of a transaction, which is an offset too, is none."""
    job = make()
    topic = job.topic("in")
    systems = {"kafka": SystemConfig.of(job.config, "kafka")}
    start = {TaskName("Partition 0"): {SystemStreamPartition("kafka", topic, 0): 0}}
    job.produce([(0, b"plain", b"")] * 5)
    source = InputConsumer(systems, start)
    try:
        assert not source.is_at_end(), "no partition has answered"
        _read(source, 2)
        assert not source.is_at_end()
        _read(source, 3)
        assert source.is_at_end()
        writer = Producer({"bootstrap.servers": job.servers, "transactional.id": topic})
        writer.init_transactions(DEADLINE_S)
        writer.begin_transaction()
        for _ in range(3):
            writer.produce(topic, b"", b"of a transaction", partition=0)
        writer.commit_transaction(DEADLINE_S)
        _read(source, 1)
        assert not source.is_at_end()
        _read(source, 2)
        assert source.lag() == 1
        assert source.is_at_end()
    finally:
        source.close()
