"""Stream containers as processes, with a job coordinator's server, for integration tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coordinator_server
from check_history.reading import values_in
from confluent_kafka import KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from coordinator_server import Loop
from own_records import write_permit
from topic_records import partitions_of, records_from

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.container.host.lease_memory import FD_VARIABLE, LeaseMemory
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
from homeport.job_coordinator.model.ids import ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel

P0 = ProcessorId("0")
TOKEN = "secret"  # noqa: S105 - of a server that lives as long as a test
DEADLINE_S = 60.0
_SUPPORT = Path(__file__).parent
_NOTHING_MORE: Mapping[str, str] = {}
Record = tuple[int, bytes | None, bytes | None]
"""Partition, key and value of a record of the input."""
COUNTER = """
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
"""


class Backend(coordinator_server.Backend):
    """Serves one JobModel; keeps what containers report."""

    def __init__(self, model: JobModel) -> None:
        super().__init__()
        self.model = model
        self.reports: list[Started] = []
        self.localities = {}

    def job_model(self, version: int | None) -> JobModel | None:
        """The one model there is, version 1."""
        return self.model if version in {None, 1} else None

    def is_running(self, resource_id: ResourceId) -> bool:
        """Nothing was permitted by this backend."""
        return not resource_id

    async def started(self, message: Started) -> None:
        """A container has started."""
        self.reports.append(message)


class Served:
    """A server of one JobModel on an event loop of its own."""

    def __init__(self, model: JobModel) -> None:
        self.backend = Backend(model)
        self._loop = Loop()
        own = self.backend
        self._server = JobCoordinatorServer(own, TOKEN, "127.0.0.1", 0, launchers=own)
        host, port = self._loop.run(self._server.start())
        self.url = f"http://{host}:{port}/"

    def close(self) -> None:
        """The server is gone."""
        self._loop.run(self._server.stop())
        self._loop.close()


@dataclass
class Running:
    """A stream container's process."""

    process: subprocess.Popen[bytes]
    log: Path
    memory: LeaseMemory

    def permit(self, text: str) -> None:
        """The container that waits for its permit gets it."""
        if self.process.stdin is not None:
            with self.process.stdin as stdin:
                stdin.write(text.encode())

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signals its whole process group, waits; the exit code."""
        os.killpg(self.process.pid, number)
        if self.process.stdin is not None:
            self.process.stdin.close()
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
    environment: dict[str, str] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        """The job's own topic of that kind."""
        return f"{self.config['job.name']}-{name}"

    def permit(self, epoch: int, fence: Sequence[int] = (), processor: ProcessorId = P0) -> str:
        """Writes the permit's record, and returns the permit."""
        stream = self.coordinator_stream()
        incarnations = tuple(Incarnation(processor, e) for e in fence)
        write_permit(EpochManager(stream), processor, ProcessorEpoch(epoch, 1, incarnations))
        stream.close()
        listed = [{"processor_id": processor, "epoch": e} for e in fence]
        return json.dumps(
            {"processor_id": processor, "epoch": epoch, "model_version": 1, "fence": listed}
        )

    def start(
        self,
        epoch: int,
        fence: Sequence[int] = (),
        *,
        permit: str | None = None,
        program: str = "homeport.container.incarnation.container_runner",
        processor: ProcessorId = P0,
        host: str = "NM1",
        stores: str = "stores",
    ) -> Running:
        """A container under a new permit; ``program`` may be one of a test's own.

        Its state is in the folder ``stores`` of the job's.
        """
        permit = permit or self.permit(epoch, fence, processor)
        name = f"{epoch}" if processor == P0 else f"{processor}-{epoch}"
        running = self.spare(name, [program], host, stores)
        running.permit(permit)
        return running

    def spare(
        self,
        name: str,
        arguments: Sequence[str] = ("homeport.container.incarnation.container_runner",),
        host: str = "NM1",
        stores: str = "stores",
    ) -> Running:
        """A container that waits for its permit; ``arguments``: its program, and what that gets."""
        work = self.folder / f"work-{name}"
        work.mkdir(exist_ok=True)
        log = self.folder / f"container-{name}.log"
        memory = LeaseMemory.endless()
        environment = {
            **os.environ,
            "SAMZA_COORDINATOR_URL": self.served.url,
            "HOMEPORT_TOKEN_FILE": str(self.folder / "token"),
            "LOGGED_STORE_BASE_DIR": str(self.folder / stores),
            "NM_HOST": host,
            "PYTHONPATH": os.pathsep.join([str(self.folder / "package"), str(_SUPPORT)]),
            FD_VARIABLE: str(memory.fd),
            **self.environment,
        }
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=work,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(memory.fd,),
            )
        os.close(memory.fd)
        running = Running(process, log, memory)
        self.started.append(running)
        return running

    def fails(self, epoch: int = 1, fence: Sequence[int] = ()) -> str:
        """The last line of a container, which ends with exit code 1."""
        container = self.start(epoch, fence)
        assert container.process.wait(DEADLINE_S) == 1
        return container.last_line()

    def until(
        self,
        what: Callable[[], bool],
        container: Running | None = None,
        shown: Callable[[], str] = str,
    ) -> None:
        """Returns when ``what`` holds; fails with the container's log when it ends before.

        ``shown``: what else shows the cause.
        """
        deadline = time.monotonic() + DEADLINE_S
        pause = threading.Event()
        while not what():
            ended = container is not None and container.process.poll() is not None
            if ended or time.monotonic() > deadline:
                text = container.log.read_text(encoding="utf-8") if container else "late"
                raise AssertionError(f"{text}\n{shown()}")
            pause.wait(0.02)

    def report(self, container: Running, count: int) -> Started:
        """The report of the ``count``-th start; one whose answer came late is sent again."""

        def starts() -> list[Started]:
            return list({r.incarnation: r for r in self.served.backend.reports}.values())

        self.until(lambda: len(starts()) >= count, container)
        return starts()[count - 1]

    def produce(
        self, records: Sequence[Record], name: str = "in", headers: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        """The input of that name has these too, all with the same headers."""
        # Each record once, also where its leader changes meanwhile.
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        for partition, key, value in records:
            producer.produce(
                self.topic(name), value, key, partition=partition, headers=list(headers)
            )
        assert producer.flush(DEADLINE_S) == 0

    def read(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of all committed records of partition after partition."""
        return [(message.key(), message.value()) for message in self.messages(topic)]

    def messages(self, topic: str) -> list[Message]:
        """All committed records of partition after partition."""
        places = [TopicPartition(topic, p, 0) for p in partitions_of(self.servers, topic)]
        return records_from(self.servers, places)

    def records_between(self, name: str, partition: int, first: int, last: int) -> int:
        """How many committed records a partition has from ``first`` to ``last``, both included."""
        place = TopicPartition(self.topic(name), partition, first)
        return sum((m.offset() or 0) <= last for m in records_from(self.servers, [place]))

    def table(self, topic: str) -> dict[str, bytes | None]:
        """The last value of each key of one of the job's topics."""
        return {(k or b"").decode(): v for k, v in self.read(self.topic(topic))}

    def processed(self) -> int:
        """Records of the input that checkpoints call processed."""
        return sum(self.positions().values())

    def positions(self) -> dict[int, int]:
        """{partition of the input: how many of its records checkpoints call processed}."""
        newest: dict[int, int] = {}
        for _, value in self.read(TaskConfig.of(self.config).checkpoint_topic):
            for entry in json.loads(value or b"{}").values():
                if entry["stream"] == self.topic("in"):
                    newest[int(entry["partition"])] = int(entry["offset"]) + 1
        return newest

    def history(self, event: str) -> list[dict[str, Any]]:
        """The lines of one event, in the order of time."""
        files = self.folder.glob("stores*/*/.history/*.jsonl")
        lines = [line for file in files for line in values_in(file)]
        found = [line for line in lines if line["event"] == event]
        return sorted(found, key=lambda line: line["ts_ms"])

    def coordinator_stream(self) -> CoordinatorStreamStore:
        """The job's coordinator stream, read."""
        job = JobConfig.of(self.config)
        system = SystemConfig.of(self.config, "kafka")
        stream = CoordinatorStreamStore(system, job.coordinator_topic, source="test")
        stream.bootstrap()
        return stream

    def make_anew(self, name: str, entries: Sequence[tuple[int, bytes, bytes]]) -> None:
        """One of the job's compacted topics was deleted and made again, with other records.

        Shapes: ``entries`` (partition, key, value), sent in order.
        """
        topic = self.topic(name)
        admin = AdminClient({"bootstrap.servers": self.servers})
        partitions = len(partitions_of(self.servers, topic))
        admin.delete_topics([topic])[topic].result(DEADLINE_S)
        again = NewTopic(topic, partitions, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([again])[topic].result(DEADLINE_S)
        for partition in range(partitions):
            until_led(admin, TopicPartition(topic, partition))
        producer = Producer({"bootstrap.servers": self.servers})
        for partition, key, value in entries:
            producer.produce(topic, value, key, partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def close(self) -> None:
        """No process is left."""
        for running in self.started:
            if running.process.poll() is None:
                running.stop(signal.SIGKILL)
        self.served.close()


def _create_topics(
    servers: str, config: Config, job: str, also: Mapping[str, int], policy: str
) -> None:
    compact, given = {"cleanup.policy": "compact"}, {"cleanup.policy": policy}
    topics = [
        # Kept as often as the brokers keep a topic that says nothing.
        NewTopic(JobConfig.of(config).coordinator_topic, 1, config=compact),
        NewTopic(TaskConfig.of(config).checkpoint_topic, 1, config=compact),
        NewTopic(f"{job}-changelog", 2, config=compact),
        NewTopic(f"{job}-in", 2),
        NewTopic(f"{job}-out", 2),
        *(NewTopic(f"{job}-{name}", count, config=given) for name, count in also.items()),
    ]
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics(topics).values():
        future.result(DEADLINE_S)
    # Usable when its leader answers, which is a little after it was created.
    for topic in topics:
        for partition in range(topic.num_partitions):
            until_led(admin, TopicPartition(topic.topic, partition))


def until_led(admin: AdminClient, place: TopicPartition) -> None:
    """The partition's leader answers."""
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped there
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            admin.list_offsets({place: latest})[place].result(DEADLINE_S)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        else:
            return


def make_job(
    servers: str,
    folder: Path,
    code: str,
    more: Mapping[str, str],
    also: Mapping[str, int] | None = None,
    policy: str = "compact",
) -> Job:
    """A job of two tasks in one container, from the code of its task and further keys.

    In keys and values of these ``<job>`` stands for its name.

    Shapes: ``also`` {topic that is an input by ``more``: its partitions}; ``policy`` is by what
    these are cleaned.
    """
    also = also or {}
    name = f"job{uuid.uuid4().hex[:10]}"
    config = Config(
        {
            "job.name": name,
            "job.default.system": "kafka",
            "job.host-affinity.enabled": "true",
            "task.class": "user_job:Counter",
            "task.inputs": f"kafka.{name}-in",
            "task.transaction.ms": "50",
            "systems.kafka.consumer.bootstrap.servers": servers,
            "systems.kafka.samza.offset.default": "oldest",
            "stores.counts.factory": "rocksdb",
            "stores.counts.changelog": f"kafka.{name}-changelog",
            "stores.counts.key.serde": "string",
            "stores.counts.msg.serde": "long",
            **{k.replace("<job>", name): v.replace("<job>", name) for k, v in more.items()},
        }
    )
    _create_topics(servers, config, name, also, policy)
    (folder / "package").mkdir()
    code = code.replace('"out"', f'"{name}-out"')
    (folder / "package" / "user_job.py").write_text(code, encoding="utf-8")
    (folder / "token").write_text(TOKEN, encoding="utf-8")
    counts = {SystemStream("kafka", f"{name}-{topic}"): n for topic, n in {"in": 2, **also}.items()}
    model = calculate_job_model(config, counts, NOTHING)
    return Job(servers, folder, config, model, Served(model))


Make = Callable[..., Job]
"""As ``jobs`` gives it."""


@contextlib.contextmanager
def jobs(
    servers: str,
    folder: Path,
    code: str = COUNTER,
    common: Mapping[str, str] = _NOTHING_MORE,
    environment: Mapping[str, str] = _NOTHING_MORE,
    also: Mapping[str, int] | None = None,
    policy: str = "compact",
) -> Iterator[Callable[..., Job]]:
    """Makes a job from the code of its task and further keys, dots written as underscores.

    ``common``: keys of every job; ``environment``: variables of its containers; ``also`` and
    ``policy``: as of ``make_job``. At the end of the block no process is left.
    """
    made: list[Job] = []

    def make(code: str = code, *, servers: str = servers, policy: str = policy, **more: str) -> Job:
        keys = {key.replace("_", "."): value for key, value in more.items()}
        made.append(make_job(servers, folder, code, {**common, **keys}, also, policy))
        made[-1].environment |= environment
        return made[-1]

    try:
        yield make
    finally:
        for job in made:
            job.close()


def living(group: int) -> list[str]:
    """The processes of a process group, without those that only wait to be reaped."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().rpartition(")")
            state, _, own_group = rest.split()[:3]
            if int(own_group) == group and state != "Z":
                found.append(name)
    return found
