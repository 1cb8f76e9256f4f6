"""Directories of stores that jobs have left on a host."""

from __future__ import annotations

import os
import time
from pathlib import Path

from homeport.container.progress import offset_file
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.store_meta import META_FILE, StoreMeta, meta_text

_MONTH_S = 30 * 86_400


def store_in(
    base: Path,
    job: str,
    topic_id: str,
    text: str | None = None,
    *,
    log: str = "kafka.log",
    store: str = "counts",
) -> Path:
    """An old directory below the folder ``job``, whose own file names ``log`` with that id.

    ``text``: what that file has in place of it.
    """
    path = base / job / store / "Partition_0"
    path.mkdir(parents=True)
    for folder in (path, path.parent, base / job):
        folder.chmod(0o700)
    meta = StoreMeta(f"{log} partition 0", topic_id, (), "g", ClockReading(0))
    content = offset_file.encode(meta_text(meta)) if text is None else text.encode()
    (path / META_FILE).write_bytes(content)
    then = time.time() - _MONTH_S
    os.utime(path / META_FILE, (then, then))
    return path
