"""Inputs and an adjunct store of a job with state on a real YARN come and go, beside deaths."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable

from am_attempts import job_of_attempt, kill_am
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from yarn_jobs import KEYS, PARTITIONS, TASK, Job, wait_for

from homeport.config.loading.loader import load
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE

NAMED = (
    TASK
    + """
class Named(Count):
    def init(self, context):
        super().init(context)
        self.names = None
        if "stores.names.factory" in context.config:
            self.names = context.store("names")

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            if self.names is not None and self.names.get(key.decode()) is None:
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


def send(job: Job, name: str, count: int, *, is_counted: bool = True) -> Counter[str]:
    """So many more records are in the topic; the job counts them all, or none of them."""
    producer = Producer({"bootstrap.servers": job.servers})
    sent = Counter(f"key {number % KEYS}" for number in range(count))
    for key in sent.elements():
        producer.produce(name, key=key, value=key)
    assert producer.flush(30) == 0
    job.produced += sent if is_counted else Counter()
    return sent


def send_beyond(job: Job, name: str, count: int) -> None:
    """So many more records of a key are where only a new task reads them."""
    producer = Producer({"bootstrap.servers": job.servers})
    for _ in range(count):
        producer.produce(name, key="new", value="new", partition=PARTITIONS)
    assert producer.flush(30) == 0
    job.produced["new"] += count


def list_of(job: Job, *topics: str) -> str:
    """``task.inputs`` with these topics beside the job's first."""
    return ",".join(f"kafka.{name}" for name in (f"{job.name}-in", *topics))


def set_inputs(job: Job, *topics: str) -> subprocess.CompletedProcess[str]:
    """``homeport config set task.inputs`` with these topics beside the job's first."""
    return job.operator("config", "set", "task.inputs", list_of(job, *topics))


def change(job: Job, *words: str) -> str:
    """``homeport config set`` with these words takes it; what it printed."""
    done = job.operator("config", "set", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    job.values |= {
        "job.container.count": "2",
        "task.commit.ms": "500",
        "task.class": "probe_task:Named",
    }
    job.begin(300)
    job.counts_all()

    more = topic(job, "more")
    what_moves_state_is_refused(job)
    sent = send(job, more, 100)
    assert _READS in change(job, "task.inputs", list_of(job, more))
    job.kill_driver()
    reads(job, more)
    kill_one(job)
    sent += send(job, more, 200)
    job.produce(100, first=300)
    job.counts_all()

    names = topic(job, "names", 1)
    send(job, names, KEYS, is_counted=False)
    store = {
        "stores.names.factory": "rocksdb",
        "stores.names.key.serde": "string",
        "stores.names.msg.serde": "string",
        "stores.names.adstore.input": f"kafka.{names}",
        f"systems.kafka.streams.{names}.samza.bootstrap": "true",
    }
    also = [f"--also={key}={value}" for key, value in store.items()]
    change(job, "task.broadcast.inputs", f"kafka.{names}#0", *also)
    reads(job, more, names)
    kill_one(job)
    sent += send(job, more, 100)
    job.counts_all()

    change(job, "task.inputs", "--delete")
    reads(job, names)
    kill_one(job)
    sent += send(job, more, 50, is_counted=False)
    job.produce(100, first=400)
    job.counts_all()
    change(job, "task.broadcast.inputs", "--delete", *(f"--also={key}" for key in store))
    reads(job)

    assert job.kill() == f"stopped {job.application_id} in order"
    job.values["task.inputs"] = list_of(job, more)
    job.run()
    reads(job, more)
    job.produced += sent  # its positions are forgotten, and its default is oldest
    job.produce(100, first=500)
    job.counts_all()
    job.end()


def test_new_topics_that_match_become_inputs_while_the_job_runs(
    make_job: Callable[[str], Job],
) -> None:
    """Each record counts once, beside a SIGKILL; one that brings a task waits until it may.

    The task goes with its input, and goes on from its state when that returns.
    """
    job = make_job("matching")
    job.values |= {
        "job.container.count": "2",
        "task.commit.ms": "500",
        "job.coordinator.monitor-input-regex.frequency.ms": "500",
        "job.config.rewriters": "more",
        "job.config.rewriter.more.class": "org.apache.samza.config.RegExTopicGenerator",
        "job.config.rewriter.more.system": "kafka",
        "job.config.rewriter.more.regex": f"{job.name}-re-.*",
        "job.config.rewriter.more.config.samza.offset.default": "oldest",
    }
    job.begin(100)
    job.counts_all()
    odd = topic(job, "re-odd", PARTITIONS + 1)
    more = topic(job, "re-more")
    send(job, more, 100)
    job.kill_driver()
    reads(job, more)
    kill_one(job)
    send(job, more, 100)
    job.counts_all()
    assert job.written("task.inputs") == list_of(job, more)

    (line,) = job.get("v1/status")["configuration"]["topics_refused"]
    assert line.startswith(f"kafka.{odd} matches job.config.rewriter.more.regex, and becomes no ")
    assert f"  {line}" in job.operator("status").stdout
    send_beyond(job, odd, 50)
    change(job, "job.changelogs.grow", "true")
    job.kill_driver()
    reads(job, more, odd)
    assert job.get("v1/status")["configuration"]["topics_refused"] == []
    kill_one(job)
    send_beyond(job, odd, 50)
    job.counts_all()
    admin = AdminClient({"bootstrap.servers": job.servers})
    changelog = admin.list_topics(timeout=30).topics[f"{job.name}-counts"]
    assert len(changelog.partitions) == PARTITIONS + 1

    change(job, "task.inputs", list_of(job, more))  # the task goes, and waits with its state
    reads(job, more)
    send_beyond(job, odd, 50)
    kill_one(job)
    change(job, "task.inputs", list_of(job, more, odd))
    reads(job, more, odd)
    kill_one(job)
    job.counts_all()
    job.end()


def test_the_next_attempt_goes_on_with_the_inputs_in_force(make_job: Callable[[str], Job]) -> None:
    """A tool has written nonsense since an input came, and the AM dies: no position is dropped."""
    job = make_job("kept")
    job.values |= {"job.container.count": "2", "task.commit.ms": "500"}
    job.begin(100)
    more = topic(job, "more")
    send(job, more, 100)
    change(job, "task.inputs", list_of(job, more))
    reads(job, more)
    job.counts_all()

    with CoordinatorStreamStore.of(load(str(job.path)), source=WRITER_SOURCE) as stream:
        stream.write([wire.set_config("task.inputs", f"kafka.{job.name}-in,nonsense")])
    wait_for(lambda: "nonsense" in (fault(job) or ""), job)
    attempt = job.attempt
    kill_am(job)
    job_of_attempt(job, attempt + 1)
    wait_for(lambda: "nonsense" in (fault(job) or ""), job)
    reads(job, more)
    send(job, more, 100)
    job.produce(100, first=100)
    job.counts_all()
    job.end()


def fault(job: Job) -> str | None:
    """Why the coordinator stream's keys are not in force, as the status has it."""
    found: str | None = job.get("v1/status")["configuration"]["fault"]
    return found
