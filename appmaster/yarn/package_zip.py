"""The zip that is shipped of a folder with the job's code: all of the folder, or one line why not.

A folder has files and folders, and links to files within it, whose content is shipped. What a check
would find in the folder and a container not in the zip is refused: a linked folder, a link that
leaves the folder. So is what no zip has, as a pipe or a name that is no UTF-8.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.model.job_package import (
    require_one_place_each,
    require_unpacked_alike,
)

MOST_BYTES = 2 * 1024**3
MOST_FILES = 50_000
"""A folder with more is none of code: its name is a mistake, or libraries are in it."""

_EXCLUDED = frozenset(
    {"__pycache__", ".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
# Zip knows no time before 1980; one fixed time makes equal folders equal archives.
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
_PERMISSIONS = 0o777
_BAD_NAME = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
"""Half a surrogate is Python's form of a byte that is no UTF-8."""
_ALONE = "let the folder have the job's code alone; libraries are for the environment"


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the folder: where it is read, and as what it was seen."""

    name: PurePosixPath
    path: Path
    seen: tuple[int, int, int, int, int]


def zip_folder(folder: Path, target: Path) -> Path:
    """``target`` holds the files below ``folder`` in sorted order, without byte code.

    Raises:
        ConfigError: the folder has what a zip would not have, changes meanwhile, or is too large.
        OSError: something cannot be read.
    """
    files = _files(folder)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(str(file.name), _ENTRY_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as source:
                found = os.fstat(descriptor)
                entry.external_attr = (found.st_mode & _PERMISSIONS) << 16
                entry.file_size = found.st_size
                if _seen(found) != file.seen:
                    raise _changed(file.path)
                with archive.open(entry, "w") as sink:
                    shutil.copyfileobj(source, sink)
        entries = archive.infolist()
    after = _files(folder)
    if after != files:
        different = set(after) ^ set(files)
        raise _changed(min(file.path for file in different))
    _require_sound(folder, entries)
    return target


def unpack_zip(archive: Path, folder: Path) -> Path:
    """``folder`` holds what a container gets of the zip ``archive``.

    Raises:
        ConfigError: hosts would get something else of it, or it is too large.
        Exception: it cannot be unpacked; each way to compress has errors of its own.
    """
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        _require_sound(archive, entries)
        folder.mkdir(parents=True)
        for entry in entries:
            opened.extract(entry, folder)
    return folder


def unpack_tar(archive: Path, folder: Path) -> Path:
    """``folder`` holds what a container gets of the tar.gz ``archive``; errors as ``unpack_zip``.

    Links within it stay links, as on the hosts.
    """
    with tarfile.open(archive) as opened:
        files = size = 0
        for entry in opened:
            files, size = files + 1, size + entry.size
            if size > MOST_BYTES or files > MOST_FILES:
                rule = f"it has more than {MOST_FILES} entries, or {MOST_BYTES} bytes unpacked"
                raise _refused(archive, rule, _ALONE)
        opened.extractall(folder, filter="data")
    return folder


def _require_sound(place: Path, entries: list[zipfile.ZipInfo]) -> None:
    try:
        if len(entries) > MOST_FILES:
            raise WireError(f"the package has {len(entries)} entries, more than {MOST_FILES}")
        require_one_place_each(entries, MOST_BYTES)
        require_unpacked_alike(entries)
    except WireError as error:
        remedy = "pack files and folders alone, each once, without links"
        raise _refused(place, str(error), remedy) from None


def _files(folder: Path) -> list[_File]:
    """All files below ``folder``, in the order of the zip; ConfigError as of ``zip_folder``."""
    root = folder.resolve()
    found: list[_File] = []
    size = 0
    for file in _walked(root, PurePosixPath()):
        found.append(file)
        size += file.seen[2]
        if len(found) > MOST_FILES:
            raise _refused(folder, f"it has more than {MOST_FILES} files", _ALONE)
        if size > MOST_BYTES:
            raise _refused(folder, f"its files have more than {MOST_BYTES} bytes", _ALONE)
    return sorted(found, key=lambda file: file.name.parts)


def _walked(root: Path, below: PurePosixPath) -> Iterator[_File]:
    with os.scandir(root / below) as entries:
        for entry in entries:
            path, name = root / below / entry.name, below / entry.name
            if entry.name in _EXCLUDED:
                continue
            if _BAD_NAME.search(entry.name):
                shown = Path(ascii(str(path))[1:-1])
                rule = "its name must be UTF-8, without control characters and backslashes"
                raise _refused(shown, rule, "rename it")
            if entry.is_symlink():
                yield _linked(root, path, name)
            elif entry.is_dir():
                yield from _walked(root, name)
            else:
                yield _regular(path, name, entry.stat(follow_symlinks=False))


def _linked(root: Path, link: Path, name: PurePosixPath) -> _File:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        raise _refused(link, "it is a link to nowhere", "remove it") from None
    if not target.is_relative_to(root):
        rule = f"it is a link out of the package, to {target}"
        raise _refused(link, rule, "put a copy in its place, or remove it")
    if target.is_dir():
        rule = f"it is a link to a folder, {target}, which no zip has"
        raise _refused(link, rule, "put a copy in its place, or remove it")
    return _regular(target, name, target.stat())


def _regular(path: Path, name: PurePosixPath, found: os.stat_result) -> _File:
    if not stat.S_ISREG(found.st_mode):
        rule = "it is no file, folder or link, but a pipe, socket or device"
        raise _refused(path, rule, "remove it")
    return _File(name, path, _seen(found))


def _seen(found: os.stat_result) -> tuple[int, int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def _changed(path: Path) -> ConfigError:
    return _refused(path, "it has changed while it was packed", "try again when no program writes")


def _refused(path: Path, rule: str, remedy: str) -> ConfigError:
    return ConfigError(keys.YARN_PACKAGE_PATH.name, str(path), rule, remedy)
