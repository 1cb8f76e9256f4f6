"""A job on YARN that counts by another key than its input has: one job, exact."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from rekeyed_jobs import counts_to, rekeyed_job
from yarn_jobs import PARTITIONS, Job, wait_for


def offsets(job: Job) -> Counter[str]:
    """How many offsets the topic of the repartition still has, and has had."""
    found = Counter[str]()
    consumer = Consumer({"bootstrap.servers": job.servers, "group.id": "none"})
    try:
        for number in range(PARTITIONS):
            place = TopicPartition(f"__homeport_repartition_{job.name}_1_by-group", number)
            low, high = consumer.get_watermark_offsets(place, 30)
            found += Counter(left=high - low, written=high)
    finally:
        consumer.close()
    return found


def test_groups_are_counted_exactly_over_deaths_and_other_numbers_of_containers(
    make_job: Callable[[str], Job],
) -> None:
    """The topic is made by the job, loses what is committed, and goes with a reset of the state."""
    job = rekeyed_job(make_job)
    pids = job.begin(700)
    counts_to(job, 700)
    os.kill(pids["1"], signal.SIGKILL)
    job.produce(700, first=700)
    counts_to(job, 1400)
    wait_for(lambda: job.pids().get("1", pids["1"]) != pids["1"], job)
    sent = 1400

    def is_purged() -> bool:
        nonlocal sent
        job.produce(70, first=sent)  # a deletion leaves with a commit
        sent += 70
        counts_to(job, sent)
        found = offsets(job)
        return found["left"] * 3 < found["written"]

    wait_for(is_purged, job)
    key = "job.container.count"
    done = job.operator("config", "set", key, "3")
    assert done.returncode == 0, done.stderr
    job.produce(700, first=sent)
    wait_for(lambda: "2" in job.pids(), job)
    counts_to(job, sent + 700)
    job.end()

    for number, line in (
        ("4", f"'4': topic '__homeport_repartition_{job.name}_1_by-group' has 6 partitions"),
        ("many", "'many': it must be a whole number"),
    ):
        refused = job.call("run", f"task.repartition.by-group={number}")
        assert refused.returncode == 1
        assert f"task.repartition.by-group = {line}" in refused.stderr, refused.stderr
    done = job.call("run", "task.repartition.by-group=4", reset_state=True)
    assert done.returncode == 0, done.stderr
    job.learn(done.stdout)
    topic = f"__homeport_repartition_{job.name}_1_by-group"
    assert f"kafka.{topic}" in done.stderr
    admin = AdminClient({"bootstrap.servers": job.servers})
    wait_for(lambda: len(admin.list_topics(topic, 10).topics[topic].partitions) == 4, job)
    counts_to(job, sent + 700)
    job.end()
