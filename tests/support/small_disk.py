"""A folder that is a small disk of its own, and how it gets full."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

DISK_BYTES = 64 * 1024 * 1024


@contextlib.contextmanager
def small_disk(folder: Path, there: Sequence[str] = ()) -> Iterator[None]:
    """The folder is a disk of its own, of DISK_BYTES.

    ``there``: what runs a command on the machine that has the folder; none: this one.
    """
    size = f"size={DISK_BYTES}"
    mounted = subprocess.run(
        [*there, "/bin/mount", "-t", "tmpfs", "-o", size, "homeport-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"this user may mount nothing: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run([*there, "/bin/umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """The folder's disk has no room left; the file that takes it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return filler
