"""What an operator does with a standalone job that does not run, on a real ZooKeeper and broker."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from standalone_jobs import DEADLINE_S, PARTITIONS, StandaloneJob, on_zookeeper, standalone_job
from zookeeper_server import ZooKeeperServer

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.zookeeper.handover_nodes import handover_nodes

MakeJob = Callable[..., StandaloneJob]


@pytest.fixture
def make_job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[MakeJob]:
    """Makes the job of a test, whose sessions last 3 s; with further keys."""
    made = []

    def make(**more: str) -> StandaloneJob:
        own = {
            **on_zookeeper(zookeeper.connect),
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        made.append(standalone_job(kafka, tmp_path, own))
        return made[-1].__enter__()

    yield make
    for each in made:
        each.__exit__(None, None, None)


def answer(done: subprocess.CompletedProcess[str]) -> str:
    """What a command prints that is done."""
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a command that is refused."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def config_of(job: StandaloneJob, zookeeper: ZooKeeperServer) -> Config:
    """What names the job's nodes."""
    named = {"job.name": job.name, "job.default.system": "kafka"}
    return Config({**named, "job.coordinator.zk.connect": zookeeper.connect})


def ran(job: StandaloneJob, name: str, how: signal.Signals = signal.SIGTERM) -> Incarnation:
    """A processor has counted what was sent, and has ended; its last incarnation."""
    job.produce(5)
    before = job.started_by(name)
    process = job.processor(name)
    job.until(lambda: job.started_by(name) > before)
    job.until_counted()
    process.send_signal(how)
    process.wait(DEADLINE_S)
    started = job.history("started")[-1]
    assert started["processor_id"] == name
    return Incarnation(ProcessorId(name), int(str(started["epoch"])))


def test_a_checkpoint_is_set_past_an_incarnation_that_may_still_write(make_job: MakeJob) -> None:
    """Its processor is in no session any more; it stands in mid-transaction, and wakes up late."""
    job = make_job(stores_counts_changelog="")
    job.produce(20)
    last = ran(job, "one", signal.SIGKILL)
    # The transaction of the one that was killed is held by this process now.
    late = Producer(
        {
            "bootstrap.servers": job.servers,
            "transactional.id": transactional_id(job.name, "1", last),
        }
    )
    late.init_transactions(DEADLINE_S)
    late.begin_transaction()
    late.produce(f"{job.name}-out", b"late", b"late", partition=0)
    place = ("checkpoint", "set", "--task=Partition 0", f"--ssp=kafka.{job.name}-in.0")
    done = job.tool(*place, "--offset=3")
    while "are registered in ZooKeeper: one; stop them" in done.stderr:  # until its session is over
        done = job.tool(*place, "--offset=3")
    assert ": next 3, before next 25" in answer(done)
    with pytest.raises(KafkaException, match="fenced"):
        late.commit_transaction(DEADLINE_S)
    lines = answer(job.tool("checkpoint", "show", "--json")).splitlines()
    shown = [json.loads(line) for line in lines]
    assert [row["offset"] for row in shown if row["task"] == "Partition 0"] == [2]
    one = job.processor("one")
    job.until(lambda: bool(job.history("checkpoint-set")))
    assert "late" not in job.counted()
    assert one.poll() is None


def rows(job: StandaloneJob, *words: str) -> dict[str, dict[str, Any]]:
    """Return the answer of ``homeport clean`` for each ``<store>/<task>``."""
    done = answer(job.tool("clean", "--json", "--older-than=0s", *words))
    found = [json.loads(line) for line in done.splitlines()]
    return {"/".join(Path(row["path"]).parts[-2:]): row for row in found}


def test_clean_goes_by_the_localities_that_zookeeper_has(make_job: MakeJob) -> None:
    """Its own name is its location; what the job has elsewhere is left behind here."""
    job = make_job()
    ran(job, "one")
    (folder,) = (job.folder / "stores-here").glob("*/counts")
    shutil.copytree(folder / "Partition_0", folder / "Partition_9")
    here = rows(job, "--config=job.location-id=here")
    own = "the job's own: active on this host"
    assert here["counts/Partition_0"]["reason"] == own
    assert here["counts/Partition_9"]["reason"] == "the job has no such task"
    elsewhere = rows(job, "--host=There")
    assert elsewhere["counts/Partition_0"]["reason"] == "its task last ran on here"
    unknown = job.tool("clean", "--config=job.location-id=There")
    assert "no task of the job has its locality on a host of that name" in refusal(unknown)
    listed = answer(job.tool("state", "ls", "--json", "--config=job.location-id=here"))
    assert '"active"' in listed


