"""Section bootstrap: a coordinator stream of 200,000 records is read to its head, several times.

The records are those of a job of 45,000 tasks with 20,000 configuration keys.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

from confluent_kafka import TopicPartition

from benchmarks.bed import broker
from benchmarks.jobs import config_of
from benchmarks.processes import resident_mb, result_of
from benchmarks.report import BenchmarkError, Row, Spent, table
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.model.job_model import TaskMode

KEYS, TASKS, RECORDS = 20_000, 45_000, 200_000
_VALUE_CHARACTERS = 300
_ROUNDS = 3
_AT_ONCE = 10_000


def _messages() -> Iterator[CoordinatorStreamMessage]:
    for number in range(KEYS):
        yield wire.set_config(f"user.key-{number}", f"{number:0{_VALUE_CHARACTERS}}")
    for number in range(TASKS):
        name, container = f"Partition {number}", str(number // 10)
        yield wire.set_task_container_assignment(name, container)
        yield wire.set_task_mode_assignment(name, TaskMode.ACTIVE)
        yield wire.set_changelog(name, number)
        yield wire.set_task_host_assignment(name, f"host-{number % 500}", 1)


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    spent = Spent()
    work()
    return spent.so_far()


def _read_bare(system: SystemConfig, topic: str) -> None:
    consumer = clients.consumer(system, clients.COMMITTED)
    consumer.assign([TopicPartition(topic, 0, 0)])
    read, at_end = 0, False
    while not at_end:
        for record in consumer.consume(_AT_ONCE, 0.1):
            error = record.error()
            if error is None:
                read += 1
            elif clients.is_end(error):
                at_end = True
    consumer.close()
    if read != RECORDS:
        raise BenchmarkError(f"the bare loop read {read} records of {RECORDS}")


def _checked(store: CoordinatorStreamStore) -> None:
    kinds = (
        MessageType.SET_CONFIG,
        MessageType.SET_TASK_CONTAINER,
        MessageType.SET_TASK_MODE,
        MessageType.SET_CHANGELOG,
        MessageType.SET_TASK_HOST,
    )
    known = sum(len(store.latest(kind)) for kind in kinds)
    if known != RECORDS:
        raise BenchmarkError(f"after bootstrap {known} records of {RECORDS} are known")


def measured(servers: str) -> dict[str, float]:
    """Write once, read in turns; return the medians."""
    config = config_of(servers, {}, "long-stream")
    system, spec = SystemConfig.of(config, "kafka"), coordinator_topic_spec(JobConfig.of(config))
    TopicAdmin(system).ensure(spec)
    messages = list(_messages())
    with CoordinatorStreamStore(system, spec.name, source="benchmark") as writer:
        for start in range(0, len(messages), _AT_ONCE):
            writer.write(messages[start : start + _AT_ONCE])
    del messages
    bare, read, state_mb = [], [], 0.0
    for _ in range(_ROUNDS):
        bare.append(_timed(partial(_read_bare, system, spec.name)))
        before = resident_mb()
        with CoordinatorStreamStore(system, spec.name, source="benchmark") as store:
            read.append(_timed(store.bootstrap))
            state_mb = max(state_mb, resident_mb() - before)
            _checked(store)
    found = {"state_mb": state_mb}
    for name, times in (("bare", bare), ("bootstrap", read)):
        found[f"{name}_s"] = statistics.median(seconds for seconds, _ in times)
        found[f"{name}_cpu_s"] = statistics.median(cpu for _, cpu in times)
    return found


def rows() -> Iterator[Row]:
    """Time, CPU and rate, against a loop that does nothing with the records."""
    with broker() as started:
        found = result_of("coordinator.bootstrap.measured", started.bootstrap_servers)
    found["rate"] = RECORDS / found["bootstrap_s"]
    found["times"] = found["bootstrap_s"] / found["bare_s"]
    yield from table(
        found,
        ("read and applied", "bootstrap_s", "s", 3),
        ("CPU", "bootstrap_cpu_s", "s", None),
        ("rate", "rate", "records/s", None),
        ("the bare loop", "bare_s", "s", None),
        ("CPU of the bare loop", "bare_cpu_s", "s", None),
        ("time, as a multiple of the bare loop's", "times", "x", None),
        ("memory that the state takes", "state_mb", "MB", None),
    )


SECTIONS = {
    "bootstrap": ("Bootstrap of a coordinator stream of 200,000 records (median of 3)", rows)
}
