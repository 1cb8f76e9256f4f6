"""Errors of a full or forbidden disk: one line each, never taken for a damaged store."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homeport.config.errors import StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_ROCKSDB_LOCK = ("While lock file", "lock hold by current process")


class DiskError(StoreError):
    """Nothing more can be read or written there; the data on the disk are whole, and stay."""


class DiskFullError(DiskError):
    """There is no room for more."""


class DiskForbiddenError(DiskError):
    """The system does not let this process use it."""


@contextmanager
def room_on_disk_of(path: Path) -> Iterator[None]:
    """Turn an error of the block that the disk of ``path`` has caused into one line.

    DiskFullError: there is no room. DiskForbiddenError: there is no right, too many files are open,
    or another program has the store open. All other errors pass as they are.
    """
    try:
        yield
    except Exception as error:
        found = disk_error(path, error)
        if found is None:
            raise
        raise found from None


def disk_error(path: Path, error: Exception) -> DiskError | None:
    """Return the disk error of ``path`` that ``error`` means; None: it means another fault."""
    if isinstance(error, OSError):
        return _of_number(path, error.errno)
    return _of_text(path, str(error))


def is_disk_full(error: BaseException) -> bool:
    """Return whether a full disk is ``error``, or its cause."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    if isinstance(error, DiskFullError):
        return True
    return error.__cause__ is not None and is_disk_full(error.__cause__)


def _of_number(path: Path, number: int | None) -> DiskError | None:
    if number in _FULL:
        existing = next(p for p in (path, *path.parents) if p.exists())
        free = shutil.disk_usage(existing).free
        return DiskFullError(
            f"{path}: no room is left on its disk ({free} bytes free); make room there, or set "
            "LOGGED_STORE_BASE_DIR on the node, or job.logged.store.base.dir, to a larger disk"
        )
    if number in _FORBIDDEN:
        return DiskForbiddenError(
            f"{path}: {os.strerror(number)}, for user {os.geteuid()}: what is there stays as it "
            "is; give that user the right to read and write there, or set LOGGED_STORE_BASE_DIR on "
            "the node, or job.logged.store.base.dir, to a directory where it has it"
        )
    if number in _TOO_MANY:
        return DiskForbiddenError(
            f"{path}: {os.strerror(number)}: what is there stays as it is; raise the limit of open "
            "files of the container's user (ulimit -n)"
        )
    return _held(path) if number == errno.EAGAIN else None


def _held(path: Path) -> DiskForbiddenError:
    return DiskForbiddenError(
        f"{path}: another program has the store open, past this project's lock: what is there "
        "stays as it is; end that program"
    )


def _of_text(path: Path, text: str) -> DiskError | None:
    """Return the error in a text: RocksDB's binding raises bare Exception."""
    if any(words in text for words in _ROCKSDB_LOCK):
        return _held(path)
    for number in (*_FULL, *_FORBIDDEN, *_TOO_MANY):
        if os.strerror(number) in text:
            return _of_number(path, number)
    return None
