"""What this process may not touch, also where it is root's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """In the block this process has no rights of root: root switches to an unprivileged user."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder that every user may pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
