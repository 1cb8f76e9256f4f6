"""Makes the topics of one run of scripts/bench commit, or fills its input; prints JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from confluent_kafka import Producer

from benchmarks.commit.job import job_of, topic
from benchmarks.commit.tasks import OUTPUT, PARTITIONS, STORE, Record, distinct_records, hot_records
from benchmarks.report import BenchmarkError
from homeport.job_coordinator.kafka.topics import TopicAdmin

_COMPACT = {"cleanup.policy": "compact"}
_QUEUED = 500_000
_DELIVERED_S = 60.0


def make_topics(servers: str, name: str) -> None:
    """Input, output, changelog and checkpoints of the run are there, and empty."""
    job = job_of(servers, name, {})
    admin = TopicAdmin(job.transaction_system)
    for kind in ("in", OUTPUT):
        admin.create(topic(name, kind), PARTITIONS, 1, {})
    admin.create(topic(name, STORE), PARTITIONS, 1, _COMPACT)
    admin.create(job.task.checkpoint_topic, 1, 1, _COMPACT)


def fill(servers: str, target: str, records: Iterable[Record]) -> int:
    """The topic ``target`` has ``records``; how many there were.

    Raises:
        BenchmarkError: the broker did not take them in time.
    """
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 2 * _QUEUED}
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


def main() -> None:
    """``SERVERS NAME topics``, or ``SERVERS NAME hot|distinct RECORDS KEYS SEED``."""
    servers, name, kind, *numbers = sys.argv[1:]
    if kind == "topics":
        make_topics(servers, name)
        print(json.dumps({}))
        return
    records, keys, seed = map(int, numbers)
    made = hot_records(records, keys, seed) if kind == "hot" else distinct_records(keys, seed)
    print(json.dumps({"records": fill(servers, topic(name, "in"), made)}))


if __name__ == "__main__":
    main()
