"""The stores of one container on real RocksDB, with a changelog in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from homeport.config.config import Config
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.restore import ChangelogTopic, OffsetRange, RestorePlan
from homeport.container.progress.transaction_plan import StoreId
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.store_restore import StoreRestore
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind
from homeport.job_coordinator.status.container_report import RestoreProgress

TASK = TaskName("Partition 0")
S, T = StoreId("s", TASK), StoreId("t", TASK)
NOTHING = Restored(RestoreKind.NONE, None, None, 0)
CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": "kafka.log",
        "stores.s.key.serde": "bytes",
        "stores.s.msg.serde": "bytes",
        "stores.t.factory": "rocksdb",
        "stores.t.key.serde": "bytes",
        "stores.t.msg.serde": "bytes",
    }
)


class Log:
    """A changelog partition: records by offset, a head, and what is read of it."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None] | None] = []
        self.oldest = 0
        self.plans: list[RestorePlan] = []
        self.progress: list[RestoreProgress] = []
        self.topic = ChangelogTopic("id-1", 1_000_000)
        self.now_ms = 5_000
        self.boot_id = "boot-1"
        self.boot_ms = 5_000

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """The same for each."""
        return dict.fromkeys(changelogs, self.topic)

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        """The same for each."""
        return [OffsetRange(self.oldest, len(self.records)) for _ in changelogs]

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Two records a chunk; None stands for a transaction marker."""
        assert (stream, partition) == (SystemStream("kafka", "log"), 0)
        numbered = [(i, r) for i, r in enumerate(self.records) if r and start <= i < head]
        for i in range(0, len(numbered), 2):
            part = numbered[i : i + 2]
            yield Chunk({r[0]: r[1] for _, r in part}, len(part), part[-1][0])

    def read_all(
        self, spans: Mapping[tuple[SystemStream, int], tuple[int, int]]
    ) -> Iterator[tuple[tuple[SystemStream, int], Chunk]]:
        """One after the other."""
        for (stream, partition), (start, head) in spans.items():
            for chunk in self.read(stream, partition, start, head):
                yield (stream, partition), chunk

    def run(self, restores: Sequence[StoreRestore]) -> None:
        """Of so few records none is left to a worker."""
        raise AssertionError(restores)

    def restore_progress(self, progress: RestoreProgress) -> None:
        """Keeps it."""
        self.progress.append(progress)

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """Keeps the plan."""
        assert (store, task_name) == ("s", TASK)
        self.plans.append(plan)

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """Nothing to keep."""


def storage_of(folder: Path, log: Log, config: Config = CONFIG) -> ContainerStorage:
    """The stores of one container below ``folder``, not opened yet."""
    stores = list(StorageConfig.of(config).stores.values())
    tasks = [TaskModel(TASK, (), 0)]
    return ContainerStorage(
        folder / "logged",
        folder / "scratch",
        stores,
        tasks,
        1 << 24,
        "G",
        clocks=lambda: ClockReading(log.now_ms, log.boot_id, log.boot_ms),
    )


def opened(folder: Path, log: Log, config: Config = CONFIG) -> tuple[ContainerStorage, Restored]:
    """They are open and restored; how the one with a changelog was."""
    storage = storage_of(folder, log, config)
    storage.open()
    return storage, storage.restore(log, log, log)["s"][TASK]


@contextmanager
def running(
    folder: Path, log: Log, config: Config = CONFIG
) -> Iterator[tuple[ContainerStorage, Restored]]:
    """As ``opened``; they are closed in the end."""
    storage, result = opened(folder, log, config)
    try:
        yield storage, result
    finally:
        storage.close()


def restored(folder: Path, log: Log, config: Config = CONFIG) -> Restored:
    """How the store with a changelog was restored by a container that then ended."""
    with running(folder, log, config) as (_, result):
        return result


def transaction(storage: ContainerStorage, log: Log, key: bytes, value: bytes | None) -> None:
    """What a committed transaction does: a record, its marker, and the store."""
    storage.overlay("s", TASK).put(key, value)
    (changes,) = storage.changes()
    log.records += [*changes.entries.items(), None]
    storage.apply(S, {("log", 0): len(log.records) - 2})


def directory_of(folder: Path) -> Path:
    """That one's directory."""
    return folder / "logged" / "s" / "Partition_0"


def one_committed(folder: Path) -> Log:
    """The log of a store that was closed with one record, at the time 5000."""
    log = Log()
    storage, _ = opened(folder, log)
    transaction(storage, log, b"a", b"1")
    storage.flush()
    storage.close()
    return log
