"""One host with adjunct stores on real RocksDB, for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from homeport.config.config import Config
from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.store_plan import StorePlan, plan_stores
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.host.executors import Executor, SameThread
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.restore import OffsetRange
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow, write
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from tests.unit.container.adjunct.adjuncts import adjunct

NAMES = TaskName("Partition 0"), TaskName("Partition 1")
PLANES, AIRLINES = adjunct("planes", is_broadcast=False), adjunct("airlines", is_broadcast=True)
P0, A0 = (SystemStreamPartition("kafka", name, 0) for name in ("planes", "airlines"))
DIRECTORY = Path("planes", "Partition_0")
CONFIG = Config(
    {
        f"stores.{store}.{key}": value
        for store in ("planes", "airlines")
        for key, value in {
            "factory": "rocksdb",
            "key.serde": "string",
            "msg.serde": "string",
            "adstore.input": f"kafka.{store}",
        }.items()
    }
)


def _tasks(partitions: int) -> list[TaskModel]:
    ssps = [
        (A0, *(SystemStreamPartition("kafka", "planes", p) for p in range(n, partitions, 2)))
        for n in (0, 1)
    ]
    return [TaskModel(name, own, n) for n, (name, own) in enumerate(zip(NAMES, ssps, strict=True))]


@dataclass
class Host:
    """One host and its Kafka. ``asked``: the partitions whose checkpoint was looked at."""

    root: Path
    planes: AdjunctStore = PLANES
    partitions: int = 2
    end: int = 100
    oldest: int = 0
    topic_id: str = "id"
    kept_ms: int | None = None
    forms: tuple[str, str] | None = ("string", "string")
    now_ms: int = 1_000_000
    beside: Executor = field(default_factory=SameThread)
    asked: list[int] = field(default_factory=list)
    starts: Mapping[SystemStreamPartition, InputPosition] = field(default_factory=dict)

    def plan(self) -> StorePlan:
        """Return the stores of both tasks and their container."""
        return plan_stores([self.planes, AIRLINES], _tasks(self.partitions), ProcessorId("0"))

    def start(self) -> AdjunctStorage:
        """The stores of both tasks and their container, recovered."""
        plan = self.plan()
        configs = StorageConfig.of(CONFIG).stores
        storage = AdjunctStorage(
            plan,
            configs,
            self.root / "logged",
            self.root / "scratch",
            lambda: ClockReading(self.now_ms),
            self.beside,
        )
        storage.open(StorageEngines(32 << 20, storage.count), NO_WAIT, None)
        ranges = {p: OffsetRange(self.oldest, self.end) for s in plan.stores for p in s.partitions}
        ids = {self.planes.stream: self.topic_id, AIRLINES.stream: "id of airlines"}
        try:
            asked, kept = ClockReading(self.now_ms), {}
            if self.kept_ms is not None:
                kept = {self.planes.stream: self.kept_ms}
            forms = {} if self.forms is None else {self.planes.name: self.forms}
            streams = StreamsNow(asked, ids, ranges, kept, forms)
            starts = storage.recover(streams, self._last)
        except BaseException:  # whatever it was, no lock stays behind
            storage.close()
            raise
        self.starts = {ssp: at for own in starts.values() for ssp, at in own.items()}
        assert starts[NAMES[0]][A0] == starts[NAMES[1]][A0]
        return storage

    def _last(self, _of: object, ssp: SystemStreamPartition) -> InputPosition:
        self.asked.append(ssp.partition)
        return InputPosition(7)

    @contextmanager
    def running(self) -> Iterator[AdjunctStorage]:
        """The stores as of ``start``, which are closed in the end."""
        storage = self.start()
        try:
            yield storage
        finally:
            storage.close()

    def left(self, *offsets: int) -> None:
        """A container has filled partition 0 at these offsets, flushed it and ended."""
        with self.running() as storage:
            fill(storage, *offsets)
            storage.flush(passed, passed)

    @property
    def directory(self) -> Path:
        """Return the one of the first task's part of ``planes``."""
        return self.root / "logged" / DIRECTORY

    def crash(self, storage: AdjunctStorage) -> None:
        """As SIGKILL: what is only in memory is gone."""
        kept = self.root / "kept"
        shutil.copytree(self.root / "logged", kept)
        storage.close()
        shutil.rmtree(self.root / "logged")
        kept.rename(self.root / "logged")


def fill(storage: AdjunctStorage, *offsets: int, value: bytes = b"1") -> None:
    """Key ``k<offset>`` of each offset of partition 0."""
    sink = storage.of_task(NAMES[0]).adjunct("planes")
    assert sink is not None
    keys = [b"k%d" % offset for offset in offsets]
    sink.take(Run(P0, offsets, [0] * len(offsets)), keys, [value] * len(keys))
    write(storage.sealed(), passed, passed)


def take(
    storage: AdjunctStorage, first: int, *values: bytes, key: bytes = b"k", at_ms: int = 0
) -> None:
    """``key`` has ``values`` in turn, at offsets from ``first`` on; ``end`` is an end's marker."""
    sink = storage.of_task(NAMES[0]).adjunct("planes")
    assert sink is not None
    ends = {n: Marker(MarkerKind.END) for n, value in enumerate(values) if value == b"end"}
    offsets = range(first, first + len(values))
    sink.take(Run(P0, offsets, [at_ms] * len(values), ends), [key] * len(values), values)
    write(storage.sealed(), passed, passed)


def held(storage: AdjunctStorage) -> list[bytes]:
    """The keys of the first task's part."""
    return [key for key, _ in storage.entries("planes", NAMES[0]).scan()]
