"""Reference data of a job on a real cluster, in an adjunct store of each of its tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from yarn_jobs import PARTITIONS, Job

OF_EACH = 100
"""So many records each partition of the stream has."""
_KEPT = re.compile(r"adjunct store planes/(\S+) is kept: its stream \S+ is read on at (\d+): (\d+)")


def has_planes(job: Job) -> None:
    """The stream is there, with its records, and the job has the store; it is not run yet."""
    topic = f"{job.name}-planes"
    admin = AdminClient({"bootstrap.servers": job.servers})
    compacted = NewTopic(topic, PARTITIONS, config={"cleanup.policy": "compact"})
    admin.create_topics([compacted])[topic].result(30)
    producer = Producer({"bootstrap.servers": job.servers})
    for number in range(OF_EACH * PARTITIONS):
        producer.produce(topic, key=f"N{number}", value="A320", partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    job.values |= {
        "task.inputs": f"kafka.{job.name}-in, kafka.{topic}",
        f"systems.kafka.streams.{topic}.samza.bootstrap": "true",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": f"kafka.{topic}",
    }


def has_all(container: dict[str, Any]) -> bool:
    """Whether the container, of either role, has all of its tasks' planes."""
    states = (container["report"] or {}).get("adjuncts") or []
    return bool(states) and all((s["records"], s["lag"]) == (OF_EACH, 0) for s in states)


def kept_by(log: str) -> dict[str, int]:
    """{place: offset at which its stream is read on} of the stores that a start has kept."""
    return {place: int(offset) for place, _, offset in _KEPT.findall(log)}


def logs_of(job: Job, names: Iterable[str]) -> list[str]:
    """The texts of these logs of the job's application."""
    base = job.cluster.log_dir.parent
    paths: list[Path] = []
    for name in names:
        paths += base.glob(f"nodes/*/logs*/{job.application_id}/*/{name}")
    return [path.read_text(encoding="utf-8") for path in paths]
