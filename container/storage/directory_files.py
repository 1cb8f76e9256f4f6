"""DirectoryFiles: what lies beside a store in its directory, read without its lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.container.host.disk_space import room_on_disk_of
from homeport.container.progress import offset_file, store_meta
from homeport.container.storage.directory_lock import LOCK_FILE

DAMAGE_FILE = "DAMAGED"


@dataclass(frozen=True, slots=True)
class OffsetFound:
    """What the file that counts says, and when it was written (ms since the epoch)."""

    offset: int
    written_ms: int


class DirectoryFiles:
    """The files of the directory ``path``, which is there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def has_content(self) -> bool:
        """Whether anything but the lock is there; DiskError where it may not be read."""
        with room_on_disk_of(self.path):
            return any(entry.name != LOCK_FILE for entry in self.path.iterdir())

    def read_offset(self, changelog: SystemStream, partition: int) -> OffsetFound | None:
        """What the first of OFFSET-v2, OFFSET, SIDE-INPUT-OFFSETS says; None where none is there.

        Raises:
            DiskError: it may not be read.
            ForeignOffsetError: one of them is of another changelog; the message names it.
            WireError: one of them is damaged.
        """
        found: OffsetFound | None = None
        for name in offset_file.READ_ORDER:
            try:
                text = self.read_text(name)
                if text is None:
                    continue
                offset = offset_file.parse_offset_v2(text, changelog, partition)
            except offset_file.ForeignOffsetError as error:
                raise offset_file.ForeignOffsetError(f"{name}: {error}") from None
            except WireError as error:
                raise WireError(f"{name} is damaged: {error}") from None
            # Where one of them is damaged, what else there is may be, too: all are read.
            written_ms = (self.path / name).stat().st_mtime_ns // 1_000_000
            found = found or OffsetFound(offset, written_ms)
        return found

    def read_meta(self) -> store_meta.StoreMeta | None:
        """What STORE-META says; None where there is no such file.

        Raises:
            DiskError: it may not be read.
            WireError: the file is damaged.
        """
        try:
            text = self.read_text(store_meta.META_FILE)
            return None if text is None else store_meta.parse_meta(text)
        except WireError as error:
            raise WireError(f"{store_meta.META_FILE} is damaged: {error}") from None

    def read_damage(self) -> str | None:
        """Return the story of an earlier ``mark_damaged``; None without one."""
        try:
            with room_on_disk_of(self.path):
                text = (self.path / DAMAGE_FILE).read_text("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{DAMAGE_FILE} cannot be read: {error.strerror}"
        return " ".join(text.split()) or "it was found damaged"

    def written_ms(self, name: str) -> int:
        """When the file, which is there, was last written, in ms since 1970.

        Raises:
            DiskError: it may not be read.
            WireError: it cannot be read.
        """
        try:
            with room_on_disk_of(self.path):
                return (self.path / name).stat().st_mtime_ns // 1_000_000
        except OSError as error:
            raise WireError(f"it cannot be read: {error.strerror}") from None

    def read_text(self, name: str) -> str | None:
        """The text of a file of the form of OFFSET; None where there is no such file.

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
