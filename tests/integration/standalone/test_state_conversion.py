"""The values of stores get schemas that do not read them, off YARN and on a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from forked_tool import MODULE
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from json_answers import require_promised
from standalone_jobs import DEADLINE_S, PARTITIONS, StandaloneJob, on_zookeeper, standalone_job
from topic_records import committed
from waiting import until
from zookeeper_server import ZooKeeperServer

_OF_EACH = 700
_CODE = """
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from homeport.container.api import BatchTask

HERE, CALLS = Path(__file__).parent, []

@dataclass
class Seen:
    n: NUMBER

def count_of(value):
    CALLS.append(value)
    if (HERE / "stand-at").exists() and len(CALLS) == int((HERE / "stand-at").read_text()):
        (HERE / "stands").touch()
        sleep(600)  # until the test kills the command
    return {"n": str(value["n"]), "twice": 2 * value["n"]}

def seen_of(value):
    return Seen(str(value["n"]))

class Counter(BatchTask):
    def init(self, context):
        self.counts, self.seen = context.store("counts"), context.store("seen")
        self.changed = set()

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            word = key.decode()
            found, seen = self.counts.get(word), self.seen.get(word)
            n = 1 + (0 if found is None else int(found["n"]))
            assert n == 1 + (0 if seen is None else int(seen.n)), (word, n, seen)
            assert found is None or found.get("twice", 2 * (n - 1)) == 2 * (n - 1), found
            self.counts.put(word, {"n": NUMBER(n), "twice": 2 * n})
            self.seen.put(word, Seen(NUMBER(n)))
            self.changed.add((word, n))

    def end_transaction(self, collector):
        for word, n in sorted(self.changed):
            collector.send("out", str(n).encode(), word.encode())
        self.changed.clear()
"""
_FIELDS = {"int": [("n", "int")], "str": [("n", "string"), ("twice", "long")]}


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """One store has Avro, and one objects of a class; each task has a standby."""
    more = {
        **on_zookeeper(zookeeper.connect),
        "job.standbytasks.replication.factor": "2",
        "task.commit.ms": "500",
        "stores.counts.msg.serde": "count",
        "serializers.registry.count.class": "avro",
        "serializers.registry.count.schema.file": "count.avsc",
        "stores.seen.factory": "rocksdb",
        "stores.seen.key.serde": "string",
        "stores.seen.msg.serde": "seen",
        "serializers.registry.seen.class": "user_job:Seen",
    }
    with standalone_job(kafka, tmp_path, more) as made:
        with made.config.open("a", encoding="utf-8") as file:
            file.write(f"stores.seen.changelog=kafka.{made.name}-seen\n")
        yield made


def deploy(job: StandaloneJob, number: str, wide: str = "int") -> None:
    """The code counts in this type; ``wide``: of whole numbers in Avro."""
    package = job.folder / "package"
    fields = [
        {"name": name, "type": wide if kind == "int" else kind} for name, kind in _FIELDS[number]
    ]
    schema = {"type": "record", "name": "Count", "fields": fields}
    code = _CODE.replace("NUMBER", number).replace('"out"', f'"{job.name}-out"')
    if number == "int":
        code = code.replace(', "twice": 2 * n}', "}")
    (package / "user_job.py").write_text(code, encoding="utf-8")
    (package / "count.avsc").write_text(json.dumps(schema), encoding="utf-8")


def send(job: StandaloneJob) -> None:
    """One record more of each key."""
    producer = Producer({"bootstrap.servers": job.servers, "enable.idempotence": True})
    for number in range(_OF_EACH):
        for partition in range(PARTITIONS):
            key = f"{partition}-{number}"
            job.sent[key] += 1
            producer.produce(f"{job.name}-in", b"x", key.encode(), partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def own_code(job: StandaloneJob) -> dict[str, str]:
    """What lets a command find the job's code."""
    return {"PYTHONPATH": os.pathsep.join([str(job.folder / "package"), *filter(None, sys.path)])}


