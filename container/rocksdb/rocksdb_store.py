"""RocksDbStore: bytes to bytes on one RocksDB directory, together with its changelog position.

The write-ahead log is off: records that a crash loses are read again from the changelog. The
position is a reserved key, written in the same batch as its entries (safety S1). Whatever part of
the memory tables reached the disk, the store and its position agree.

A store that is there opens for reading only, which is several times cheaper: it syncs no file, and
takes half of the memory. Its first change, scan or flush opens it for writing.
"""

import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    UniversalCompactOptions,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.settings.rocksdb_section import RocksDbConfig, UniversalCompaction
from homeport.container.engine.storage_engine import DamagedStoreError
from homeport.container.host.disk_space import disk_error

POSITION_KEY = b"\x00homeport.position"
"""Reserved: hidden from all reads, refused for user keys. Its value is the offset in decimal."""

CURRENT_FILE = "CURRENT"
"""It has the name of RocksDB's list of files; without it RocksDB may begin an empty store."""

_PROPERTIES = {
    "store_entries": "rocksdb.estimate-num-keys",
    "store_disk_bytes": "rocksdb.live-sst-files-size",
    "store_memtable_bytes": "rocksdb.cur-size-all-mem-tables",
    "store_pending_compaction_bytes": "rocksdb.estimate-pending-compaction-bytes",
    "store_stopped_writes": "rocksdb.is-write-stopped",
    "rocksdb_cache_bytes": "rocksdb.block-cache-usage",
}
"""{figure: RocksDB's property}. All stores share the cache."""
_BEHIND_POSITION = POSITION_KEY + b"\x00"
_Range = tuple[bytes, bytes | None]
_Scan = Generator[tuple[bytes, bytes], None, None]
_Parts = list[tuple[_Range, Iterator[tuple[bytes, bytes]]]]
_Found = TypeVar("_Found")
_MIB = 1024 * 1024
_SMALLEST_BUFFER = 2 * _MIB
_SMALLEST_CAP = 64 * 1024
"""RocksDB raises smaller sizes to this one."""
_OPENING_THREADS = 256
"""So many begin and end at most while all stores open: a store of few files needs one."""
_MANY = 2000
"""From so many keys on, their order saves more than sorting costs: neighbours share a block of a
file, and a path in the memory tables."""
DEFAULTS = RocksDbConfig.of(Config({}), "")
"""The defaults of the configuration."""


_COMPRESSIONS = {
    "snappy": DBCompressionType.snappy,
    "bzip2": DBCompressionType.bz2,
    "zlib": DBCompressionType.zlib,
    "lz4": DBCompressionType.lz4,
    "lz4hc": DBCompressionType.lz4hc,
    "zstd": DBCompressionType.zstd,
    "none": DBCompressionType.none,
}


def compression_type(config: RocksDbConfig) -> DBCompressionType:
    """Return how the store's files are compressed."""
    return _COMPRESSIONS[config.compression]()


def options_of(config: RocksDbConfig, cache: Cache) -> Options:
    """Return the options of a store from its configuration; the others are RocksDB's own."""
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(10, block_based=False)
    table.set_block_size(config.block_size_bytes)
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - the binding takes it by position only
    options.set_block_based_table_factory(table)
    options.set_compression_type(compression_type(config))
    options.set_keep_log_file_num(config.log_files)
    options.set_max_log_file_size(config.log_file_bytes)
    options.set_delete_obsolete_files_period_micros(config.obsolete_files_period_us)
    options.set_max_open_files(config.open_files)
    options.set_max_file_opening_threads(config.file_opening_threads)
    options.set_max_manifest_file_size(config.manifest_bytes)
    for value, set_value in (
        (config.background_jobs, options.set_max_background_jobs),
        (config.levels, options.set_num_levels),
        (config.level0_trigger, options.set_level_zero_file_num_compaction_trigger),
        (config.target_file_bytes, options.set_target_file_size_base),
        (config.target_file_multiplier, options.set_target_file_size_multiplier),
    ):
        if value is not None:
            set_value(value)
    if config.universal is not None:
        options.set_compaction_style(DBCompactionStyle.universal())
        options.set_universal_compaction_options(_universal(config.universal))
    return options


def _universal(config: UniversalCompaction) -> UniversalCompactOptions:
    options = UniversalCompactOptions()
    options.size_ratio = config.size_ratio
    options.min_merge_width = config.min_merge_width
    options.max_merge_width = config.max_merge_width
    options.max_size_amplification_percent = config.max_size_amplification_percent
    options.compression_size_percent = config.compression_size_percent
    return options


def open_with(path: Path, options: Options, *, read_only: bool = False) -> Rdict:
    """Open the database with these options and no others.

    The binding's default would be the last options of the directory: another cache, another budget,
    or the memory tables of a bulk load.
    """
    # A crash leaves a write-ahead log, which has nothing in it.
    access = AccessType.read_only(False) if read_only else AccessType.read_write()  # noqa: FBT003 - by position only
    return Rdict(str(path), options, column_families={"default": options}, access_type=access)


