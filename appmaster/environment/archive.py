"""The environment as one tar.gz, which is unpacked on each node.

It is a chain of gzip members: dependencies first, which are kept, and homeport last. After a change
of homeport alone only the last is made again.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from homeport.appmaster.environment.tree import files_of

_LEVEL = 1
"""Of gzip: most of it are jars and libraries, which a higher level hardly makes smaller."""


def write(tree: Path, target: Path, kept: Path, is_own: Callable[[Path], bool]) -> None:
    """The archive is at its place; what is half written has another name.

    Args:
        tree: the unpacked environment.
        target: where the archive is put.
        kept: where the member of all files but one's own is, or is put.
        is_own: whether a file is homeport's own.
    """
    files = list(files_of(tree))
    if not kept.exists():
        partial = kept.with_suffix(".partial")
        _write_member(tree, (f for f in files if not is_own(f)), partial, is_last=False)
        partial.replace(kept)
    partial = target.with_suffix(".partial")
    _write_member(tree, filter(is_own, files), partial, is_last=True)
    own = partial.read_bytes()
    shutil.copyfile(kept, partial)
    with partial.open("ab") as file:
        file.write(own)
    partial.replace(target)


def _write_member(tree: Path, files: Iterable[Path], target: Path, *, is_last: bool) -> None:
    with gzip.GzipFile(target, "wb", compresslevel=_LEVEL, mtime=0) as compressed:
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
