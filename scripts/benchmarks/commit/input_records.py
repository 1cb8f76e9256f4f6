"""Makes the topics of one run of scripts/bench commit, and fills its input."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Producer

from benchmarks.commit.job import job_of, topic
from benchmarks.commit.tasks import OUTPUT, PARTITIONS, STORE, Record, distinct_records, hot_records
from benchmarks.report import BenchmarkError
from homeport.container.container_job import ContainerJob
from homeport.job_coordinator.kafka.topics import TopicAdmin

_COMPACT = {"cleanup.policy": "compact"}
_QUEUED = 500_000
_DELIVERED_S = 60.0


def make_topics(servers: str, name: str) -> None:
    """Input, output, changelog and checkpoints of the run are there, and empty."""
    job = job_of(servers, name, {})
    make_run_topics(job, topic(name, "in"), topic(name, OUTPUT), changelog=topic(name, STORE))


def make_run_topics(job: ContainerJob, *plain: str, changelog: str) -> None:
    """The topics ``plain`` are there, and changelog and checkpoints of a run of ``job``."""
    admin = TopicAdmin(job.transaction_system)
    for name in plain:
        admin.create(name, PARTITIONS, 1, {})
    admin.create(changelog, PARTITIONS, 1, _COMPACT)
    admin.create(job.task.checkpoint_topic, 1, 1, _COMPACT)


def fill(servers: str, target: str, records: Iterable[Record]) -> int:
    """The topic ``target`` has ``records``; how many there were.

    BenchmarkError: the broker did not take them in time.
    """
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,  # a retry of a new broker changes the order else
            "linger.ms": 5,
            "queue.buffering.max.messages": 2 * _QUEUED,
        }
    )
    written = 0
    for partition, key, value in records:
        producer.produce(target, value, key, partition)
        written += 1
        if written % _QUEUED == 0:
            producer.flush()
    if producer.flush(_DELIVERED_S):
        raise BenchmarkError("the broker did not take the input in time")
    return written


def fill_input(
    servers: str, name: str, kind: str, records: int, keys: int, seed: int
) -> dict[str, int]:
    """Fill the input of a run of ``hot`` or ``distinct`` records; return how many there were."""
    made = hot_records(records, keys, seed) if kind == "hot" else distinct_records(keys, seed)
    return {"records": fill(servers, topic(name, "in"), made)}
