"""StoreDirectory: one store's directory of one task: its lock, its files, its removal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from homeport.config.errors import StoreError, WireError
from homeport.config.system_stream import SystemStream
from homeport.container.disk_space import room_on_disk_of
from homeport.container.progress import offset_file, store_meta

_LOCK_FILE = ".homeport-lock"
_OFFSET_FILES = (
    offset_file.OFFSET_FILE,
    offset_file.OFFSET_V2_FILE,
    offset_file.SIDE_INPUT_OFFSETS_FILE,
)


class StoreDirectory:
    """A directory held under an exclusive lock until ``release``; the lock is not inherited.

    The lock guards against a second opener; it says nothing about who may write (safety S5).
    """

    def __init__(self, path: Path) -> None:
        """Makes and locks the directory.

        Raises:
            DiskFullError: there is no room for it.
            StoreError: another process holds it, or it cannot be made.
        """
        self.path = path
        try:
            with room_on_disk_of(path):
                path.mkdir(parents=True, exist_ok=True)
                # Python's descriptors are close-on-exec: neither JVM nor workers inherit them.
                self._lock = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"{path}: it cannot be made: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise StoreError(f"{path}: another process has it open") from None

    @property
    def has_content(self) -> bool:
        """Whether anything but the lock is there."""
        return any(entry.name != _LOCK_FILE for entry in self.path.iterdir())

    def empty(self) -> None:
        """Nothing but the lock is left."""
        # OFFSET goes first: a removal cut short must not leave it beside half a store.
        for name in _OFFSET_FILES:
            (self.path / name).unlink(missing_ok=True)
        _sync_directory(self.path)
        for entry in self.path.iterdir():
            if entry.name == _LOCK_FILE:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def read_offset(self) -> int | None:
        """The offset of OFFSET; None where there is no such file.

        Raises:
            WireError: the file is damaged.
        """
        text = self._read(offset_file.OFFSET_FILE)
        return None if text is None else offset_file.parse_offset(text)

    def read_meta(self) -> store_meta.StoreMeta | None:
        """What STORE-META says; None where there is no such file.

        Raises:
            WireError: the file is damaged.
        """
        text = self._read(store_meta.META_FILE)
        return None if text is None else store_meta.parse_meta(text)

    def _read(self, name: str) -> str | None:
        try:
            data = (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise WireError(f"it cannot be read: {error.strerror}") from None
        return offset_file.decode(data)

    def write_offset(self, offset: int) -> None:
        """OFFSET names ``offset``, also after a power cut.

        Raises:
            DiskFullError: there is no room for it; it says what it said before.
        """
        self._write(offset_file.OFFSET_FILE, offset_file.offset_text(offset))

    def write_offset_v2(
        self, changelog: SystemStream, partition: int, offset: int, *, is_standby: bool = False
    ) -> None:
        """OFFSET-v2 names ``offset`` of the changelog, as ``write_offset``.

        So does SIDE-INPUT-OFFSETS beside a standby's store; an active one's has no such file.
        """
        text = offset_file.offset_v2_text(changelog.system, changelog.stream, partition, offset)
        self._write(offset_file.OFFSET_V2_FILE, text)
        if is_standby:
            self._write(offset_file.SIDE_INPUT_OFFSETS_FILE, text)
        else:
            (self.path / offset_file.SIDE_INPUT_OFFSETS_FILE).unlink(missing_ok=True)

    def write_meta(self, meta: store_meta.StoreMeta) -> None:
        """STORE-META says ``meta``, also after a power cut; DiskFullError without room for it."""
        self._write(store_meta.META_FILE, store_meta.meta_text(meta))

    def _write(self, name: str, text: str) -> None:
        with room_on_disk_of(self.path):
            temporary = self.path / f"{name}.tmp"
            with temporary.open("wb") as file:
                file.write(offset_file.encode(text))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
            _sync_directory(self.path)

    def release(self) -> None:
        """Another may open the directory."""
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
