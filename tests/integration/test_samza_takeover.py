"""A job that Samza's classes made, or ran, goes on here with its state, where it stood."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from samza_peer import SamzaJvm, SamzaPeer
from samza_streams import READ_COMMITTED
from suites import long
from topic_records import committed, last_offsets
from yarn_jobs import PARTITIONS, Job, wait_for

from homeport.appmaster.report.allocator_metrics import MANAGER
from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig
from homeport.container.progress.checkpoint import CheckpointValue, decode_key, decode_value
from homeport.job_coordinator.model.job_model import SystemStreamPartition

SOURCE = Path(__file__).resolve().parents[1] / "support" / "samza" / "SamzaJob.java"
_LIMIT_S = 120.0
_SERDES = "org.apache.samza.serializers."


class Ending(StrEnum):
    """How a Samza job ends: by signals, or by ApplicationRunner.kill()."""

    SIGKILL = "kill"
    SIGTERM = "term"
    ORDERLY = "orderly"


class SamzaJob(SamzaJvm):
    """The job ``job`` before it goes on here: the same name, input, store, serdes and changelog.

    Its RocksDB directories are below ``folder``. It commits only when it is requested to.
    """

    def __init__(self, job: Job, folder: Path, more: Mapping[str, str] | None = None) -> None:
        folder.mkdir()
        self._job = job
        self.state = folder / "state"
        self._path = folder / "samza.properties"
        keys = self._keys() | dict(more or {})
        self._path.write_text("".join(f"{k}={v}\n" for k, v in keys.items()))
        super().__init__(SOURCE, folder, print, [str(self._path)])

    def _keys(self) -> dict[str, str]:
        own = self._job.values
        servers = self._job.servers
        taken = ("job.name", "job.default.system", "job.coordinator.system", "task.inputs")
        return {
            **{key: own[key] for key in taken},
            **{key: value for key, value in own.items() if key.startswith("stores.")},
            **READ_COMMITTED,
            "app.name": self._job.name,
            "processor.id": "0",
            "job.coordinator.factory": (
                "org.apache.samza.standalone.PassthroughJobCoordinatorFactory"
            ),
            "task.name.grouper.factory": (
                "org.apache.samza.container.grouper.task.SingleContainerGrouperFactory"
            ),
            "task.checkpoint.factory": (
                "org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory"
            ),
            "task.checkpoint.replication.factor": "1",
            "task.commit.ms": "30000",
            "job.logged.store.base.dir": str(self.state),
            "job.non-logged.store.base.dir": str(self.state.with_name("scratch")),
            "stores.counts.factory": (
                "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory"
            ),
            # Samza 1.8 flushes its cache after its producer, and then takes the changelog's newest
            # offset: a record that Kafka has not taken by then is lost to the checkpoint, for Samza
            # too. Without a cache the records are sent before the flush.
            "stores.counts.object.cache.size": "0",
            "stores.counts.changelog.replication.factor": "1",
            "serializers.registry.string.class": f"{_SERDES}StringSerdeFactory",
            "serializers.registry.json.class": f"{_SERDES}JsonSerdeFactory",
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.samza.offset.default": "oldest",
            "systems.kafka.samza.key.serde": "string",
            "systems.kafka.samza.msg.serde": "string",
            "systems.kafka.consumer.bootstrap.servers": servers,
            "systems.kafka.producer.bootstrap.servers": servers,
            "systems.kafka.default.stream.replication.factor": "1",
        }

    def until(self, line: str) -> None:
        """Returns when the job has written this line.

        Raises:
            AssertionError: it has not within two minutes, or has ended.
        """
        assert self._jvm.stdout is not None
        timer = threading.Timer(_LIMIT_S, self._jvm.kill)
        timer.start()
        try:
            last = "nothing"
            for printed in self._jvm.stdout:
                last = printed.strip()
                if last == line:
                    return
        finally:
            timer.cancel()
        raise AssertionError(f"Samza has said {last!r}, and not {line!r}: see {self.log}")

    def commit(self, processed: int) -> None:
        """Every task gets one more message, and commits; that is message ``processed`` of all."""
        producer = Producer({"bootstrap.servers": self._job.servers})
        for partition in range(PARTITIONS):
            key = f"last of {partition}"
            producer.produce(f"{self._job.name}-in", "commit", key, partition)
            self._job.produced[key] += 1
        assert producer.flush(30) == 0
        self.until(f"processed {processed}")

    def end(self, ending: Ending) -> None:
        """The job has ended so."""
        assert self._jvm.stdin is not None
        if ending is Ending.ORDERLY:
            self._jvm.stdin.write("\n")
            self._jvm.stdin.flush()
            self.until("ended")
        elif ending is Ending.SIGTERM:
            self._jvm.send_signal(signal.SIGTERM)
        else:
            self._jvm.kill()
        self._jvm.wait(_LIMIT_S)


def checkpoints_v1(job: Job) -> dict[str, CheckpointValue]:
    """{task: its last checkpoint of version 1}."""
    found = {}
    for record in committed(job.servers, f"__samza_checkpoint_ver_1_for_{job.name}_1", 1):
        key, value = decode_key(record.key() or b""), record.value()
        if key.kind == "checkpoint" and value is not None:
            found[str(key.task_name)] = decode_value(value)
    return found


DONE = 300
SERDES = "org.apache.samza.serializers."
CHANGELOG = {partition: PARTITIONS - 1 - partition for partition in range(PARTITIONS)}
"""{input partition of a task: partition of its changelog}, as no rule would give them."""


@dataclass
class Task:
    """What a task of Samza's has counted, and the last message that it has read."""

    counts: Counter[str] = field(default_factory=Counter)
    last: int = -1