class RocksDbMemory:
    """The memory that all stores of a container share: one block cache, and write buffers.

    Args:
        budget_bytes: for all stores together; half is cache, half write buffers. While all write
            buffers together are over their half, a store that is written to is flushed early.
        store_count: how many stores there will be; each gets its part of the write buffers.
        task_count: how many tasks share the write buffers in a store's own configuration.
    """

    def __init__(self, budget_bytes: int, store_count: int, task_count: int = 1) -> None:
        self._task_count = max(1, task_count)
        self._cache = Cache(budget_bytes // 2)
        # Writers never wait: a stall in the middle of a transaction costs more than it saves.
        self._write_buffers = WriteBufferManager(budget_bytes // 2, allow_stall=False)
        part = budget_bytes // 2 // max(1, store_count)
        self._write_buffer_bytes = max(_SMALLEST_BUFFER, part // 2)
        self._opening_threads = max(1, _OPENING_THREADS // max(1, store_count))

    def options(self, config: RocksDbConfig) -> Options:
        """Return the options of one store."""
        options = options_of(config, self._cache)
        options.set_write_buffer_size(self._write_buffer_size(config))
        options.set_max_write_buffer_number(config.write_buffers)
        options.set_write_buffer_manager(self._write_buffers)
        threads = min(config.file_opening_threads, self._opening_threads)
        options.set_max_file_opening_threads(threads)
        return options

    def _write_buffer_size(self, config: RocksDbConfig) -> int:
        if config.write_buffer_bytes is None:
            return self._write_buffer_bytes
        cap = config.write_buffer_bytes // self._task_count // config.write_buffers
        return max(_SMALLEST_CAP, min(self._write_buffer_bytes, cap))


class RocksDbStore:
    """An open store, of one owner; the caller holds the directory's lock.

    One thread reads and writes; ``flush`` may come from another.
    """

    def __init__(
        self,
        path: Path,
        memory: RocksDbMemory,
        config: RocksDbConfig = DEFAULTS,
        on_failure: Callable[[StoreError], None] | None = None,
    ) -> None:
        """Open or create the store; ``on_failure`` gets each later error before it is raised.

        Raises:
            DiskError: the disk has no room for what opening writes, or the files are forbidden.
            StoreError: RocksDB cannot open the directory.
        """
        self.path = path
        self._on_failure = on_failure
        self._scans: weakref.WeakKeyDictionary[_Scan, _Parts] = weakref.WeakKeyDictionary()
        self._options = without_wal()
        self._table_options = partial(memory.options, config)
        self._opening = threading.Lock()
        self._lock: int | None = None
        self._noted: bytes | None = None
        """The position that a store open for reading only gets when it opens for writing."""
        try:
            self._is_read_only = (path / CURRENT_FILE).exists()
            if self._is_read_only:
                self._lock = _lock_of(path)
            self._db = open_with(path, self._table_options(), read_only=self._is_read_only)
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            self._unlock()
            raise disk_error(path, error) or StoreError(
                f"{path}: RocksDB cannot open it: {one_line(error)}"
            ) from None

    @property
    def position(self) -> int | None:
        """Return the changelog offset up to which the store holds everything; None: not known.

        Raises:
            StoreError: the value is no position, as in a store that had a time to live.
        """
        value = self._position_bytes()
        return None if value is None else position_of(self.path, value)

    def _position_bytes(self) -> bytes | None:
        noted = self._noted
        value: bytes | None = noted or self._call(lambda: self._db.get(POSITION_KEY))
        return value

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""
        try:
            return None if key == POSITION_KEY else self._db.get(key)
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise self._failed(error) from None

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of ``keys``, in their order."""
        if not keys:
            return []
        if POSITION_KEY in keys:
            return [self.get(key) for key in keys]
        if len(keys) < _MANY:
            return self._found(keys)
        ordered = sorted(keys)
        found = dict(zip(ordered, self._found(ordered), strict=True))
        return [found[key] for key in keys]

    def _found(self, keys: Iterable[bytes]) -> list[bytes | None]:
        found = self._call(lambda: self._db.get(list(keys)))
        values: list[bytes | None] = found or []
        return values

    def scan(self, start: bytes | None = None, end: bytes | None = None) -> _Scan:
        """Yield the pairs with start <= key < end in byte order, as they stand at the call."""
        # Bounds leave the position out: a comparison of each key would cost more.
        before = (start or b"", POSITION_KEY if end is None else min(end, POSITION_KEY))
        after = (max(start or b"", _BEHIND_POSITION), end)
        # An iterator of RocksDB's stays at the moment at which it was made.
        ranges = [(first, last) for first, last in (before, after) if last is None or first < last]
        parts = [(part, self._items(*part)) for part in ranges]
        pairs = self._pairs(parts)
        self._scans[pairs] = parts
        return pairs

    def _items(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        items: Iterator[Any] = self._call(
            # An iterator opens files late, which may be gone once the store is open for writing.
            lambda: self._writable().items(from_key=start, read_opt=_bounds(end))
        )
        return items

    def _pairs(self, parts: _Parts) -> _Scan:
        # A generator can be closed, which lets RocksDB's iterators go.
        for (start, end), items in parts:
            pair = None
            try:
                for pair in items:
                    yield pair
            except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
                raise self._failed(error) from None
            last, bounds = start if pair is None else pair[0], _bounds(end)
            self._call(partial(check_end, self._db, last, bounds))

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Apply all of ``entries`` (None deletes) and the position, or nothing.

        Raises:
            DamagedStoreError: an earlier background flush met damage.
            DiskError: an earlier background flush found no room, or the files were forbidden.
        """
        self._apply(entries, None if position is None else b"%d" % position)

    def _apply(self, entries: Mapping[bytes, bytes | None], position: bytes | None) -> None:
        if not entries and self._is_only_noted(position):
            return
        batch = WriteBatch(raw_mode=True)
        pairs = entries.items()
        for key, value in pairs if len(pairs) < _MANY else sorted(pairs, key=itemgetter(0)):
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if position is not None:
            batch.put(POSITION_KEY, position)
        self._call(lambda: self._writable().write(batch, self._options))

    def _is_only_noted(self, position: bytes | None) -> bool:
        with self._opening:
            if self._is_read_only:
                self._noted = position
            return self._is_read_only

    def _writable(self) -> Rdict:
        with self._opening:
            if self._is_read_only:
                self._unlock()
                db = open_with(self.path, self._table_options())
                if self._noted is not None:
                    batch = WriteBatch(raw_mode=True)
                    batch.put(POSITION_KEY, self._noted)
                    db.write(batch, self._options)
                # A read in another thread ends on the former one, which closes with its last user.
                self._db, self._noted, self._is_read_only = db, None, False
            return self._db

    def figures(self) -> Mapping[str, int]:
        """Return RocksDB's figures of the store, by their names in ``/metrics``."""
        return {name: self._db.property_int_value(key) or 0 for name, key in _PROPERTIES.items()}

    def flush(self) -> None:
        """Flush all that was written; raise as ``write``."""
        if not self._is_read_only or self._noted is not None:
            self._call(lambda: self._writable().flush(True))  # noqa: FBT003 - wait for it

    def close(self) -> None:
        """Close the store and its open scans, so that another process may open the directory.

        It raises as ``write``.
        """
        # RocksDB stays open, and its directory locked, for as long as one of them is.
        self.end_scans()
        self._call(self._db.close)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def end_scans(self) -> None:
        """End all scans that are open."""
        for scan, parts in list(self._scans.items()):
            scan.close()
            parts.clear()  # which a generator that never ran holds on to, from Python 3.13 on

    def _call(self, action: Callable[[], _Found]) -> _Found:
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> StoreError:
        failure = disk_error(self.path, error) or self._fault(error)
        if self._on_failure is not None:
            self._on_failure(failure)
        return failure

    def _fault(self, error: Exception) -> StoreError:
        if isinstance(error, MemoryError):
            return StoreError(f"{self.path}: no memory is left for this call")
        return DamagedStoreError(self.path, f"RocksDB cannot read it: {one_line(error)}")


def _lock_of(path: Path) -> int:
    """Return the open lock file of RocksDB, locked: a store for reading only leaves that out."""
    descriptor = os.open(path / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def position_of(path: Path, text: bytes) -> int:
    """Return the position in ``text``, from the store in ``path``; StoreError if it is none."""
    if not text.isdigit():
        raise StoreError(f"{path}: the reserved position is not a number: {text!r}")
    return int(text)


def check_end(db: Rdict, last: bytes, bounds: ReadOptions) -> None:
    """Raise the binding's error where an entry behind ``last`` cannot be read.

    An iteration of the binding ends silently at damage.
    """
    following = db.iter(bounds)
    following.seek(last)
    if following.valid() and following.key() == last:
        following.next()
    following.status()


def without_wal() -> WriteOptions:
    """Return options of writes that a crash may lose: the changelog has them."""
    options = WriteOptions()
    # The binding's stubs take this property for a method.
    options.disable_wal = True  # type: ignore[method-assign,assignment]  # a property
    return options


def _bounds(end: bytes | None) -> ReadOptions:
    bounds = ReadOptions()
    if end is not None:
        bounds.set_iterate_upper_bound(end)
    return bounds


def one_line(error: Exception) -> str:
    """Return the message of the binding, in one line."""
    return " ".join(str(error).split())
