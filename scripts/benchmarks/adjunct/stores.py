"""One adjunct store of a container, filled without a broker, and what a batch of it takes."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.bed import scratch
from homeport.config.config import Config
from homeport.config.settings.adjunct_section import AdjunctsConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.host.clocks import read_clocks
from homeport.container.host.executors import OneThread
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.restore import OffsetRange
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow, write
from homeport.container.storage.adjunct.filled_store import FilledStore
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel

RECORDS = 1_000_000
VALUE_BYTES = 184
"""With keys of 16 bytes: 200 for each record."""
BATCH = 10_000
_MEMORY_BYTES = 128 << 20
_POOL_BYTES = 4 << 20
_SSP = SystemStreamPartition("kafka", "planes", 0)
_CONFIG = Config(
    {
        "job.default.system": "kafka",
        "job.name": "bench",
        "task.inputs": "kafka.flights, kafka.planes",
        "task.class": "benchmarks.commit.tasks:Sums",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
        "stores.planes.adstore.version.marker.header": "version",
    }
)


def keys_in_disorder(count: int, seed: int) -> list[bytes]:
    """So many keys of 16 bytes; the same keys with every seed, in another order."""
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)  # noqa: S311 - for a measurement
    return [b"%016d" % number for number in numbers]


@dataclass
class Built:
    """A store whose data set comes in versions, with what fills it."""

    storage: AdjunctStorage
    sink: FilledStore
    _offset: int = 0

    def take(self, keys: Sequence[bytes], values: Sequence[bytes]) -> float:
        """A batch brings these records; the seconds in which the loop does nothing else."""
        count = len(keys)
        self.sink.take(Run(_SSP, self._next(count), [1] * count), keys, values)
        return self._shown()

    def ends(self) -> float:
        """A batch brings the end of the version; as ``take``."""
        end: dict[int, Marker | None] = {0: Marker(MarkerKind.END)}
        self.sink.take(Run(_SSP, self._next(1), [1], end), [None], [None])
        return self._shown()

    def settle(self) -> float:
        """A batch that brings nothing; as ``take``."""
        began = time.perf_counter()
        self.storage.switch_versions(passed, passed)
        return time.perf_counter() - began

    @property
    def served(self) -> int | None:
        """The version that tasks see."""
        return self.sink.facts().version

    def _next(self, count: int) -> range:
        found = range(self._offset, self._offset + count)
        self._offset += count
        return found

    def _shown(self) -> float:
        began = time.perf_counter()
        write(self.storage.sealed(), passed, passed)
        self.storage.switch_versions(passed, passed)
        return time.perf_counter() - began


@contextlib.contextmanager
def built_store() -> Iterator[Built]:
    """An empty one in a temporary folder."""
    stores = AdjunctsConfig.of(_CONFIG).stores
    plan = plan_stores(stores.values(), [TaskModel(TaskName("T"), (_SSP,), 0)], ProcessorId("0"))
    configs = StorageConfig.of(_CONFIG).stores
    with scratch() as folder:
        roots = folder / "logged", folder / "scratch"
        storage = AdjunctStorage(plan, configs, *roots, read_clocks, OneThread("adjunct stores"))
        with contextlib.closing(storage):
            storage.open(StorageEngines(_MEMORY_BYTES, 1), NO_WAIT, None)
            ids, ranges = {_SSP.system_stream: "id"}, {_SSP: OffsetRange(0, 0)}
            storage.recover(StreamsNow(read_clocks(), ids, ranges), lambda *_: InputPosition(0))
            sink = storage.of_task(TaskName("T")).adjunct("planes")
            assert sink is not None  # noqa: S101 - the plan has it
            yield Built(storage, sink)


def values_of(keys: Sequence[bytes]) -> list[bytes]:
    """Random bytes for each key, which nothing compresses."""
    return [_POOL[at : at + VALUE_BYTES] for at in (int(key) * 37 % _SPAN for key in keys)]


_POOL = random.Random(2).randbytes(_POOL_BYTES)  # noqa: S311 - for a measurement
_SPAN = _POOL_BYTES - VALUE_BYTES