def counted(job: Job) -> dict[int, Task]:
    """{input partition: its task}, after all that is in the input now."""
    tasks: dict[int, Task] = defaultdict(Task)
    for message in committed(job.servers, f"{job.name}-in", PARTITIONS):
        task = tasks[message.partition() or 0]
        task.counts[(message.key() or b"").decode()] += 1
        task.last = max(task.last, message.offset() or 0)
    return dict(tasks)


def write_changelog(job: Job, samza: SamzaPeer, tasks: dict[int, Task]) -> None:
    """Each task's counts, by Samza's serdes, in the partition of its changelog."""
    topic = f"{job.name}-counts"
    make_compacted(job, topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": job.servers})
    for partition, task in tasks.items():
        for key, count in task.counts.items():
            given = [bytes_of(samza, "String", key), bytes_of(samza, "Json", count)]
            producer.produce(topic, given[1], given[0], CHANGELOG[partition])
    assert producer.flush(30) == 0


def make_compacted(job: Job, topic: str, partitions: int) -> None:
    """The topic is there, as Samza makes its own."""
    admin = AdminClient({"bootstrap.servers": job.servers})
    wanted = NewTopic(topic, partitions, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([wanted])[topic].result(30)


def bytes_of(samza: SamzaPeer, serde: str, value: object) -> bytes:
    """What Samza's serde of that name makes of it."""
    found = samza.ask(
        "serde", [f"{SERDES}{serde}SerdeFactory", value, json.dumps(value).encode().hex()]
    )
    return bytes.fromhex(found["bytes"])


def write_metadata(job: Job, samza: SamzaPeer, tasks: dict[int, Task]) -> None:
    """Coordinator stream and checkpoints, as a Samza job with two containers left them."""
    servers = {"systems.kafka.producer.bootstrap.servers": job.servers}
    make_compacted(job, JobConfig.of(Config(job.values)).coordinator_topic, 1)
    samza.open({**job.values, **servers, **READ_COMMITTED})
    names = {partition: f"Partition {partition}" for partition in range(PARTITIONS)}
    ssps = {
        partition: json.dumps(
            {"system": "kafka", "stream": f"{job.name}-in", "partition": partition},
            separators=(",", ":"),
        )
        for partition in range(PARTITIONS)
    }
    samza.ask("deploy", {**job.values, **servers, "app.run.id": "run-1"})
    samza.ask(
        "manage",
        {
            "assignment": {
                str(n): {names[p]: "Active" for p in range(PARTITIONS) if p % 2 == n}
                for n in range(2)
            },
            "partitions": {ssps[p]: [names[p]] for p in range(PARTITIONS)},
            "changelog": {names[p]: CHANGELOG[p] for p in range(PARTITIONS)},
            "locality": {"0": "nm2", "1": "nm1"},
        },
    )
    samza.ask("checkpoint", {names[p]: {ssps[p]: str(t.last)} for p, t in tasks.items()})
    samza.ask("startpoint", [ssps[0], names[0], "0"])
    samza.ask("drain")


def snapshots(job: Job, samza: SamzaPeer) -> dict[str, dict[str, Any]]:
    """{container: its last snapshot of metrics}, as Samza's serde reads it."""
    records = committed(job.servers, f"{job.name}-metrics", 1)
    found = [samza.ask("snapshot", (record.value() or b"").hex()) for record in records[-6:]]
    return {snapshot["header"]["container-name"]: snapshot for snapshot in found}


def running(found: dict[str, dict[str, Any]]) -> int:
    """How many containers run, by the AM's last snapshot, once each has one of its own."""
    if len(found) < 3:  # the AM's, and one of each container
        return 0
    return int(found["ApplicationMaster"]["metrics"][MANAGER]["running-containers"])


def test_a_job_that_samza_made_goes_on_with_its_state(
    make_job: Callable[[str], Job], samza: SamzaPeer
) -> None:
    """Assignment, localities, changelogs by their mapping, and positions are taken over.

    Samza's serde reads the snapshots of its metrics. What it has left, and nothing reads, is named:
    a startpoint, a drain, directories on its hosts; once.

    Each record is counted once: those before the take-over by Samza, the others here. Without the
    checkpoints all would be counted twice, without the mapping in the stores of other tasks.
    """
    job = make_job("from-samza")
    job.values["job.container.count"] = "2"
    job.values["task.checkpoint.factory"] = (
        "org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory"
    )
    reporter = "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory"
    job.values |= {
        "metrics.reporters": "snapshot",
        "metrics.reporter.snapshot.class": reporter,
        "metrics.reporter.snapshot.stream": f"kafka.{job.name}-metrics",
        "metrics.reporter.snapshot.interval": "1",
    }
    make_compacted(job, f"{job.name}-metrics", 1)
    job.produce(DONE)
    tasks = counted(job)
    write_changelog(job, samza, tasks)
    write_metadata(job, samza, tasks)
    job.produce(200, first=DONE)
    done = job.call("run")
    assert done.returncode == 0, done.stderr
    lines = ("startpoints of Samza are not read: kafka", "in the coordinator stream: 1 samza-drain")
    for line in (*lines, "directories of the Samza job's stores on nm1, nm2 are not used"):
        assert done.stderr.count(line) == 1, done.stderr
    job.learn(done.stdout)
    containers = job.wait_until_running()
    assert {p: c["host"] for p, c in containers.items()} == {"0": "nm2", "1": "nm1"}
    job.expects(DONE + 200)
    model = job.get("")
    mapping = {
        name: task["changelog-partition"]
        for container in model["containers"].values()
        for name, task in container["tasks"].items()
    }
    assert mapping == {f"Partition {p}": at for p, at in CHANGELOG.items()}
    counts = {m.partition() for m in committed(job.servers, f"{job.name}-counts", PARTITIONS)}
    assert counts == {CHANGELOG[p] for p in tasks}
    wait_for(lambda: running(snapshots(job, samza)) == 2, job)
    found = snapshots(job, samza)
    for name in ("0", "1"):
        header = found[f"samza-container-{name}"]["header"]
        assert (header["job-name"], header["host"]) == (job.name, containers[name]["host"])
    job.end()


EARLY, LATE, HERE, BACK = 4_000, 6_000, 200, 300
"""Records before the last commit of the Samza job, after it, then here, and in Samza again."""
MANY_KEYS = 3_000
CHECKPOINTS = "org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory"


def surplus(job: Job) -> int:
    """How many records the changelog has behind the offsets of the last checkpoints."""
    heads = last_offsets(job.servers, f"{job.name}-counts", PARTITIONS)
    found = 0
    for task, value in checkpoints_v1(job).items():
        partition = int(task.split()[1])
        log = SystemStreamPartition("kafka", f"{job.name}-counts", partition)
        found += heads[partition] - value.changelogs[log]
    return found


def samza_counts(job: Job, folder: Path, ending: Ending) -> Path:
    """A Samza job has counted ``EARLY`` and ``LATE`` records and ended; where its state is."""
    job.produce(EARLY, keys=MANY_KEYS)
    with SamzaJob(job, folder) as samza:
        samza.until(f"processed {EARLY}")
        samza.commit(EARLY + PARTITIONS)
        job.produce(LATE, first=EARLY, keys=MANY_KEYS)
        samza.until(f"processed {EARLY + PARTITIONS + LATE}")
        samza.end(ending)
    return samza.state


@pytest.mark.parametrize("ending", [Ending.SIGKILL, Ending.ORDERLY, long(Ending.SIGTERM)])
def test_a_job_that_samza_ran_goes_on_here_however_it_ended(
    make_job: Callable[[str], Job], tmp_path: Path, ending: Ending
) -> None:
    """Each record is counted once, though Samza has written counts that it never committed.

    Its directories lie where our containers look, and are not used. Then Samza's job goes on behind
    ours, and ours behind that.
    """
    job = make_job(f"samza-ends-{ending}")
    job.values |= {"job.container.count": "2", "task.checkpoint.factory": CHECKPOINTS}
    state = samza_counts(job, tmp_path / "samza", ending)
    assert surplus(job) > 0
    for node in job.cluster.nodes:
        shutil.copytree(state, job.cluster.state_dir(node) / f"{job.name}-1")
    job.produce(HERE, first=EARLY + LATE, keys=MANY_KEYS)
    done = job.call("run")
    assert done.returncode == 0, done.stderr
    assert "of a Samza job those up to its last checkpoint" in done.stderr
    job.learn(done.stdout)
    job.wait_until_running()
    job.counts_all()
    trims = job.history("changelog-trimmed")
    assert len(trims) == PARTITIONS
    assert sum(trim["keys"] for trim in trims) > 0
    reasons = {line["reason"] for line in job.history("restore-started")}
    assert reasons == {"the store names no changelog position"}
    logs = "".join(job.operator("logs", p).stdout for p in job.containers())
    assert "directories of Samza's store checkpoints" in logs
    assert "startpoints" not in done.stderr
    job.end()
    if ending is Ending.SIGKILL:
        goes_on_in_samza_and_here(job, tmp_path)


def goes_on_in_samza_and_here(job: Job, folder: Path) -> None:
    """What we have counted stays, in Samza's hands, and what Samza has counted in ours."""
    job.produce(BACK, first=EARLY + LATE + HERE, keys=MANY_KEYS)
    deleted = {"task.checkpoint.read.versions": "2"}
    with SamzaJob(job, folder / "version-2", deleted) as samza:
        fault = "Exception while deserializing checkpoint-message"
        wait_for(lambda: fault in samza.log.read_text(encoding="utf-8"), job)
    with SamzaJob(job, folder / "again") as samza:
        samza.until(f"processed {BACK}")
        samza.commit(BACK + PARTITIONS)
        job.produce(BACK, first=EARLY + LATE + HERE + BACK, keys=MANY_KEYS)
        samza.until(f"processed {2 * BACK + PARTITIONS}")
        samza.end(Ending.ORDERLY)
    assert job.counts() == job.produced
    assert surplus(job) > 0
    job.produce(HERE, first=0, keys=MANY_KEYS)
    job.run()
    job.wait_until_running()
    job.counts_all()
    job.kill()
