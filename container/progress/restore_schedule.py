"""Which restores go to worker processes, how many of those run at once, and what each may use.

PURE. The binding of RocksDB holds Python's lock, so only processes restore at the same time. As a
process takes time to start, short restores are done in place.

Theory of a worker's memory. Records go through librdkafka's queue and memory tables that are sorted
only when they are written out (``bulk_store``). Both are bounded, and so is the rest (interpreter,
libraries, one batch of records). The figures were measured by ``scripts/bench restore``.
"""

from dataclasses import dataclass

from homeport.config.settings.memory_rule import MemoryShares
from homeport.container.progress.restore import RestorePlan

SMALL_OFFSETS = 50_000
"""Up to so many offsets are read in place: about the time that a worker takes to start."""
FLUSH_S = 5.0
"""How often a worker flushes, and OFFSET has that: a restore that is cut short repeats the rest."""
MOST_LEVEL0_FILES = 18
"""Up to so many files may wait for compaction when input is taken: RocksDB slows writers from 20.

RocksDB then merges them in the background. More files are all merged before input is taken, which
writes the whole store once more. A GB makes 16 files, and one or two for the flushes on the way.
"""

WORKER_MB = 300
"""The most that a worker gets; more makes it no faster."""
SMALLEST_WORKER_MB = 128
_OWN_MB = 96
_PYTHON_MB = 160
_MOST_TABLES = 8
_TABLE_MB = 16
_SMALLEST_TABLE_MB = 2
_QUEUE_PART = 4
_MERGED = 4


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """A worker's queue and tables, of so many MB each; ``merged`` of them become one file."""

    tables: int
    table_mb: int
    queue_mb: int
    merged: int


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """How many workers may run at once, and the MB of each."""

    workers: int
    worker_mb: int


def is_read_in_place(plan: RestorePlan, *, is_persistent: bool) -> bool:
    """Return whether the container restores the store itself; in memory only it can."""
    return not is_persistent or plan.head - plan.start <= SMALL_OFFSETS


def worker_limits(shares: MemoryShares, cores: int, stores: int) -> WorkerLimits:
    """Return how many workers run at once: at least one, no more than cores or stores to restore.

    During a restore the container uses neither the memory of its stores nor most of Python's. The
    workers have both, except for the needs of the container's own process.
    """
    spare_mb = max(shares.rocksdb_mb + shares.python_mb - _PYTHON_MB, SMALLEST_WORKER_MB)
    # A few with enough memory are faster than many without.
    workers = max(1, min(cores, stores, spare_mb // WORKER_MB))
    return WorkerLimits(workers, min(WORKER_MB, spare_mb))


def worker_memory(worker_mb: int) -> WorkerMemory:
    """Return the parts of a worker's ``worker_mb``; about 100 are for its process itself."""
    free_mb = max(worker_mb - _OWN_MB, _SMALLEST_TABLE_MB * _MOST_TABLES)
    queue_mb = free_mb // _QUEUE_PART
    table_mb = max(_SMALLEST_TABLE_MB, min(_TABLE_MB, (free_mb - queue_mb) // _MOST_TABLES))
    return WorkerMemory(_MOST_TABLES, table_mb, queue_mb, _MERGED)


def is_debt_too_large(level0_files: int) -> bool:
    """Return whether so many files must be merged before the store is used."""
    return level0_files > MOST_LEVEL0_FILES
