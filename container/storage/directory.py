"""StoreDirectory: one store's directory of one task: its lock, its files, its removal."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from homeport.config.errors import StoreError, WireError
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.recovery import META_FILE
from homeport.container.host.disk_space import room_on_disk_of
from homeport.container.progress import offset_file
from homeport.container.storage.directory_lock import (
    LOCK_FILE,
    NO_WAIT,
    DirectoryLock,
    Holder,
    LockWait,
)

DAMAGE_FILE = "DAMAGED"
_LONGEST_STORY = 1000
_Value = TypeVar("_Value")
_TO_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


class DirectoryFiles:
    """The files beside a store in the directory ``path``, which is there, read without its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def has_content(self) -> bool:
        """Return whether anything but the lock is there; DiskError where it may not be read."""
        with room_on_disk_of(self.path):
            return any(entry.name != LOCK_FILE for entry in self.path.iterdir())

    def read_offset(self, changelog: SystemStream, partition: int) -> tuple[int | None, int]:
        """Return the offset in the first of OFFSET-v2, OFFSET and SIDE-INPUT-OFFSETS.

        With it comes the time at which that file was written, in ms since 1970; (None, 0): there is
        no such file.

        Raises:
            DiskError: it may not be read.
            ForeignOffsetError: one of them is of another changelog; the message names it.
            WireError: one of them is damaged.
        """
        found: tuple[int | None, int] = None, 0
        for name in offset_file.READ_ORDER:
            offset = self.read(
                name, lambda text: offset_file.parse_offset_v2(text, changelog, partition)
            )
            if offset is None:
                continue
            # Where one of them is damaged, what else there is may be, too: all are read.
            if found[0] is None:
                found = offset, self.written_ms(name)
        return found

    def read(self, name: str, value: Callable[[str], _Value]) -> _Value | None:
        """Return the value of a file in the form of OFFSET; None where there is no such file.

        Raises:
            DiskError: it may not be read.
            ForeignOffsetError: it is of another changelog; the message names it.
            WireError: it is damaged; the message names it.
        """
        try:
            text = self.read_text(name)
            return None if text is None else value(text)
        except offset_file.ForeignOffsetError as error:
            raise offset_file.ForeignOffsetError(f"{name}: {error}") from None
        except WireError as error:
            raise WireError(f"{name} is damaged: {error}") from None

    def read_damage(self) -> str | None:
        """Return the story of an earlier ``mark_damaged``; None: there is none."""
        try:
            with room_on_disk_of(self.path):
                text = (self.path / DAMAGE_FILE).read_text("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{DAMAGE_FILE} cannot be read: {error.strerror}"
        return " ".join(text.split()) or "it was found damaged"

    def written_ms(self, name: str) -> int:
        """Return when the file, which is there, was last written, in ms since 1970.

        Raises:
            DiskError: it may not be read.
            WireError: it cannot be read.
        """
        try:
            with room_on_disk_of(self.path):
                return (self.path / name).stat().st_mtime_ns // 1_000_000
        except OSError as error:
            raise WireError(f"{name} cannot be read: {error.strerror}") from None

    def read_text(self, name: str) -> str | None:
        """Return the text of a file in the form of OFFSET; None where there is no such file.

        Raises:
            DiskError: it may not be read.
            WireError: it is damaged.
        """
        try:
            with room_on_disk_of(self.path):
                data = (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise WireError(f"it cannot be read: {error.strerror}") from None
        return offset_file.decode(data)


class StoreDirectory(DirectoryFiles):
    """A directory held under an exclusive lock until ``release``."""

    def __init__(
        self,
        path: Path,
        wait: LockWait = NO_WAIT,
        holder: Holder | None = None,
        below: Path | None = None,
    ) -> None:
        """Make and lock the directory; arguments as of ``DirectoryLock``.

        Raises:
            DiskError: there is no room for it, or no right to it.
            DirectoryHeldError: another process holds it.
            NotOwnError: it, or a folder above it, is another user's, a link, or open to others.
            StoreError: it cannot be made.
        """
        super().__init__(path)
        try:
            self._lock = DirectoryLock(path, holder or Holder.of_this_process(), wait, below)
        except OSError as error:
            raise StoreError(f"{path}: it cannot be made: {error.strerror}") from None

    def name_holder(self, holder: Holder | None) -> None:
        """Write the present holder into the lock file; None: this process."""
        self._lock.name_holder(holder or Holder.of_this_process())

    def empty(self) -> None:
        """Remove everything but the lock.

        Raises:
            DiskError: there is no right to remove it.
            StoreError: it cannot be removed.
        """
        try:
            with room_on_disk_of(self.path):
                # The files about the store go first: a removal that is cut short must not leave
                # them beside half of a store.
                for name in (*offset_file.READ_ORDER, META_FILE):
                    _remove(self.path / name)
                _sync_directory(self.path)
                for entry in self.path.iterdir():
                    if entry.name != LOCK_FILE:
                        _remove(entry)
        except OSError as error:
            raise StoreError(f"{self.path}: it cannot be emptied: {error.strerror}") from None

    def remove(self) -> None:
        """Remove the directory, its lock last; a process that waits for that makes a new one.

        Raises:
            DiskError: there is no right to remove it.
            StoreError: it cannot be removed.
        """
        self.empty()
        try:
            with room_on_disk_of(self.path):
                (self.path / LOCK_FILE).unlink()
                self.path.rmdir()
        except OSError as error:
            raise StoreError(f"{self.path}: it cannot be removed: {error.strerror}") from None

    def write_offset(self, offset: int) -> None:
        """Write ``offset`` into OFFSET, as ``put_text``."""
        self.put_text(offset_file.OFFSET_FILE, str(offset))

    def write_offset_v2(
        self, changelog: SystemStream, partition: int, offset: int, *, is_standby: bool = False
    ) -> None:
        """Write ``offset`` of the changelog into OFFSET-v2, as ``write_offset``.

        A standby writes SIDE-INPUT-OFFSETS, too; an active store has no such file.
        """
        text = offset_file.offset_v2_text(changelog.system, changelog.stream, partition, offset)
        if is_standby:
            self.put_text(offset_file.SIDE_INPUT_OFFSETS_FILE, text)
        self.put_text(offset_file.OFFSET_V2_FILE, text)
        if not is_standby:
            _remove(self.path / offset_file.SIDE_INPUT_OFFSETS_FILE)

    def write_text(self, name: str, text: str) -> None:
        """Write as ``put_text``; the file lasts through a power cut."""
        self.put_text(name, text)
        self.sync()

    def put_text(self, name: str, text: str) -> None:
        """Write ``text`` into the file, in the form of OFFSET.

        After a power cut before ``sync`` the file has this text, or the one before.

        Raises:
            DiskError: there is no room for it, or no right; the file is as it was before.
        """
        with room_on_disk_of(self.path):
            temporary = self.path / f"{name}.tmp"
            with os.fdopen(os.open(temporary, _TO_WRITE, 0o600), "wb") as file:
                file.write(offset_file.encode(text))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)

    def sync(self) -> None:
        """Have all files that were put last through a power cut; DiskError."""
        with room_on_disk_of(self.path):
            _sync_directory(self.path)

    def set_written(self, name: str, now_ms: int) -> None:
        """Set when the file was last written, in ms since 1970; DiskError where it cannot."""
        with room_on_disk_of(self.path):
            os.utime(self.path / name, ns=(now_ms * 1_000_000, now_ms * 1_000_000))

    @property
    def lock_descriptor(self) -> int:
        """Return the lock's file, for a child.

        While the child lives no other process opens the directory, even after this one has ended.
        """
        return self._lock.descriptor

    def release(self) -> None:
        """Let another process open the directory."""
        self._lock.release()


def mark_damaged(path: Path, story: str) -> None:
    """Have the next opener of the directory ``path`` rebuild its store, and report ``story``.

    Raises:
        OSError: the files could not be changed.
    """
    # OFFSET goes even where there is no room for the story: without it a store is rebuilt too.
    for name in offset_file.READ_ORDER:
        (path / name).unlink(missing_ok=True)
    _sync_directory(path)
    (path / DAMAGE_FILE).write_text(story[:_LONGEST_STORY], "utf-8")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
