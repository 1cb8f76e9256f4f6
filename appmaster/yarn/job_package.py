"""The job's own code: a folder, archive or Python file that YARN localises as ``__package``.

Source: Samza 1.8, which localises a job's package under this name.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from homeport.appmaster.yarn.hadoop_files import HadoopFiles
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, WireError, in_one_line
from homeport.job_coordinator.model.job_package import (
    require_one_place_each,
    require_unpacked_alike,
)

PACKAGE_NAME = "__package"

_ARCHIVE_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_PYTHON_SUFFIX = ".py"
MOST_BYTES = 2 * 1024**3
MOST_FILES = 50_000
"""A folder with more holds other things than code: its name is wrong, or it has libraries."""

_EXCLUDED = frozenset(
    {"__pycache__", ".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
# Zip knows no time before 1980; one fixed time makes equal folders equal archives.
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
_PERMISSIONS = 0o777
_BAD_NAME = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
"""A lone surrogate is Python's form of a byte that is not UTF-8."""
_ALONE = "let the folder have the job's code alone; libraries are for the environment"


@dataclass(frozen=True, slots=True)
class PreparedPackage:
    """A package that can be shipped.

    ``archive``: path or URL of the file to localise. ``import_path``: the folder where it is
    unpacked here, as on the hosts, for PYTHONPATH. ``zip_path``: the file here, if it is a zip.
    """

    archive: Path | str
    import_path: Path
    zip_path: Path | None


def package_path(value: str | None, *, may_be_none: bool = False) -> Path | str | None:
    """Return the path in ``yarn.package.path``: a folder, archive or file that exists.

    None where the key is missing and ``may_be_none``, as for a job of SQL alone. A URL of the
    cluster's file system, such as ``hdfs:``, is returned as it is; ``prepared`` checks it.

    ConfigError: the key is missing, or does not name such a file or folder.
    """
    if value is None:
        if may_be_none:
            return None
        remedy = "let it name the folder, zip, tar.gz or Python file with the job's code"
        raise _refused(None, "it is required", remedy)
    parts = urlsplit(value)
    if parts.scheme not in {"", "file"}:
        if not value.endswith(_ARCHIVE_SUFFIXES):
            rule = "in the cluster's file system it must be a .zip, .tar.gz or .tgz"
            raise _refused(value, rule, "pack it as one of these")
        return value
    path = Path(unquote(parts.path) if parts.scheme else value).expanduser().absolute()
    if not path.exists():
        remedy = "correct the path or build the package"
        raise _refused(value, f"{path} does not exist", remedy)
    if path.is_file() and not path.name.endswith((*_ARCHIVE_SUFFIXES, _PYTHON_SUFFIX)):
        rule = "it must be a folder, .py, .zip, .tar.gz or .tgz"
        raise _refused(value, rule, "pack it as one of these")
    return path


@contextlib.contextmanager
def prepared(
    place: Path | str | None, open_files: Callable[[], AbstractContextManager[HadoopFiles]]
) -> Iterator[PreparedPackage]:
    """Yield the package, packed and unpacked; temporary files are removed afterwards.

    ``place``: from ``package_path``; None: a package without code. ``open_files`` opens the
    cluster's file system, for a package that is there.

    ConfigError: the archive does not exist, or archive or folder cannot be read.
    UnavailableError: the cluster's file system does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="homeport-package-") as name:
        folder = Path(name)
        if place is None:
            place = folder / "no-code"
            place.mkdir()
            # Some programs do not expect an archive without entries.
            (place / "README").write_text("This job has no code of its own.\n", encoding="utf-8")
        if isinstance(place, str):
            fetched = _fetched(place, folder, open_files)
            yield replace(_prepared(fetched, place, folder), archive=place)
        else:
            yield _prepared(place, str(place), folder)


def _fetched(
    url: str, folder: Path, open_files: Callable[[], AbstractContextManager[HadoopFiles]]
) -> Path:
    target = folder / url.rpartition("/")[2]
    with open_files() as files:
        if files.facts(url) is None:
            remedy = "correct the URL or upload the package"
            raise _refused(url, "there is no such file", remedy)
        files.get(url, target)
    return target


def _prepared(path: Path, named: str, folder: Path) -> PreparedPackage:
    """Return the package at ``path``, ``named`` by the user; ``folder`` gets temporary files."""
    try:
        if path.name.endswith(_PYTHON_SUFFIX):
            alone = folder / "alone"
            alone.mkdir()
            shutil.copy2(path, alone / path.name)
            path = alone
        unpacked = folder / "unpacked" / path.name
        if path.is_dir():
            made = zip_folder(path, folder / "package.zip")
            return PreparedPackage(made, unpack_zip(made, unpacked), made)
        if path.name.endswith(".zip"):
            return PreparedPackage(path, unpack_zip(path, unpacked), path)
        return PreparedPackage(path, unpack_tar(path, unpacked), None)
    except HomeportError:
        raise
    except Exception as e:  # noqa: BLE001 - each way to compress has errors of its own
        rule = f"it cannot be read ({in_one_line(e)})"
        raise _refused(named, rule, "build the package again") from None


def zipped(package: PreparedPackage) -> bytes:
    """Return the package as a zip: a zip as it is, equal folders as equal bytes."""
    if package.zip_path is not None:
        return package.zip_path.read_bytes()
    with tempfile.TemporaryDirectory(prefix="homeport-upgrade-") as folder:
        return zip_folder(package.import_path, Path(folder) / "package.zip").read_bytes()


def digest_of(package: PreparedPackage) -> str:
    """Return the name of the package in an upgrade: the SHA-256 of its zip."""
    if package.zip_path is None:
        return package_name(zipped(package))
    with package.zip_path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def package_name(data: bytes) -> str:
    """Return the name of the package in coordinator stream, AM and launchers."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class _File:
    name: PurePosixPath
    path: Path
    seen: tuple[int, int, int, int, int]


def zip_folder(folder: Path, target: Path) -> Path:
    """Zip the files below ``folder`` into ``target``, in sorted order and without byte code.

    For a link to a file in the folder, the file's content is shipped. Linked folders and links that
    leave the folder are refused: a check would find them in the folder, but a container would not
    find them in the zip. Pipes and names that are not UTF-8 are refused too, since no zip has them.

    ConfigError: the folder has something refused, changes meanwhile, or is too large.
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
    """Unpack the zip ``archive`` into ``folder``, as a container gets it.

    ConfigError: hosts would unpack it otherwise, or it is too large.
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
    """Unpack the tar.gz ``archive`` into ``folder``, as a container gets it; errors as above.

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
    """Return all files below ``folder``, in the zip's order; ConfigError as in ``zip_folder``."""
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


def _refused(place: Path | str | None, rule: str, remedy: str) -> ConfigError:
    value = None if place is None else str(place)
    return keys.YARN_PACKAGE_PATH.error(value, rule, remedy)
