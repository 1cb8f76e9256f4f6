"""Inputs and an adjunct store of a job with state on a real YARN come and go, beside deaths."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from yarn_jobs import KEYS, PARTITIONS, TASK, Job, wait_for

NAMED = (
    TASK
    + """
class Named(Count):
    def init(self, context):
        super().init(context)
        self.names = context.store("names")

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            if self.names.get(key.decode()) is None:
                raise ValueError(f"{key} has no name yet")
        super().process_batch(table, collector)
"""
)
_READS = "containers whose tasks get or lose an input restart"


def topic(job: Job, part: str, partitions: int = PARTITIONS) -> str:
    """A further topic of the test; its name."""
    name = f"{job.name}-{part}"
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    return name


def send(job: Job, name: str, count: int, *, is_counted: bool = True) -> None:
    """So many more records are in the topic; the job is to count them, or none of them."""
    producer = Producer({"bootstrap.servers": job.servers})
    for number in range(count):
        key = f"key {number % KEYS}"
        producer.produce(name, key=key, value=str(number))
        job.produced[key] += is_counted
    assert producer.flush(30) == 0


def set_inputs(job: Job, *topics: str) -> subprocess.CompletedProcess[str]:
    """``homeport config set task.inputs`` with these topics beside the job's first."""
    value = ",".join(f"kafka.{name}" for name in (f"{job.name}-in", *topics))
    return job.operator("config", "set", "task.inputs", value)


def inputs(job: Job) -> set[str]:
    """The topics that the tasks of the served JobModel read."""
    containers = job.get("")["containers"].values()
    tasks = (task for c in containers for task in c["tasks"].values())
    return {ssp["stream"] for task in tasks for ssp in task["system-stream-partitions"]}


def reads(job: Job, *topics: str) -> None:
    """The job runs with exactly these inputs, and its first."""
    wait_for(lambda: inputs(job) == {f"{job.name}-in", *topics}, job)
    job.settled()


def kill_one(job: Job) -> None:
    """SIGKILL of a container, in its work or in its start."""
    pids = job.settled()
    os.kill(pids[min(pids)], signal.SIGKILL)


def what_moves_state_is_refused(job: Job) -> None:
    """One line each, and nothing is written."""
    odd, written = topic(job, "odd", PARTITIONS + 1), job.get("config")
    for name, rule in (
        ("gone", "the input stream must exist"),
        (odd, f"give it {PARTITIONS} partitions, as many as the job has tasks"),
        (f"{job.name}-counts", "would be the topic that is an input of the job too"),
    ):
        refused = set_inputs(job, name)
        assert refused.returncode == 1
        assert rule in refused.stderr.splitlines()[-1]
    assert job.get("config") == written


def test_an_input_and_an_adjunct_store_come_to_a_job_with_state_and_go(
    make_job: Callable[[str], Job],
) -> None:
    """Each record counts once, in whatever input; what moves state is refused, one line each."""
    job = make_job("changing")
    (job.package / "probe_task.py").write_text(NAMED)
    job.values |= {"job.container.count": "2", "task.commit.ms": "500"}
    job.begin(300)
    job.counts_all()

    more = topic(job, "more")
    what_moves_state_is_refused(job)
    send(job, more, 100)
    done = set_inputs(job, more)
    assert done.returncode == 0, done.stderr
    assert _READS in done.stdout
    job.kill_driver()
    reads(job, more)
    kill_one(job)
    send(job, more, 200)
    job.produce(100, first=300)
    job.counts_all()

    names = topic(job, "names", 1)
    send(job, names, KEYS, is_counted=False)
    assert job.kill() == f"stopped {job.application_id} in order"
    plain = dict(job.values)
    job.values |= {
        "task.class": "probe_task:Named",
        "task.broadcast.inputs": f"kafka.{names}#0",
        "stores.names.factory": "rocksdb",
        "stores.names.key.serde": "string",
        "stores.names.msg.serde": "string",
        "stores.names.adstore.input": f"kafka.{names}",
        f"systems.kafka.streams.{names}.samza.bootstrap": "true",
    }
    job.run()
    reads(job, more, names)
    kill_one(job)
    send(job, more, 100)
    job.counts_all()

    done = set_inputs(job)
    assert done.returncode == 0, done.stderr
    reads(job, names)
    kill_one(job)
    send(job, more, 50, is_counted=False)
    job.produce(100, first=400)
    job.counts_all()

    assert job.kill() == f"stopped {job.application_id} in order"
    job.values = plain
    job.run()
    reads(job)
    job.produce(100, first=500)
    job.counts_all()
    job.end()
