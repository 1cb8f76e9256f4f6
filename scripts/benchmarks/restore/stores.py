"""Stores with changelogs of distinct keys in random order, restored as a container does it."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.bed import go_on
from benchmarks.jobs import config_of, store_keys
from benchmarks.report import BenchmarkError, Spent
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

RECORDS = 1_000_000
VALUE_BYTES = 1024
TOPIC = "changelog"
_POOL_BYTES = 64 * 1024 * 1024
_SERVED = 10_000


@dataclass(frozen=True)
class Restore:
    """What one restore took; ``cpu_s`` of the container and its workers."""

    seconds: float
    cpu_s: float
    records: int
    peak_mb: int


@dataclass
class Stores:
    """Stores of as many tasks as the changelog has partitions, below ``folder``.

    ``count``, ``value_bytes``: of the records of each partition.
    """

    servers: str
    folder: Path
    partitions: int
    count: int = RECORDS
    value_bytes: int = VALUE_BYTES
    plans: list[RestorePlan] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Nothing is made yet."""
        self._config = config_of(self.servers, store_keys("s", TOPIC, "bytes"))
        self._system = SystemConfig.of(self._config, "kafka")

    def fill_changelog(self) -> None:
        """Each partition has ``count`` distinct keys of 16 bytes, with values of random bytes."""
        TopicAdmin(self._system).create(TOPIC, self.partitions, 1, {"cleanup.policy": "compact"})
        pool = os.urandom(_POOL_BYTES)
        rnd = random.Random(1)  # noqa: S311 - order of a benchmark's keys
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "linger.ms": 20,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 200_000,
            }
        )
        numbers = list(range(self.count))
        for partition in range(self.partitions):
            rnd.shuffle(numbers)
            for count, number in enumerate(numbers):
                start = rnd.randrange(_POOL_BYTES - self.value_bytes)
                value, key = pool[start : start + self.value_bytes], b"%016d" % number
                while True:
                    try:
                        producer.produce(TOPIC, value, key, partition)
                        break
                    except BufferError:
                        producer.poll(0.1)
                if count % _SERVED == 0:
                    producer.poll(0)
        producer.flush()

    def restore(self, tasks: int, *, is_new: bool = True) -> Restore:
        """The stores of so many tasks hold all of their changelogs; what that took.

        As at a container's start: locks, plans, workers, OFFSET, STORE-META. ``is_new``: there was
        no state before.
        """
        if is_new:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.plans.clear()
        models = [TaskModel(TaskName(f"Partition {p}"), (), p) for p in range(tasks)]
        stores = list(StorageConfig.of(self._config).stores.values())
        storage = ContainerStorage(
            self.folder / "logged", self.folder / "scratch", stores, models, 1 << 27, "G"
        )
        workers = RestoreWorkers(self._config, WorkerLimits(tasks, WORKER_MB), 2, go_on)
        reader = LogReader(self._system, go_on)
        spent = Spent(_cpu_s)
        storage.open()
        found = storage.restore(KafkaChangelogReader({"kafka": reader}), self, workers)
        seconds, cpu_s = spent.so_far()
        self._check(storage, models)
        storage.close()
        reader.close()
        records = sum(restored.records for restored in found["s"].values())
        return Restore(seconds, cpu_s, records, max(workers.peak_mb, default=0))

    def _check(self, storage: ContainerStorage, tasks: list[TaskModel]) -> None:
        for task in tasks:
            overlay = storage.overlay("s", task.task_name)
            keys = [b"%016d" % number for number in range(0, self.count, 997)]
            if len(overlay.get_all(keys)) != len(keys):
                raise BenchmarkError(f"the store of {task.task_name} lacks keys")

    # -- a RestoreListener

    def restore_started(self, _store: str, _task_name: TaskName, plan: RestorePlan) -> None:
        """Keeps the plan."""
        self.plans.append(plan)

    def restore_progress(self, _progress: RestoreProgress) -> None:
        """The benchmark ignores progress."""

    def restore_finished(self, _store: str, _task_name: TaskName, _result: Restored) -> None:
        """It is in what ``restore`` returns."""


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
