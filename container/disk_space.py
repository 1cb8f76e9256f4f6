"""A disk without room: told in one line, and never taken for a damaged store."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homeport.config.errors import StoreError

_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = tuple(os.strerror(number) for number in _NUMBERS)


class DiskFullError(StoreError):
    """What is on the disk is whole; there is no room for more."""


@contextmanager
def room_on_disk_of(path: Path) -> Iterator[None]:
    """What the block does needs room on the disk of ``path``.

    Raises:
        DiskFullError: there is none. All other errors of the block pass as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NUMBERS:
            raise _disk_full(path) from None
        raise
    except Exception as error:
        # RocksDB's binding raises bare Exception; its text is the system's.
        if any(words in str(error) for words in _WORDS):
            raise _disk_full(path) from None
        raise


def _disk_full(path: Path) -> DiskFullError:
    existing = next(p for p in (path, *path.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    return DiskFullError(
        f"{path}: no room is left on its disk ({free} bytes free); make room there, "
        "or set LOGGED_STORE_BASE_DIR on the node, or job.logged.store.base.dir, to a larger disk"
    )
