"""The stream container as a process, against a real broker and a job coordinator's server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from homeport.config.config import Config
from homeport.config.sections import JobConfig, SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.http.messages import CheckIn, Order, Started, Stopped
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.managers import EpochManager, LocalityManager, ProcessorEpoch
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.model.job_model import JobModel

P0 = ProcessorId("0")
TOKEN = "secret"
DEADLINE_S = 60.0
COUNTER = '''
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.counts = context.store("counts")
        self.changed = set()

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            word = "<null>" if key is None else key.decode()
            if word == "poison":
                raise ValueError("poison found")
            self.counts.put(word, (self.counts.get(word) or 0) + 1)
            self.changed.add(word)

    def end_transaction(self, collector):
        for word in sorted(self.changed):
            collector.send("out", str(self.counts.get(word)).encode(), word.encode())
        self.changed.clear()
'''


class Backend:
    """Serves one JobModel; keeps what containers report."""

    def __init__(self, model: JobModel) -> None:
        self.model = model
        self.reports: list[Started] = []

    def job_model(self, version: int | None) -> JobModel | None:
        """The one model there is, version 1."""
        return self.model if version in {None, 1} else None

    def locality(self) -> Mapping[ProcessorId, Host]:
        """None is known."""
        return {}

    def is_running(self, resource_id: ResourceId) -> bool:
        """Nothing was permitted by this backend."""
        return not resource_id

    async def check_in(self, message: CheckIn) -> Order:
        """No launcher is in these tests."""
        raise NotImplementedError

    async def started(self, message: Started) -> None:
        """A container has started."""
        self.reports.append(message)

    async def stopped(self, message: Stopped) -> None:
        """No launcher is in these tests."""
        raise NotImplementedError

    async def shutdown(self) -> None:
        """Nobody asks for it."""

    def status(self) -> Mapping[str, Any]:
        """Nobody asks for it."""
        return {}


class Served:
    """A server of one JobModel on an event loop of its own."""

    def __init__(self, model: JobModel) -> None:
        self.backend = Backend(model)
        self._ended = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._address: Future[tuple[str, int]] = Future()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._run()])
        self._thread.start()
        host, port = self._address.result(DEADLINE_S)
        self.url = f"http://{host}:{port}/"

    async def _run(self) -> None:
        server = JobCoordinatorServer(self.backend, TOKEN, "127.0.0.1", 0)
        self._address.set_result(await server.start())
        await self._ended.wait()
        await server.stop()

    def close(self) -> None:
        """The server is gone."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


