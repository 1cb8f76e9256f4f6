"""RocksDbView: reads a store's directory while its owner goes on, or without one.

Nothing is written into the directory and its lock is not taken. RocksDB's own ways of reading
beside a writer write there (the binding writes a file of its own at each open). So a shadow
directory is opened: it has copies of the small files that list the parts of the store, and links to
descriptors of the table files. These stay readable after the owner has merged and deleted them.

The view has the records that the owner had flushed, as a restart would find them: those of its last
flush, or a few more.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rocksdict import AccessType, Options, Rdict, ReadOptions

from homeport.config.errors import StoreError
from homeport.container.rocksdb.expiring_store import STAMP_BYTES, is_stamped
from homeport.container.rocksdb.rocksdb_store import (
    CURRENT_FILE,
    POSITION_KEY,
    check_end,
    one_line,
    position_of,
)

_TABLE = ".sst"
_ATTEMPTS = 20


class RocksDbView:
    """The content of a directory now, until ``close``."""

    def __init__(self, path: Path) -> None:
        """Open the store of ``path`` as it is on the disk.

        Raises:
            StoreError: there is none, or it is damaged or may not be read.
        """
        self.path = path
        self._resources = ExitStack()
        try:
            self._db = self._opened()
            # The stamp that an expiring store adds to each value is left out.
            known = self._db.get(POSITION_KEY)
            is_expiring = known is not None and is_stamped(bytes(known))
            self._stamp_bytes = STAMP_BYTES if is_expiring else 0
        except BaseException:
            self._resources.close()
            raise

    def _opened(self) -> Rdict:
        # The owner may delete a table after the list of tables was read, and before the directory
        # is. Then the list has changed, and is read again.
        fault, before = "", None
        for _ in range(_ATTEMPTS):
            listed = _manifest(self.path)
            if listed == before:
                break
            before = listed
            opened = self._shadowed(*listed)
            if isinstance(opened, Rdict):
                return opened
            fault = opened
        raise StoreError(f"{self.path}: RocksDB cannot read it: {fault}")

    def _shadowed(self, name: str, manifest: bytes) -> Rdict | str:
        """Open the store with that list of tables; return RocksDB's message where that fails."""
        with ExitStack() as resources:
            folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="homeport-")))
            (folder / CURRENT_FILE).write_text(f"{name}\n", encoding="utf-8")
            (folder / name).write_bytes(manifest)
            with ExitStack() as tables:
                _link_tables(self.path, folder, tables)
                options = Options(raw_mode=True)
                # All tables are opened now; none has to be found again later.
                options.set_max_open_files(-1)
                try:
                    db = Rdict(str(folder), options, access_type=AccessType.read_only())
                except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
                    return " ".join(str(error).replace(str(folder), str(self.path)).split())
            self._resources = resources.pop_all()
            return db

    @property
    def position(self) -> int | None:
        """Return the changelog offset up to which the store holds everything; None: no offset.

        Raises:
            StoreError: the value is no offset.
        """
        value = self._value(POSITION_KEY)
        return None if value is None else position_of(self.path, value)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""
        return None if key == POSITION_KEY else self._value(key)

    def _value(self, key: bytes) -> bytes | None:
        value = self._db.get(key)
        return None if value is None else self._unstamped(bytes(value))

    def _unstamped(self, value: bytes) -> bytes:
        return value[: len(value) - self._stamp_bytes]

    def scan(self, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from ``start`` on, in byte order.

        Raises:
            StoreError: a table is damaged, or cut short.
        """
        # In raw mode keys and values are bytes.
        items: Iterable[tuple[Any, Any]] = (
            self._db.items() if start is None else self._db.items(from_key=start)
        )
        last = start or b""
        for key, value in items:
            last = key
            if key != POSITION_KEY:
                yield key, self._unstamped(value)
        try:
            check_end(self._db, last, ReadOptions())
        except Exception as error:  # noqa: BLE001 - the binding raises bare Exception
            raise StoreError(f"{self.path}: RocksDB cannot read it: {one_line(error)}") from None

    def close(self) -> None:
        """Close the view and remove its files."""
        self._db.close()
        self._resources.close()


def _manifest(path: Path, replaced: str | None = None) -> tuple[str, bytes]:
    """Return name and bytes of the file with the list of tables; ``replaced``: one that is gone."""
    name = None
    try:
        name = Path((path / CURRENT_FILE).read_text(encoding="utf-8").strip()).name
        return name, (path / name).read_bytes()
    except FileNotFoundError as error:
        if name not in {None, replaced}:
            return _manifest(path, name)  # the owner opened the store, and began a new list
        missing = Path(error.filename or path).name
        raise StoreError(f"{path}: there is no RocksDB store here: no {missing}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "CURRENT is damaged"
        raise StoreError(f"{path}: it cannot be read: {why}") from None


def _link_tables(path: Path, folder: Path, tables: ExitStack) -> None:
    """Link each table of ``path`` into ``folder``, for as long as ``tables`` lives."""
    for entry in path.iterdir():
        if entry.suffix != _TABLE:
            continue
        try:
            descriptor = os.open(entry, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # merged away meanwhile
        except OSError as error:
            raise StoreError(f"{entry}: it cannot be read: {error.strerror}") from None
        tables.callback(os.close, descriptor)
        (folder / entry.name).symlink_to(f"/proc/{os.getpid()}/fd/{descriptor}")
