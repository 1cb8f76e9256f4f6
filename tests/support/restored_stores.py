"""Stores of one container that worker processes restore from a real broker."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Producer
from topic_records import alter

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader
from homeport.container.progress.restore import RestorePlan
from homeport.container.progress.restore_schedule import WORKER_MB, WorkerLimits
from homeport.container.restore.restore_workers import RestoreWorkers
from homeport.container.storage.container_storage import ContainerStorage
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import RestoreProgress

FLUSH_S = 0.2
_LIMIT_S = 30.0
Content = dict[bytes, bytes]


def nothing(_seconds: float) -> None:
    """A pause that does not end anything."""


@dataclass
class RestoredStores:
    """One store of ``partitions`` tasks, in ``folder``, with the changelog ``topic``.

    ``content``: what each changelog partition holds, {partition: {key: value}}.
    """

    servers: str
    topic: str
    folder: Path
    partitions: int = 1
    plans: list[RestorePlan] = field(default_factory=list)
    progress: list[RestoreProgress] = field(default_factory=list)
    content: dict[int, Content] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The changelog exists."""
        self.config = Config(
            {
                "job.name": "j",
                "job.default.system": "kafka",
                "systems.kafka.samza.factory": "kafka",
                "systems.kafka.consumer.bootstrap.servers": self.servers,
                "stores.s.factory": "rocksdb",
                "stores.s.changelog": f"kafka.{self.topic}",
                "stores.s.key.serde": "bytes",
                "stores.s.msg.serde": "bytes",
            }
        )
        self.system = SystemConfig.of(self.config, "kafka")
        self.content = {p: {} for p in range(self.partitions)}
        self.make_topic()

    def make_topic(self, partitions: int | None = None) -> None:
        """The changelog exists, with nothing in it; by default of one partition for each task."""
        TopicAdmin(self.system).create(
            self.topic, partitions or self.partitions, 1, {"cleanup.policy": "compact"}
        )

    def keep_deletions(self, time_ms: int) -> None:
        """The changelog keeps deletions for so long from now on."""
        alter(self.servers, self.topic, {"delete.retention.ms": str(time_ms)})

    def produce(self, count: int, seed: int, size: int = 100) -> None:
        """So many records more in each partition: new keys, old ones again, and deletions."""
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": self.servers,
            # Else a batch that a leader refuses at first comes after later ones.
            "enable.idempotence": True,
            "queue.buffering.max.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
        }
        producer = Producer(settings)
        rnd = random.Random(seed)  # noqa: S311 - content of a test
        for partition, content in self.content.items():
            for _ in range(count):
                key = b"%08d" % rnd.randrange(count)
                value = None if rnd.random() < 0.1 else rnd.randbytes(size)
                content.pop(key, None)
                if value is not None:
                    content[key] = value
                producer.produce(self.topic, value, key, partition)
                producer.poll(0)
        producer.flush()

    @contextlib.contextmanager
    def open_transaction(self, partition: int = 0) -> Iterator[Callable[[], None]]:
        """Someone's transaction is open in a partition, and readers wait before it for its end.

        A restore stands still in the middle until the yielded function is called, or the block
        ends.
        """
        producer = Producer(
            {"bootstrap.servers": self.servers, "transactional.id": f"open-{self.topic}"}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(self.topic, b"aborted", b"aborted", partition)
        producer.flush()
        is_open = True

        def end() -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                producer.abort_transaction(30)

        try:
            yield end
        finally:
            with contextlib.suppress(Exception):
                end()

    def restore(
        self, pause: Callable[[float], None] = nothing, workers: int = 2, flush_s: float = FLUSH_S
    ) -> dict[TaskName, Restored]:
        """A container's restore; afterwards the stores are closed, and equal to the changelog.

        ``pause`` is called all the time meanwhile; what it raises ends the restore. ``flush_s``:
        how often workers flush.
        """
        tasks = [TaskModel(TaskName(f"Partition {p}"), (), p) for p in range(self.partitions)]
        stores = list(StorageConfig.of(self.config).stores.values())
        storage = ContainerStorage(
            self.folder / "logged", self.folder / "scratch", stores, tasks, 1 << 24, "G"
        )
        self.plans.clear()
        self.progress.clear()
        reader = LogReader(self.system, nothing)
        limits = WorkerLimits(workers, WORKER_MB)
        fillers = RestoreWorkers(self.config, limits, 2, pause, flush_s)
        try:
            storage.open()
            restored = storage.restore(KafkaChangelogReader({"kafka": reader}), self, fillers)
            for task in tasks:
                found = dict(storage.overlay("s", task.task_name).scan())
                assert found == self.content[task.changelog_partition]
            return {TaskName(task): how for task, how in restored["s"].items()}
        finally:
            reader.close()
            storage.close()

    def directory(self, partition: int = 0) -> Path:
        """Where the store of that task is."""
        return self.folder / "logged" / "s" / f"Partition_{partition}"

    def has_offset(self) -> bool:
        """Whether the store of the first task has been committed."""
        return (self.directory() / "OFFSET").exists()

    # -- a RestoreListener

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """Keeps the plan."""
        assert (store, task_name.split()[0]) == ("s", "Partition")
        self.plans.append(plan)

    def restore_progress(self, progress: RestoreProgress) -> None:
        """Keeps it."""
        self.progress.append(progress)

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """Nothing to keep."""


def workers_of(parent: int) -> list[int]:
    """Process ids of the restore workers that process ``parent`` has started."""
    found: list[int] = []
    for child in psutil.Process(parent).children():
        with contextlib.suppress(psutil.Error):
            if any("restore_worker" in word for word in child.cmdline()):
                found.append(child.pid)
    return found