@dataclass
class Running:
    """A stream container's process."""

    process: subprocess.Popen[bytes]
    log: Path

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signals its whole process group, waits; the exit code."""
        os.killpg(self.process.pid, number)
        return self.process.wait(DEADLINE_S)

    def last_line(self) -> str:
        """The end of its output, once it has ended."""
        self.process.wait(DEADLINE_S)
        return self.log.read_text(encoding="utf-8").splitlines()[-1]


@dataclass
class Job:
    """One job with topics of its own, and its containers."""

    servers: str
    folder: Path
    config: Config
    model: JobModel
    served: Served
    started: list[Running] = field(default_factory=list)

    def topic(self, name: str) -> str:
        """The job's own topic of that kind."""
        return f"{self.config['job.name']}-{name}"

    def permit(self, epoch: int, fence: Sequence[int] = ()) -> str:
        """Writes the permit's record, and returns the permit."""
        stream = self.coordinator_stream()
        incarnations = tuple(Incarnation(P0, e) for e in fence)
        EpochManager(stream).write_processor_epoch(P0, ProcessorEpoch(epoch, 1, incarnations))
        stream.close()
        listed = [{"processor_id": P0, "epoch": e} for e in fence]
        return json.dumps(
            {"processor_id": P0, "epoch": epoch, "model_version": 1, "fence": listed}
        )

    def start(self, epoch: int, fence: Sequence[int] = (), *, permit: str | None = None) -> Running:
        """A container under a new permit."""
        permit = permit or self.permit(epoch, fence)
        work = self.folder / f"work-{epoch}"
        work.mkdir(exist_ok=True)
        log = self.folder / f"container-{epoch}.log"
        environment = {
            **os.environ,
            "SAMZA_COORDINATOR_URL": self.served.url,
            "HOMEPORT_TOKEN_FILE": str(self.folder / "token"),
            "LOGGED_STORE_BASE_DIR": str(self.folder / "stores"),
            "NM_HOST": "NM1",
            "PYTHONPATH": str(self.folder / "package"),
        }
        program = "homeport.container.runtime.stream_container"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", program, "--permit", permit],
                cwd=work,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = Running(process, log)
        self.started.append(running)
        return running

    def until(self, what: Callable[[], bool], container: Running | None = None) -> None:
        """Returns when ``what`` holds; fails with the container's log when it ends before."""
        deadline = time.monotonic() + DEADLINE_S
        pause = threading.Event()
        while not what():
            ended = container is not None and container.process.poll() is not None
            if ended or time.monotonic() > deadline:
                text = container.log.read_text(encoding="utf-8") if container else "late"
                raise AssertionError(text)
            pause.wait(0.02)

    def report(self, container: Running, count: int) -> Started:
        """The ``count``-th report of a start."""
        self.until(lambda: len(self.served.backend.reports) >= count, container)
        return self.served.backend.reports[count - 1]

    def produce(self, records: Sequence[tuple[int, bytes | None, bytes | None]]) -> None:
        """(partition, key, value) of the input."""
        producer = Producer({"bootstrap.servers": self.servers})
        for partition, key, value in records:
            producer.produce(self.topic("in"), value, key, partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def read(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """All committed records of partition after partition."""
        properties = {
            "bootstrap.servers": self.servers,
            "group.id": "test",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "enable.auto.commit": False,
        }
        consumer = Consumer(properties)
        partitions = consumer.list_topics(topic).topics[topic].partitions
        found: list[tuple[bytes | None, bytes | None]] = []
        for partition in sorted(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(DEADLINE_S)) is not None:
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    break
                found.append((message.key(), message.value()))
        consumer.close()
        return found

    def table(self, topic: str) -> dict[str, bytes | None]:
        """The last value of each key of one of the job's topics."""
        return {(k or b"").decode(): v for k, v in self.read(self.topic(topic))}

    def processed(self) -> int:
        """Records of the input that checkpoints call processed."""
        newest = {}
        for key, value in self.read(TaskConfig.of(self.config).checkpoint_topic):
            newest[key] = sum(int(e["offset"]) + 1 for e in json.loads(value or b"{}").values())
        return sum(newest.values())

    def history(self, event: str) -> list[dict[str, Any]]:
        """The lines of one event, in the order of time."""
        files = (self.folder / "stores").glob("*/.history/*")
        lines = [json.loads(line) for f in files for line in f.read_text().splitlines()]
        found = [line for line in lines if line["event"] == event]
        return sorted(found, key=lambda line: line["ts_ms"])

    def coordinator_stream(self) -> CoordinatorStreamStore:
        """The job's coordinator stream, read."""
        job = JobConfig.of(self.config)
        system = SystemConfig.of(self.config, "kafka")
        stream = CoordinatorStreamStore(system, job.coordinator_topic, source="test")
        stream.bootstrap()
        return stream

    def close(self) -> None:
        """No process is left."""
        for running in self.started:
            if running.process.poll() is None:
                running.stop(signal.SIGKILL)
        self.served.close()


def _create_topics(servers: str, config: Config, job: str) -> None:
    compact = {"cleanup.policy": "compact"}
    topics = [
        NewTopic(JobConfig.of(config).coordinator_topic, 1, 1, config=compact),
        NewTopic(TaskConfig.of(config).checkpoint_topic, 1, 1, config=compact),
        NewTopic(f"{job}-changelog", 2, 1, config=compact),
        NewTopic(f"{job}-in", 2, 1),
        NewTopic(f"{job}-out", 2, 1),
    ]
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics(topics).values():
        future.result(DEADLINE_S)
    # Usable when its leader answers, which is a little after it was created.
    for topic in topics:
        for partition in range(topic.num_partitions):
            _until_led(admin, TopicPartition(topic.topic, partition))


def _until_led(admin: AdminClient, place: TopicPartition) -> None:
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            admin.list_offsets({place: latest})[place].result(DEADLINE_S)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        else:
            return


Make = Callable[..., Job]


@pytest.fixture
def make_job(kafka: str, tmp_path: Path) -> Iterator[Make]:
    """Makes a job of two tasks in one container from the code of its task and further keys."""
    made: list[Job] = []

    def make(code: str = COUNTER, **more: str) -> Job:
        name = f"job{uuid.uuid4().hex[:10]}"
        keys = {
            "job.name": name,
            "job.default.system": "kafka",
            "job.host-affinity.enabled": "true",
            "task.class": "user_job:Counter",
            "task.inputs": f"kafka.{name}-in",
            "task.transaction.ms": "50",
            "systems.kafka.consumer.bootstrap.servers": kafka,
            "systems.kafka.samza.offset.default": "oldest",
            "stores.counts.factory": "rocksdb",
            "stores.counts.changelog": f"kafka.{name}-changelog",
            "stores.counts.key.serde": "string",
            "stores.counts.msg.serde": "long",
        }
        overrides = {key.replace("__", "-").replace("_", "."): v for key, v in more.items()}
        config = Config(keys | overrides)
        _create_topics(kafka, config, name)
        (tmp_path / "package").mkdir()
        code = code.replace('"out"', f'"{name}-out"')
        (tmp_path / "package" / "user_job.py").write_text(code, encoding="utf-8")
        (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
        counts = {SystemStream("kafka", f"{name}-in"): 2}
        model = calculate_job_model(config, counts, {}, {})
        job = Job(kafka, tmp_path, config, model, Served(model))
        made.append(job)
        return job

    yield make
    for job in made:
        job.close()


def _living(group: int) -> list[str]:
    """The processes of a process group, without those that only wait to be reaped."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().rpartition(")")
            state, _, own_group = rest.split()[:3]
            if int(own_group) == group and state != "Z":
                found.append(name)
    return found


def _words(count: int, first: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
    """Words that are each of one partition only."""
    return [(i % 2, b"p%d-w%d" % (i % 2, i % 7), b"") for i in range(first, first + count)]


def _counts(count: int) -> dict[str, int]:
    """The counts of the first ``count`` words."""
    return dict(Counter((key or b"").decode() for _, key, _ in _words(count)))


def _is_exact(job: Job, count: int) -> None:
    """Output and state hold exactly the first ``count`` words."""
    expected = _counts(count)
    assert job.table("out") == {word: str(n).encode() for word, n in expected.items()}
    assert job.table("changelog") == {w: n.to_bytes(8, "big") for w, n in expected.items()}


def _restored(report: Started) -> dict[str, tuple[str, int]]:
    """{task: (kind, records)} of the store ``counts``."""
    return {t: (r.kind.value, r.records) for t, r in report.restored["counts"].items()}


def test_a_clean_restart_reads_nothing_and_goes_on(make_job: Make) -> None:
    """After SIGTERM the next incarnation restores no record and continues exactly."""
    job = make_job()
    first = job.start(1)
    job.produce(_words(1000))
    job.until(lambda: job.processed() == 1000, first)
    assert first.stop() == 143
    _is_exact(job, 1000)
    directory = job.folder / "stores" / f"{job.config['job.name']}-1" / "counts" / "Partition_0"
    assert (directory / "OFFSET").is_file()
    assert (directory / "OFFSET-v2").is_file()

    job.produce(_words(500, 1000))
    second = job.start(2, fence=[1])
    report = job.report(second, 2)
    assert _restored(report) == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    job.until(lambda: job.processed() == 1500, second)
    assert second.stop() == 143
    _is_exact(job, 1500)


def test_a_killed_container_reads_only_the_tail(make_job: Make) -> None:
    """After SIGKILL in the middle the result is exact, and only what followed OFFSET is read."""
    job = make_job(task_commit_ms="600000")
    first = job.start(1)
    total = 0
    for wave in range(1, 6):
        job.produce(_words(2000, total))
        total += 2000
        if wave < 5:
            job.until(lambda: len(job.history("commit")) >= 1, first)
    first.stop(signal.SIGKILL)
    committed = len(job.history("transaction-committed"))

    second = job.start(2, fence=[1])
    report = job.report(second, 2)
    assert committed >= 1
    for kind, _ in _restored(report).values():
        assert kind in {"none", "tail"}
    job.until(lambda: job.processed() == total, second)
    assert second.stop() == 143
    _is_exact(job, total)


def test_a_lost_directory_is_restored_in_full(make_job: Make) -> None:
    """With the state gone, all of the changelog is read, and the counts go on from there."""
    job = make_job()
    first = job.start(1)
    job.produce(_words(1000))
    job.until(lambda: job.processed() == 1000, first)
    first.stop()
    written = len(job.read(job.topic("changelog")))
    shutil.rmtree(job.folder / "stores")

    job.produce(_words(100, 1000))
    second = job.start(2, fence=[1])
    restored = _restored(job.report(second, 2))
    assert {kind for kind, _ in restored.values()} == {"full"}
    assert sum(records for _, records in restored.values()) == written
    job.until(lambda: job.processed() == 1100, second)
    second.stop()
    _is_exact(job, 1100)


def test_a_damaged_offset_file_means_a_rebuild(make_job: Make) -> None:
    """A store whose OFFSET has a wrong checksum is read in full, and the history says why."""
    job = make_job()
    first = job.start(1)
    job.produce(_words(100))
    job.until(lambda: job.processed() == 100, first)
    first.stop()
    offset = next((job.folder / "stores").glob("*/counts/Partition_0/OFFSET"))
    offset.write_bytes(offset.read_bytes()[:-1] + b"x")

    second = job.start(2, fence=[1])
    restored = _restored(job.report(second, 2))
    assert restored["Partition 0"][0] == "full"
    assert restored["Partition 1"] == ("none", 0)
    reasons = {line["task"]: line["reason"] for line in job.history("restore-started")[-2:]}
    assert reasons["Partition 0"] == "OFFSET is damaged: its checksum does not match its text"
    assert reasons["Partition 1"] is None


def test_a_predecessor_with_an_open_transaction_is_fenced(make_job: Make) -> None:
    """What an unfinished predecessor sent is never seen, and it can commit nothing any more."""
    job = make_job()
    own = transactional_id(job.config["job.name"], "1", Incarnation(P0, 1))
    old = Producer({"bootstrap.servers": job.servers, "transactional.id": own})
    old.init_transactions(DEADLINE_S)
    old.begin_transaction()
    for topic in ("out", "changelog"):
        old.produce(job.topic(topic), (99).to_bytes(8, "big"), b"stale", partition=0)
    old.flush(DEADLINE_S)
    job.produce(_words(10))

    second = job.start(2, fence=[1])
    report = job.report(second, 1)
    assert _restored(report) == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(DEADLINE_S)
    assert refused.value.args[0].fatal()
    job.until(lambda: job.processed() == 10, second)
    second.stop()
    _is_exact(job, 10)


def test_a_fenced_container_ends_with_the_reason(make_job: Make) -> None:
    """A container that a newer incarnation has fenced fails at its next transaction."""
    job = make_job()
    first = job.start(1)
    job.report(first, 1)
    newer = job.start(2, fence=[1])
    job.until(lambda: len(job.history("fenced")) == 2, newer)
    newer.process.wait(DEADLINE_S)
    assert "another process has it open" in newer.last_line()
    job.produce(_words(10))
    assert first.process.wait(DEADLINE_S) == 1
    assert first.last_line().startswith("error: fenced by a newer incarnation")
    assert job.read(job.topic("out")) == []


def test_an_overtaken_permit_is_not_used(make_job: Make) -> None:
    """A permit below the newest epoch in the coordinator stream ends the container at once."""
    job = make_job()
    permit = job.permit(1)
    job.permit(2, fence=[1])
    container = job.start(1, permit=permit)
    assert container.process.wait(DEADLINE_S) == 1
    assert container.last_line() == "error: processor 0 epoch 1 was overtaken by epoch 2"


def test_an_empty_topic_and_records_without_key_or_value(make_job: Make) -> None:
    """A start on empty topics works; null keys, tombstones and locality do too."""
    job = make_job()
    container = job.start(1)
    report = job.report(container, 1)
    assert _restored(report) == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    stream = job.coordinator_stream()
    assert LocalityManager(stream).read_tasks() == {"Partition 0": "nm1", "Partition 1": "nm1"}
    stream.close()
    job.produce([(0, None, b"v"), (0, b"k", None), (0, None, None)])
    job.until(lambda: job.processed() == 3, container)
    assert job.table("out") == {"<null>": b"2", "k": b"1"}
    assert container.stop() == 143


def test_a_failing_task_commits_nothing_of_its_transaction(make_job: Make) -> None:
    """An exception of user code ends the container with its cause; the batch leaves no trace."""
    job = make_job()
    job.produce([(0, b"good", b""), (0, b"poison", b"")])
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 1
    assert container.last_line() == (
        "error: task 'Partition 0' failed in process_batch: ValueError: poison found"
    )
    assert "Traceback" in container.log.read_text(encoding="utf-8")
    assert job.read(job.topic("out")) == []
    assert job.read(job.topic("changelog")) == []


SCANNER = """
import json
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.store = context.store("counts")

    def process_batch(self, table, collector):
        for value in table.column("value").to_pylist():
            for word, number in json.loads(value).items():
                self.store.put(word, number)
            seen = {
                "all": list(self.store.all()),
                "range": list(self.store.range("b", "d")),
                "some": self.store.get_all(["a", "b", "zz"]),
            }
            collector.send("out", json.dumps(seen).encode(), b"k", headers={"h": b"1"})
"""


def test_reads_see_own_writes_over_committed_ones(make_job: Make) -> None:
    """range, all and get_all merge the open transaction with what is committed, in byte order."""
    job = make_job(SCANNER)
    container = job.start(1)
    job.produce([(0, None, json.dumps({"d": 4, "b": 2, "a": 1}).encode())])
    job.until(lambda: job.processed() == 1, container)
    job.produce([(0, None, json.dumps({"c": 3, "a": None, "d": 5}).encode())])
    job.until(lambda: job.processed() == 2, container)
    container.stop()
    seen = [json.loads(value or b"") for _, value in job.read(job.topic("out"))]
    assert seen == [
        {
            "all": [["a", 1], ["b", 2], ["d", 4]],
            "range": [["b", 2]],
            "some": {"a": 1, "b": 2},
        },
        {
            "all": [["b", 2], ["c", 3], ["d", 5]],
            "range": [["b", 2], ["c", 3]],
            "some": {"b": 2},
        },
    ]


PIPELINE = (
    COUNTER
    + """
def words(frame):
    from pyspark.sql import functions as f
    frame = frame.withColumn("key", f.encode(f.upper(f.decode("value", "utf-8")), "utf-8"))
    return frame.where("offset % 2 = 0").select("task", "key", "stream", "partition", "offset")

def lost(frame):
    return frame.select("key")
"""
)


def test_a_pipeline_runs_in_spark_before_the_task(make_job: Make) -> None:
    """Rows come to the task as the pipeline made them; no JVM is left after the end."""
    job = make_job(PIPELINE, task_pipeline_class="user_job:words")
    job.produce([(p, None, b"word-%d" % (i % 3)) for i in range(60) for p in (0, 1)])
    container = job.start(1)
    job.until(lambda: job.processed() == 120, container)
    assert container.stop() == 143
    kept = Counter(f"WORD-{i % 3}" for i in range(0, 60, 2))
    assert job.table("out") == {word: str(n).encode() for word, n in kept.items()}
    assert _living(container.process.pid) == []
    assert list((job.folder / "work-1").iterdir()) == []


def test_a_pipeline_that_loses_the_task_is_refused_before_any_input(make_job: Make) -> None:
    """The error names the key, and says what to keep."""
    job = make_job(PIPELINE, task_pipeline_class="user_job:lost")
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 1
    assert container.last_line() == (
        "error: task.pipeline.class = 'user_job:lost': the pipeline must keep the column 'task', "
        "its rows have key; select 'task' too: it says whose rows they are"
    )
