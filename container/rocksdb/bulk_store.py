"""BulkStore: a store that is filled from its changelog, in a process of its own.

Records go into memory tables that are unsorted lists. A thread of RocksDB sorts each table when it
writes the table out. The usual skip list would cost three times the rest of the work where keys
come in random order.

During the load RocksDB does not compress or merge the new files, since compaction would read and
write all of them again. ``compact`` bounds the merging that is left. A store that already has
merged files, because only a long tail is missing, is compacted as usual instead.

As in every store, each write has its position (safety S1), and the write-ahead log is off.
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rocksdict import Cache, DBCompressionType, MemtableFactory, Options, WriteBatch

from homeport.config.errors import StoreError
from homeport.config.settings.rocksdb_section import RocksDbConfig
from homeport.container.host.disk_space import disk_error
from homeport.container.progress.restore_schedule import WorkerMemory, is_debt_too_large
from homeport.container.rocksdb.expiring_store import StoreTime
from homeport.container.rocksdb.rocksdb_store import (
    DEFAULTS,
    POSITION_KEY,
    compression_type,
    one_line,
    open_with,
    options_of,
    without_wal,
)

_KIB = 1024
_MIB = 1024 * _KIB
_CACHE_BYTES = 8 * _MIB
_NEVER = 1 << 30
_LEVELS = 7
_USUAL_COMPACTION = {
    "level0_file_num_compaction_trigger": "4",
    "level0_slowdown_writes_trigger": "20",
    "level0_stop_writes_trigger": "36",
    "disable_auto_compactions": "false",
}
_STEP_S = 0.1


class BulkStore:
    """A store for one thread.

    The directory stays locked until both this process and the one that started it have ended.
    """

    def __init__(
        self,
        path: Path,
        memory: WorkerMemory,
        cores: int,
        config: RocksDbConfig = DEFAULTS,
        *,
        expires: bool = False,
    ) -> None:
        """Open or create the store; ``expires``: stamp its values as an ExpiringStore does.

        Raises:
            DiskError: the disk has no room for what opening writes, or this process may not use it.
            StoreError: RocksDB cannot open the directory.
        """
        self.path = path
        self._options = without_wal()
        levels = config.levels or _LEVELS
        try:
            self._db = open_with(path, _bulk_options(memory, cores, config))
            self._has_merged_files = any(self._files(level) for level in range(1, levels))
            if self._has_merged_files:
                self._db.set_options(_USUAL_COMPACTION)
            self._time = StoreTime(self._db.get(POSITION_KEY)) if expires else None
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise disk_error(path, error) or StoreError(
                f"{path}: RocksDB cannot open it: {one_line(error)}"
            ) from None

    def write(
        self, keys: Iterable[bytes | None], values: Iterable[bytes | None], position: int
    ) -> None:
        """Write all records in this order and ``position``, or nothing.

        A value of None deletes its key; a record without a key is skipped.

        Raises:
            DiskError: an earlier background flush found no room, or may not use the disk.
            StoreError: RocksDB refuses the write, for example because the store is damaged.
        """
        stamp = b"" if self._time is None else self._time.stamp()
        batch = WriteBatch(raw_mode=True)
        put = batch.put
        for key, value in zip(keys, values, strict=True):
            if key is None:
                continue
            if value is None:
                batch.delete(key)
            else:
                put(key, value + stamp)
        put(POSITION_KEY, b"%d" % position + stamp)
        self._run(lambda: self._db.write(batch, self._options))

    def flush(self) -> None:
        """Flush all that was written; DiskFullError if the disk has no room for it."""
        self._run(lambda: self._db.flush(True))  # noqa: FBT003 - wait for it

    def compact(self, report: Callable[[int], None]) -> None:
        """Merge files until so few are left that RocksDB does not slow writers.

        Call it after ``flush``. ``report`` gets the number of files before any is merged.
        """
        files = self._files(0)
        if not is_debt_too_large(files):
            return
        report(files)
        if self._has_merged_files:
            # RocksDB's own threads merge; to merge all of a large store would take far longer.
            while is_debt_too_large(self._files(0)):
                time.sleep(_STEP_S)
        else:
            self._run(lambda: self._db.compact_range(None, None))

    def close(self) -> None:
        """Close the store for another opener; unflushed records may be gone."""
        # RocksDB tries to flush here. An earlier flush has reported the fault that makes it fail.
        with contextlib.suppress(Exception):
            self._db.close()

    def _files(self, level: int) -> int:
        return int(self._db.property_value(f"rocksdb.num-files-at-level{level}") or 0)

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise disk_error(self.path, error) or StoreError(
                f"{self.path}: RocksDB refuses: {one_line(error)}"
            ) from None


def _bulk_options(memory: WorkerMemory, cores: int, config: RocksDbConfig) -> Options:
    levels = config.levels or _LEVELS
    options = options_of(config, Cache(_CACHE_BYTES))
    options.set_allow_concurrent_memtable_write(False)
    options.set_memtable_factory(MemtableFactory.vector())
    options.set_write_buffer_size(memory.table_mb * _MIB)
    options.set_max_write_buffer_number(memory.tables)
    options.set_min_write_buffer_number_to_merge(memory.merged)
    # malloc takes blocks this small from memory that it has; each large one is new memory.
    options.set_arena_block_size(64 * _KIB)
    below = [compression_type(config)] * (levels - 1)
    options.set_compression_per_level([DBCompressionType.none(), *below])
    options.set_disable_auto_compactions(True)
    options.set_level_zero_file_num_compaction_trigger(_NEVER)
    options.set_level_zero_slowdown_writes_trigger(_NEVER)
    options.set_level_zero_stop_writes_trigger(_NEVER)
    options.set_soft_pending_compaction_bytes_limit(0)
    options.set_hard_pending_compaction_bytes_limit(0)
    # RocksDB gives a quarter of these jobs to flushes; the others merge at the end.
    options.set_max_background_jobs(max(2, 4 * cores))
    options.set_max_subcompactions(cores)
    return options
