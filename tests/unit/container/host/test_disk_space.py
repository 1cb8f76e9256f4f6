"""A full disk is reported as such, whichever process meets it."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from homeport.container.host.disk_space import DiskFullError, is_disk_full, room_on_disk_of


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        Exception("IO error: No space left on device: While appending to file: /x/000012.sst"),
    ],
)
def test_a_full_disk_gives_one_line(tmp_path: Path, error: Exception) -> None:
    """Directory, free bytes and what to do; also of a directory that could not be made."""
    path = tmp_path / "absent" / "store"
    pattern = rf"{re.escape(str(path))}: no room .*\([0-9]+ bytes free\); make room there, or .*"
    with pytest.raises(DiskFullError, match=pattern), room_on_disk_of(path):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), ValueError("x")])
def test_other_errors_stay_unchanged(tmp_path: Path, error: Exception) -> None:
    """They are no matter of room."""
    with pytest.raises(type(error)) as raised, room_on_disk_of(tmp_path):
        raise error
    assert raised.value is error


def test_a_full_disk_is_known_behind_what_it_made_fail(tmp_path: Path) -> None:
    """A task's own error may stand before it; of other errors of a file it is none."""
    task = ValueError("a task failed")
    task.__cause__ = DiskFullError("no room")
    assert is_disk_full(task)
    assert is_disk_full(OSError(errno.ENOSPC, "No space left on device"))
    assert not is_disk_full(OSError(errno.EIO, str(tmp_path)))
    assert not is_disk_full(ValueError("a task failed"))
