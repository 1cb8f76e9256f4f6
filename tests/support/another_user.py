"""What this process may not touch, also where it is root's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

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


def give_away(folder: Path) -> None:
    """``folder`` and all in it is of the user that ``unprivileged`` becomes."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)


@contextmanager
def without_mask() -> Iterator[None]:
    """In the block what this process makes has the mode that it asks for."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder that every user may pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def another_user() -> Iterator[None]:
    """In the block this process is of another user than what the test has made before.

    Root becomes an unprivileged user. Without root only what asks for the user sees another one.
    """
    was = os.geteuid()
    if was == 0:
        with unprivileged():
            yield
    else:
        with patch.object(os, "geteuid", lambda: was + 1):
            yield


@contextmanager
def shared_base() -> Iterator[Path]:
    """A new folder of mode 1777, as LOGGED_STORE_BASE_DIR is where jobs of many users are."""
    with open_folder() as folder:
        folder.chmod(0o1777)
        yield folder
