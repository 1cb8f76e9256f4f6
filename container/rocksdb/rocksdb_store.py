"""RocksDbStore: bytes to bytes on one RocksDB directory, together with its changelog position.

The write-ahead log is off: what a crash loses is read again from the changelog. The position is a
reserved key, written in the same batch as the entries it speaks for (safety S1), so that whatever
part of the memory tables reached the disk, the store and its position agree.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.rocksdb_section import RocksDbConfig
from homeport.container.disk_space import DiskFullError, room_on_disk_of
from homeport.container.rocksdb.options import set_compaction_options, set_file_options

POSITION_KEY = b"\x00homeport.position"
"""Reserved: hidden from all reads, refused for user keys. Its value is the offset in decimal."""

_BEHIND_POSITION = POSITION_KEY + b"\x00"
_MIB = 1024 * 1024
_SMALLEST_BUFFER = 2 * _MIB
_SMALLEST_CAP = 64 * 1024
"""RocksDB raises what is smaller to this."""
DEFAULTS = RocksDbConfig.of(Config({}), "")
"""What a configuration that says nothing asks for."""


class RocksDbMemory:
    """The memory that all stores of a container share: one block cache, and write buffers.

    Args:
        budget_bytes: for all stores together; half is cache, half write buffers. The store that is
            written to while all together are over their half is flushed early.
        store_count: how many stores there will be; each gets its part of the write buffers.
        task_count: how many tasks share what a store's own configuration allows it at most.
    """

    def __init__(self, budget_bytes: int, store_count: int, task_count: int = 1) -> None:
        self._task_count = max(1, task_count)
        self._cache = Cache(budget_bytes // 2)
        # Writers never wait for it: a stall in mid-transaction would cost more than it saves.
        self._write_buffers = WriteBufferManager(budget_bytes // 2, allow_stall=False)
        part = budget_bytes // 2 // max(1, store_count)
        self._write_buffer_bytes = max(_SMALLEST_BUFFER, part // 2)

    @property
    def cache_bytes(self) -> int:
        """What the block cache holds now."""
        return self._cache.get_usage()

    def options(self, config: RocksDbConfig) -> Options:
        """The options of one store."""
        table = BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_bloom_filter(10, block_based=False)
        table.set_block_size(config.block_size_bytes)
        options = Options(raw_mode=True)
        options.create_if_missing(True)  # noqa: FBT003 - the binding takes it by position only
        options.set_block_based_table_factory(table)
        options.set_write_buffer_size(self._write_buffer_size(config))
        options.set_max_write_buffer_number(config.write_buffers)
        options.set_write_buffer_manager(self._write_buffers)
        set_file_options(options, config)
        set_compaction_options(options, config)
        return options

    def _write_buffer_size(self, config: RocksDbConfig) -> int:
        if config.write_buffer_bytes is None:
            return self._write_buffer_bytes
        cap = config.write_buffer_bytes // self._task_count // config.write_buffers
        return max(_SMALLEST_CAP, min(self._write_buffer_bytes, cap))


class RocksDbStore:
    """An open store. One owner, one thread; the directory's lock is held by the caller."""

    def __init__(self, path: Path, memory: RocksDbMemory, config: RocksDbConfig = DEFAULTS) -> None:
        """Opens or creates the store.

        Raises:
            DiskFullError: there is no room for what opening writes.
            StoreError: RocksDB cannot open the directory.
        """
        self.path = path
        self._scans: weakref.WeakSet[Generator[tuple[bytes, bytes], None, None]] = weakref.WeakSet()
        self._options = _without_wal()
        try:
            with room_on_disk_of(path):
                self._db = Rdict(str(path), memory.options(config))
        except DiskFullError:
            raise
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise StoreError(f"{path}: RocksDB cannot open it: {error}") from None

    @property
    def is_persistent(self) -> bool:
        """Yes: what was flushed is there after a crash."""
        return True

    @property
    def position(self) -> int | None:
        """The changelog offset up to which the store holds everything; None: not known.

        Raises:
            StoreError: what stands there is none, as where the store had a time to live.
        """
        value = self._position_bytes()
        return None if value is None else self._position_of(value)

    def _position_bytes(self) -> bytes | None:
        value: bytes | None = self._db.get(POSITION_KEY)
        return value

    def _position_of(self, text: bytes) -> int:
        if not text.isdigit():
            raise StoreError(f"{self.path}: the reserved position is not a number: {text!r}")
        return int(text)

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None where there is none."""
        return None if key == POSITION_KEY else self._db.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys``, in their order."""
        if not keys:
            return []
        if POSITION_KEY in keys:
            return [self.get(key) for key in keys]
        values: list[bytes | None] = self._db.get(list(keys)) or []
        return values

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Pairs with start <= key < end in byte order, as they stand at the call."""
        # The position is stepped over by bounds: a look at each key would cost more than that.
        before = (start or b"", POSITION_KEY if end is None else min(end, POSITION_KEY))
        after = (max(start or b"", _BEHIND_POSITION), end)
        # An iterator of RocksDB's stays at the moment at which it was made.
        parts = [self._items(*part) for part in (before, after) if _has_room(*part)]
        pairs = _pairs(parts)
        self._scans.add(pairs)
        return pairs

    def _items(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        bounds = ReadOptions()
        if end is not None:
            bounds.set_iterate_upper_bound(end)
        items: Iterator[Any] = self._db.items(from_key=start, read_opt=bounds)
        return items

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Applies all of ``entries`` (None deletes) and the position, or nothing.

        Raises:
            DiskFullError: an earlier flush in the background found no room.
        """
        self._apply(entries, None if position is None else b"%d" % position)

    def _apply(self, entries: Mapping[bytes, bytes | None], position: bytes | None) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in entries.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if position is not None:
            batch.put(POSITION_KEY, position)
        with room_on_disk_of(self.path):
            self._db.write(batch, self._options)

    def flush(self) -> None:
        """All that was written is on the disk; DiskFullError where there is no room for it."""
        with room_on_disk_of(self.path):
            self._db.flush(True)  # noqa: FBT003 - wait for it

    def close(self) -> None:
        """The directory may be opened by another; open scans are at their end."""
        # RocksDB stays open, and its directory locked, for as long as one of them is.
        for scan in list(self._scans):
            scan.close()
        self._db.close()


def _without_wal() -> WriteOptions:
    options = WriteOptions()
    # A property, which the binding's stubs take for a method.
    options.disable_wal = True  # type: ignore[method-assign,assignment]
    return options


def _has_room(start: bytes, end: bytes | None) -> bool:
    return end is None or start < end


def _pairs(
    parts: Iterable[Iterator[tuple[bytes, bytes]]],
) -> Generator[tuple[bytes, bytes], None, None]:
    # A generator can be closed, which lets RocksDB's iterators go.
    yield from chain.from_iterable(parts)