def test_a_tree_that_is_an_older_copy_is_refused(
    make_job: MakeJob, zookeeper: ZooKeeperServer
) -> None:
    """By a processor, and by ``checkpoint set``; with the newest tree all goes on."""
    job = make_job()
    ran(job, "one")
    with handover_nodes(config_of(job, zookeeper), DEADLINE_S) as tree:
        older = tree.read().version
        ran(job, "two")
        newest = tree.read().version
        assert newest > older
        newer = f"{tree._root}/{nodes.JOB_MODELS}"
        tree._client.set(newer, nodes.encode_number(older))
        late = job.processor("three")
        assert late.wait(DEADLINE_S) == 1
        assert "under another tree of zookeeper, or a later copy, which is not at" in job.logs()
        place = ("checkpoint", "set", "--task=Partition 0", f"--ssp=kafka.{job.name}-in.0")
        line = "or an older one than has run; name the same job.coordinator.zk.connect"
        assert line in refusal(job.tool(*place, "--offset=3"))
        tree._client.set(newer, nodes.encode_number(newest))
    assert "has state" in refusal(job.tool(*place, "--offset=3"))
    ran(job, "two")


def with_inputs(job: StandaloneJob, *topics: str) -> None:
    """The job's file names these inputs beside its first."""
    first = f"kafka.{job.name}-in"
    lines = [x for x in job.config.read_text().splitlines() if not x.startswith("task.inputs")]
    value = ",".join((first, *(f"kafka.{job.name}-{name}" for name in topics)))
    job.config.write_text("\n".join((*lines, f"task.inputs={value}", "")))


def test_an_input_comes_with_the_next_start_and_goes(make_job: MakeJob) -> None:
    """State and positions stay, beside a SIGKILL; an input that moves state is one line."""
    job = make_job()
    counts = {"more": PARTITIONS, "odd": PARTITIONS + 1}
    admin = AdminClient({"bootstrap.servers": job.servers})
    topics = [NewTopic(f"{job.name}-{name}", count, 1) for name, count in counts.items()]
    for future in admin.create_topics(topics).values():
        future.result(DEADLINE_S)
    ran(job, "one")
    with_inputs(job, "odd")
    assert job.processor("one").wait(DEADLINE_S) == 1
    assert f"give it {PARTITIONS} partitions, as many as the job has tasks" in job.logs()
    with_inputs(job, "more")
    job.produce(2, topic="more")
    ran(job, "one", signal.SIGKILL)
    job.produce(2, topic="more")
    ran(job, "one")
    with_inputs(job)
    ran(job, "one")


@pytest.mark.long
def test_an_input_brings_tasks_where_changelogs_grow(make_job: MakeJob) -> None:
    """They count what the tasks before them do not read, and restore it after a SIGKILL.

    They go with the input, and go on from their state when it returns.
    """
    job = make_job(job_changelogs_grow="true")
    admin = AdminClient({"bootstrap.servers": job.servers})
    odd = NewTopic(f"{job.name}-odd", PARTITIONS + 1, 1)
    admin.create_topics([odd])[odd.topic].result(DEADLINE_S)
    ran(job, "one")
    producer = Producer({"bootstrap.servers": job.servers})
    for inputs, how in (
        (("odd",), signal.SIGKILL),
        (("odd",), signal.SIGTERM),
        ((), signal.SIGKILL),
        (("odd",), signal.SIGTERM),
    ):
        with_inputs(job, *inputs)
        if inputs:
            producer.produce(odd.topic, b"x", b"new", partition=PARTITIONS)
            assert producer.flush(DEADLINE_S) == 0
            job.sent["new"] += 1
        ran(job, "one", how)
    shutil.rmtree(job.folder / "stores-here")
    ran(job, "one")
    found = admin.list_topics(timeout=DEADLINE_S).topics[f"{job.name}-changelog"]
    assert len(found.partitions) == PARTITIONS + 1
