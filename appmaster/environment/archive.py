"""The environment as one tar.gz, which is unpacked on each node.

It is a chain of gzip members: jars, other dependencies, which are both kept, and homeport last.
After a change of homeport alone only the last is made again. Jars are compressed already; a second
time would cost each node seconds.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from homeport.appmaster.environment.tree import files_of

_STORED, _FAST = 0, 1


def write(tree: Path, target: Path, kept: Path, is_own: Callable[[Path], bool]) -> None:
    """The archive is at its place; what is half written has another name.

    Args:
        tree: the unpacked environment.
        target: where the archive is put.
        kept: where the members of all files but one's own are, or are put.
        is_own: whether a file is homeport's own.
    """
    files = list(files_of(tree))
    if not kept.exists():
        jars = [f for f in files if f.suffix == ".jar"]
        others = [f for f in files if f.suffix != ".jar" and not is_own(f)]
        partial = kept.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        _append(partial, tree, jars, _STORED)
        _append(partial, tree, others, _FAST)
        partial.replace(kept)
    partial = target.with_suffix(".partial")
    shutil.copyfile(kept, partial)
    _append(partial, tree, filter(is_own, files), _FAST, is_last=True)
    partial.replace(target)


def _append(
    target: Path, tree: Path, files: Iterable[Path], level: int, *, is_last: bool = False
) -> None:
    """One more member."""
    with gzip.GzipFile(target, "ab", compresslevel=level, mtime=0) as compressed:
        archive = tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closing it writes the end of the whole archive
        for path in files:
            archive.add(path, path.relative_to(tree).as_posix(), filter=_plain)
        if is_last:
            archive.close()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the owner; with whole seconds, by which Python knows its byte code."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry
