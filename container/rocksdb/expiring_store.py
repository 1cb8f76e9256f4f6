"""ExpiringStore: a RocksDbStore whose entries may go once they are older than a time to live.

Each value ends with the second of its writing, four bytes, little-endian, as RocksDB's own TtlDB
writes it. The binding's is not used: a store that it opens again loses whatever compaction touches,
however young (rocksdict 0.3.29). So a write also looks at some entries that are its turn, and takes
the old ones among them out: in the same batch, and never the position.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from homeport.config.errors import StoreError
from homeport.config.rocksdb_section import RocksDbConfig
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore

_STAMP = struct.Struct("<i")
STAMP_BYTES = _STAMP.size
"""How many bytes at the end of each value are not the user's."""
_EARLIEST_S = 1368146402
"""RocksDB's own: no stamp is earlier, and no four digits are later."""
_LOOKS_AT_LEAST = 64
_LOOKS_PER_WRITE = 2


class ExpiringStore(RocksDbStore):
    """As a RocksDbStore. Until they are taken out, old entries are read like others.

    ``ttl_ms``: the age from which they may be. ``now_s``: seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        memory: RocksDbMemory,
        config: RocksDbConfig,
        ttl_ms: int,
        on_damage: Callable[[str], None] | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """As a RocksDbStore's."""
        super().__init__(path, memory, config, on_damage)
        self._ttl_s = ttl_ms / 1000
        self._now_s = now_s
        self._turn: bytes | None = None

    @property
    def position(self) -> int | None:
        """As a RocksDbStore's; StoreError too where the store was written without time to live."""
        value = self._position_bytes()
        if value is None:
            return None
        if not is_stamped(value):
            raise StoreError(f"{self.path}: the store was written without a time to live")
        return self._position_of(value[:-STAMP_BYTES])

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None where there is none."""
        value = super().get(key)
        return None if value is None else value[:-STAMP_BYTES]

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys``, in their order."""
        found = super().get_all(keys)
        return [None if value is None else value[:-STAMP_BYTES] for value in found]

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Pairs with start <= key < end in byte order, as they stand at the call."""
        return _without_stamps(super().scan(start, end))

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """As a RocksDbStore's."""
        stamp = stamp_of(self._now_s())
        stamped = {k: None if v is None else v + stamp for k, v in entries.items()}
        self._apply(
            {**self._expired(_LOOKS_AT_LEAST + _LOOKS_PER_WRITE * len(entries)), **stamped},
            None if position is None else b"%d" % position + stamp,
        )

    def _expired(self, looks: int) -> dict[bytes, None]:
        """The old ones among the next so many entries."""
        oldest_s = self._now_s() - self._ttl_s
        scan = super().scan(self._turn)
        part = list(islice(scan, looks))
        scan.close()
        self._turn = part[-1][0] + b"\x00" if len(part) == looks else None
        return {key: None for key, value in part if _second_of(value) < oldest_s}


def is_stamped(position: bytes) -> bool:
    """Whether the position as it stands under the reserved key is that of an ExpiringStore."""
    return len(position) > STAMP_BYTES and _second_of(position) >= _EARLIEST_S


def stamp_of(now_s: float) -> bytes:
    """What ends each value that is written now."""
    return _STAMP.pack(int(now_s))


def _second_of(value: bytes) -> int:
    second: int = _STAMP.unpack_from(value, len(value) - STAMP_BYTES)[0]
    return second


def _without_stamps(
    pairs: Generator[tuple[bytes, bytes], None, None],
) -> Generator[tuple[bytes, bytes], None, None]:
    for key, value in pairs:
        yield key, value[:-STAMP_BYTES]