def convert(job: StandaloneJob, store: str, *more: str) -> subprocess.CompletedProcess[str]:
    """``homeport state convert`` of a store."""
    function = {"counts": "count_of", "seen": "seen_of"}[store]
    words = ["state", "convert", store, f"--with=user_job:{function}", "--json", *more]
    return job.tool(*words, environment=own_code(job))


def counts_of(done: subprocess.CompletedProcess[str]) -> tuple[int, int, bool]:
    """Return its counts: values converted, converted earlier, and whether it was done."""
    assert done.returncode == 0, done.stderr
    require_promised(("state", "convert"), done.stdout)
    found = json.loads(done.stdout)
    return found["converted"], found["earlier"], found["is_done"]


def is_refused(job: StandaloneJob, name: str, line: str) -> None:
    """A processor reports it, and counts nothing."""
    process = job.processor(name, name)
    job.until(lambda: line in job.logs())
    process.send_signal(signal.SIGTERM)
    process.wait(DEADLINE_S)


def killed_in_its_middle(job: StandaloneJob) -> None:
    """SIGKILL while the function has the first value of the second partition for the second time.

    All values were tried before, and those of the first partition are in Kafka by then.
    """
    stand = job.folder / "package" / "stand-at"
    stand.write_text(str((PARTITIONS + 1) * _OF_EACH + 1), encoding="utf-8")
    words = ["state", "convert", "counts", "--with=user_job:count_of"]
    with subprocess.Popen(
        [sys.executable, "-m", MODULE, *words, f"--config-path={job.config}"],
        env={**os.environ, **own_code(job)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(
            lambda: stand.with_name("stands").exists() or process.poll() is not None,
            limit_s=DEADLINE_S,
        )
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, process.communicate()
    stand.unlink()


@pytest.mark.long
def test_a_store_is_converted_although_the_command_is_killed(job: StandaloneJob) -> None:
    """Refused, converted, killed, finished: each value once; a restore and a standby have it."""
    deploy(job, "int")
    send(job)
    send(job)
    running = [job.processor(name, name) for name in ("one", "two")]
    job.until_counted()
    job.until(lambda: all(job.started_by(name) for name in ("one", "two")))
    refused = convert(job, "counts")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the job runs: these processors are registered in ZooKeeper" in refused.stderr
    job.stop(*running)

    deploy(job, "str")
    is_refused(job, "one", "rewrite the values by homeport state convert")
    everything = PARTITIONS * _OF_EACH
    before = committed(job.servers, f"{job.name}-changelog", PARTITIONS)
    assert counts_of(convert(job, "counts", "--dry-run")) == (everything, 0, False)
    assert len(committed(job.servers, f"{job.name}-changelog", PARTITIONS)) == len(before)

    killed_in_its_middle(job)
    is_refused(job, "two", "finish it by homeport state convert")
    assert counts_of(convert(job, "counts")) == (everything - _OF_EACH, _OF_EACH, True)
    assert counts_of(convert(job, "seen")) == (everything, 0, True)
    for store in ("counts", "seen"):
        assert counts_of(convert(job, store)) == (0, 0, True)
    after = committed(job.servers, f"{job.name}-changelog", PARTITIONS)
    assert len(after) == len(before) + everything

    running = [job.processor(name, name) for name in ("one", "two")]
    send(job)
    job.until_counted()
    job.until(lambda: all(job.started_by(name) > 1 for name in ("one", "two")))
    foreign = "store counts/Partition 0 is read in full: keys and values of the store are string"
    assert foreign in job.logs()
    running[0].send_signal(signal.SIGKILL)
    send(job)
    job.until_counted()
    job.stop(running[1])


def test_a_wider_type_is_admitted_without_yarn(job: StandaloneJob) -> None:
    """No value is rewritten; the former code is refused from the first new value on."""
    deploy(job, "int")
    send(job)
    one = job.processor("one", "one")
    job.until_counted()
    job.stop(one)
    deploy(job, "int", "long")
    is_refused(job, "one", "off YARN by homeport state convert")
    before = len(committed(job.servers, f"{job.name}-changelog", PARTITIONS))
    done = job.tool("state", "convert", "counts", environment=own_code(job))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("are admitted, the others stay\n")
    assert len(committed(job.servers, f"{job.name}-changelog", PARTITIONS)) == before
    one = job.processor("one", "one")
    send(job)
    job.until_counted()
    job.stop(one)
    deploy(job, "int")
    is_refused(job, "two", "field n: long is no int; set the schema back, rewrite the values")


_MESSAGES = """
from homeport.container.api import BatchTask

def count_of(value):
    return {"n": str(value["n"])} if value["n"] != GONE else None

class Counter(BatchTask):
    def init(self, context):
        self.counts, self.changed = context.store("counts"), {}

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            word = key.decode()
            found = self.counts.get(word)
            self.changed[word] = 1 + (0 if found is None else int(found["n"]))
            self.counts.put(word, {"n": NUMBER(self.changed[word])})

    def end_transaction(self, collector):
        for word, n in self.changed.items():
            collector.send("out", str(n).encode(), word.encode())
        self.changed.clear()
"""


@pytest.fixture
def local_job(kafka: str, tmp_path: Path) -> Iterator[StandaloneJob]:
    """One store has messages of Protobuf, and needs no ZooKeeper."""
    registry = {"class": "protobuf", "message": "my.Count"}
    more = {
        f"serializers.registry.{n}.{k}": v for n in ("count", "old") for k, v in registry.items()
    }
    files = {f"serializers.registry.{n}.schema.file": f"{n}.desc" for n in ("count", "old")}
    with standalone_job(
        kafka, tmp_path, {**more, **files, "stores.counts.msg.serde": "count"}
    ) as made:
        yield made


def deploy_messages(job: StandaloneJob, number: str, gone: int = 0) -> None:
    """Count in this type; ``gone``: the count that the function deletes."""
    kinds = {"int": FieldDescriptorProto.TYPE_INT32, "str": FieldDescriptorProto.TYPE_STRING}
    made = FileDescriptorSet()
    message = made.file.add(name="count.proto", package="my").message_type.add(name="Count")
    label = FieldDescriptorProto.LABEL_OPTIONAL
    message.field.add(name="n", number=1, type=kinds[number], label=label)
    package = job.folder / "package"
    (package / "count.desc").write_bytes(made.SerializeToString())
    code = _MESSAGES.replace("NUMBER", number).replace("GONE", str(gone))
    code = code.replace('"out"', f'"{job.name}-out"')
    (package / "user_job.py").write_text(code, encoding="utf-8")


def test_messages_of_protobuf_are_converted_by_their_former_entry(local_job: StandaloneJob) -> None:
    """The stream alone does not read them. A None is refused, but where that is meant."""
    deploy_messages(local_job, "int")
    local_job.produce(5)
    local_job.produce(1)
    local_job.stop(counting(local_job))
    package = local_job.folder / "package"
    (package / "count.desc").rename(package / "old.desc")
    deploy_messages(local_job, "str", gone=2)
    assert "--from is missing: the values are protobuf" in convert(local_job, "counts").stderr

    refused = convert(local_job, "counts", "--from=old")
    assert refused.returncode == 1
    assert "user_job:count_of returned None: return the new value, or give" in refused.stderr
    deleted = convert(local_job, "counts", "--from=old", "--none-deletes")
    assert counts_of(deleted) == (3 * PARTITIONS, 0, True)
    gone = [key for key, sent in local_job.sent.items() if sent == 2]
    assert json.loads(deleted.stdout)["deleted"] == len(gone) > 0

    local_job.sent.update(dict.fromkeys(gone, -2))  # they begin at 1
    local_job.produce(2)
    local_job.stop(counting(local_job))


def counting(job: StandaloneJob) -> subprocess.Popen[bytes]:
    """Return the processor of run-local, which has counted all that was sent."""
    process = job.run("run-local", "local")
    job.until_counted()
    return process
