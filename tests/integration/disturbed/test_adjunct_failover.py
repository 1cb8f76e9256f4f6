"""A failover on a real YARN cluster finds the adjunct stores that the standby has filled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from standby_jobs import standby_job
from yarn_jobs import PARTITIONS, Job, wait_for

_OF_EACH = 100
_KEPT = re.compile(r"adjunct store planes/(\S+) is kept: its stream \S+ is read on at (\d+): (\d+)")


def _planes(job: Job) -> None:
    """The stream is there, with so many records in each partition."""
    topic = f"{job.name}-planes"
    admin = AdminClient({"bootstrap.servers": job.servers})
    compacted = NewTopic(topic, PARTITIONS, config={"cleanup.policy": "compact"})
    admin.create_topics([compacted])[topic].result(30)
    producer = Producer({"bootstrap.servers": job.servers})
    for number in range(_OF_EACH * PARTITIONS):
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


def _has_all(container: dict[str, Any]) -> bool:
    """Whether the container, of either role, has all of its tasks' planes."""
    states = (container["report"] or {}).get("adjuncts") or []
    return bool(states) and all((s["records"], s["lag"]) == (_OF_EACH, 0) for s in states)


@pytest.mark.long
def test_a_failover_reads_only_the_tail_of_reference_data(
    make_job: Callable[[str], Job],
) -> None:
    """The status has the stores of both roles; the successor keeps what its standby filled."""
    job = standby_job(make_job, "reference")
    job.produce(600)
    _planes(job)
    job.run()
    job.wait_until_running()
    wait_for(lambda: all(_has_all(c) for c in job.containers().values()), job)
    assert 'homeport_adjunct_records{processor="0-0",store="planes"' in job.get_text("metrics")
    before, am_host = job.containers(), job.am_host()
    lost = next(
        c["host"] for c in before.values() if c["role"] == "active" and c["host"] != am_host
    )
    moved = [p for p, c in before.items() if (c["role"], c["host"]) == ("active", lost)]
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: all(job.containers()[p]["epoch"] > before[p]["epoch"] for p in moved), job)
        after = job.wait_until_running()
        for active in moved:
            assert after[active]["host"] == before[f"{active}-0"]["host"]
            name = f"container-{active}-{after[active]['epoch']}.log"
            logs = f"nodes/*/logs*/{job.application_id}/*/{name}"
            (log,) = job.cluster.log_dir.parent.glob(logs)
            kept = _KEPT.findall(log.read_text(encoding="utf-8"))
            assert len(kept) == PARTITIONS // 2
            assert {int(offset) for _, _, offset in kept} == {_OF_EACH}
        job.produce(400, first=600)
        job.counts_all()
    finally:
        job.cluster.start_node(lost)
    assert job.kill() == f"stopped {job.application_id} in order"
    job.judge_history()
