"""Files that hold secrets, in folders that no other user can write.

A folder is checked once it is open, and files are named below what was opened: what happens to the
path meanwhile changes nothing.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.own_folders import NotOwnError, own_folder

_REMEDY = "let HOMEPORT_CACHE_DIR name a folder of your own"


class PrivateFolder:
    """An open folder of this user's; ``private_folder`` makes it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def write(self, name: str, data: bytes) -> None:
        """Write ``data`` into a new file ``name`` of mode 0600.

        What had the name before is gone; a symlink is not followed.

        UnavailableError: the file system refuses; one line with the path.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._descriptor)
            descriptor = os.open(name, flags, 0o600, dir_fd=self._descriptor)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError as error:
            reason = error.strerror
            raise UnavailableError(
                f"{self._path / name} cannot be written: {reason}: {_REMEDY}"
            ) from None


@contextlib.contextmanager
def private_folder(path: Path) -> Iterator[PrivateFolder]:
    """Yield the folder ``path``, made if it is missing, of mode 0700 and this user's.

    UnavailableError: it cannot be made, is no folder, belongs to another user, or other users can
    write there; one line with path, reason and remedy.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(own_folder(path, path.parent))
        except (NotOwnError, OSError) as error:
            reason = error.reason if isinstance(error, NotOwnError) else error.strerror
            raise UnavailableError(
                f"{path} cannot hold this job's token: {reason}: {_REMEDY}"
            ) from None
        yield PrivateFolder(path, descriptor)
