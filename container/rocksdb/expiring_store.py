"""ExpiringStore: a RocksDbStore whose entries may go once they are older than a time to live.

Each value ends with the second of its writing in four bytes, little-endian, as RocksDB's own TtlDB.
The binding's TtlDB is not used: a store that it opens again loses all entries that compaction
touches, however young (rocksdict 0.3.29). Instead each write also looks at the next few entries of
the store, and deletes the old ones in the same batch; never the position.

A calendar that is set ahead must not delete entries that the changelog keeps. So the store measures
ages by a time of its own, ``StoreTime``.
"""

import contextlib
import struct
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from homeport.config.errors import StoreError
from homeport.config.settings.rocksdb_section import RocksDbConfig
from homeport.container.host.clocks import read_clocks
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore, position_of

_STAMP = struct.Struct("<i")
STAMP_BYTES = _STAMP.size
"""How many bytes of the stamp end each value."""
_EARLIEST_S = 1368146402
"""RocksDB's own: no stamp is earlier, and no four digits are later."""
_LATEST_S = (1 << 31) - 1
_LOOKS_AT_LEAST = 64
_LOOKS_PER_WRITE = 2


class ExpiringStore(RocksDbStore):
    """A RocksDbStore; old entries are read like others until they are deleted.

    ``ttl_ms``: the age from which they may be.
    """

    def __init__(
        self,
        path: Path,
        memory: RocksDbMemory,
        config: RocksDbConfig,
        ttl_ms: int,
        on_failure: Callable[[StoreError], None] | None = None,
        clocks: Callable[[], ClockReading] = read_clocks,
    ) -> None:
        """Opens or creates the store, as RocksDbStore does."""
        super().__init__(path, memory, config, on_failure)
        self._ttl_s = ttl_ms / 1000
        self._turn: bytes | None = None
        try:
            self._time = StoreTime(self._position_bytes(), clocks)
        except StoreError:
            with contextlib.suppress(StoreError):
                self.close()
            raise

    @property
    def position(self) -> int | None:
        """Return the position; StoreError also where the store was written without time to live."""
        value = self._position_bytes()
        if value is None:
            return None
        if not is_stamped(value):
            raise StoreError(f"{self.path}: the store was written without a time to live")
        return position_of(self.path, value[:-STAMP_BYTES])

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""
        value = super().get(key)
        return None if value is None else value[:-STAMP_BYTES]

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of ``keys``, in their order."""
        found = super().get_all(keys)
        return [None if value is None else value[:-STAMP_BYTES] for value in found]

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Yield the pairs with start <= key < end in byte order, as they stand at the call."""
        return ((key, value[:-STAMP_BYTES]) for key, value in super().scan(start, end))

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Apply as ``RocksDbStore.write``, and delete some of the old entries."""
        stamp = self._time.stamp()
        stamped = {k: None if v is None else v + stamp for k, v in entries.items()}
        self._apply(
            {**self._expired(_LOOKS_AT_LEAST + _LOOKS_PER_WRITE * len(entries)), **stamped},
            None if position is None else b"%d" % position + stamp,
        )

    def _expired(self, looks: int) -> dict[bytes, None]:
        oldest_s = self._time.now_s() - self._ttl_s
        scan = super().scan(self._turn)
        part = list(islice(scan, looks))
        scan.close()
        self._turn = part[-1][0] + b"\x00" if len(part) == looks else None
        return {key: None for key, value in part if _second_of(value) < oldest_s}


class StoreTime:
    """The time of one store, in seconds: it goes on while the store is open, and is never set.

    It begins at the stamp of the position, which is the last one written, and goes on by the clock
    that counts from the machine's start. In a new store it begins at the calendar's time, within
    the range of stamps. Ages are differences, so a wrong calendar does no harm. Time in which the
    store was not open does not count: only the calendar would know it.
    """

    def __init__(
        self, position: bytes | None, clocks: Callable[[], ClockReading] = read_clocks
    ) -> None:
        """Begin the time; ``position``: the value of the reserved key in the store, now open."""
        now = clocks()
        self._clocks = clocks
        self._opened_ms = now.boot_ms
        if position is not None and is_stamped(position):
            self._began_s = _second_of(position)
        else:
            wall_s = now.wall_ms // 1000
            self._began_s = wall_s if _EARLIEST_S <= wall_s < _LATEST_S else _EARLIEST_S

    def now_s(self) -> int:
        """Return the present time."""
        elapsed_ms = self._clocks().boot_ms - self._opened_ms
        return min(self._began_s + elapsed_ms // 1000, _LATEST_S)

    def stamp(self) -> bytes:
        """Return the stamp of each value that is written now."""
        return _STAMP.pack(self.now_s())


def is_stamped(position: bytes) -> bool:
    """Return whether this value of the reserved key is that of an ExpiringStore."""
    return len(position) > STAMP_BYTES and _second_of(position) >= _EARLIEST_S


def _second_of(value: bytes) -> int:
    second: int = _STAMP.unpack_from(value, len(value) - STAMP_BYTES)[0]
    return second
