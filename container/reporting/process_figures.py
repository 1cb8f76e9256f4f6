"""The figures that an active container samples of its processes, its stores and its input."""

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from homeport.config.settings.memory_rule import MemoryShares
from homeport.container.host.resident_memory import resident_bytes
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.spark.session import LocalSpark
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.status.figures import Sample

_MIB = 1024 * 1024
_MS_PER_S = 1000


class CollectorClock:
    """Counts the runs of Python's garbage collector after ``start``, and their time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began_s = 0.0
        self.times = 0
        self.seconds = 0.0

    def start(self) -> None:
        """Count each collection from now on."""
        gc.callbacks.append(self._look)

    def stop(self) -> None:
        """Count no further collection."""
        if self._look in gc.callbacks:
            gc.callbacks.remove(self._look)

    def _look(self, phase: str, _info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began_s = self._clock()
        else:
            self.times += 1
            self.seconds += self._clock() - self._began_s


def collections(python: CollectorClock, jvm: LocalSpark | None) -> Iterator[Sample]:
    """Yield the garbage collections of both runtimes."""
    yield Sample("gc_collections", ("python",), python.times)
    yield Sample("gc_seconds", ("python",), python.seconds)
    found = None if jvm is None else jvm.collections()
    if found is not None:
        times, milliseconds = found
        yield Sample("gc_collections", ("jvm",), times)
        yield Sample("gc_seconds", ("jvm",), milliseconds / _MS_PER_S)


def memory(jvm: LocalSpark | None, shares: MemoryShares | None) -> Iterator[Sample]:
    """Yield the resident memory of each part, and the part's share.

    ``shares``: the shares by the memory rule; None: the job has no rule. The part ``python``
    includes the share of RocksDB, which works in Python's process.
    """
    yield Sample("memory_bytes", ("python",), resident_bytes(os.getpid(), below=False))
    if jvm is not None:
        own = resident_bytes(jvm.pid, below=False)
        yield Sample("memory_bytes", ("jvm",), own)
        # Pages that are freed between the two reads would make it negative.
        yield Sample("memory_bytes", ("workers",), max(0, resident_bytes(jvm.pid) - own))
    if shares is not None:
        python_mb = max(0, shares.python_mb) + shares.rocksdb_mb
        yield Sample("memory_share_bytes", ("python",), python_mb * _MIB)
        if jvm is not None:
            jvm_mb = shares.heap_mb + shares.jvm_beside_heap_mb
            yield Sample("memory_share_bytes", ("jvm",), jvm_mb * _MIB)


def task_lags(tasks: Sequence[TaskModel], source: InputConsumer) -> Iterator[Sample]:
    """Yield the lag of each task behind the heads of its input, if those are known."""
    for task in tasks:
        read = [ssp for ssp in task.system_stream_partitions if ssp in source.following]
        lag = source.lag_of(read)
        if lag is not None:
            yield Sample("task_input_lag_records", (task.task_name,), lag)


def input_path(source: InputConsumer) -> Iterator[Sample]:
    """Yield whether input goes into Arrow natively."""
    yield Sample("input_native", (), float(source.is_native))


def held_inputs(source: InputConsumer) -> Iterator[Sample]:
    """Yield for how many seconds each partition has stood behind an open transaction."""
    for ssp, seconds in source.held().items():
        yield Sample("input_held_seconds", (str(ssp.system_stream), str(ssp.partition)), seconds)
