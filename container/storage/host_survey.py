"""Reads the state directories of this host, without their locks."""

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from homeport.config.errors import StoreError, WireError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.adjunct import recovery
from homeport.container.adjunct.recovery import META_FILE as ADJUNCT_META
from homeport.container.progress import offset_file, store_meta
from homeport.container.progress.deleted_directories import StoreSource
from homeport.container.progress.host_directories import checkpointed
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import LocalState
from homeport.container.progress.store_meta import META_FILE as STORE_META
from homeport.container.storage.directory import DirectoryFiles
from homeport.container.storage.directory_lock import LOCK_FILE, Holder, lock_holder
from homeport.container.storage.storage_engines import persistent_engine
from homeport.container.storage.task_store import found_files
from homeport.job_coordinator.model.job_model import TaskModel

_BLOCK_BYTES = 512


@dataclass(frozen=True, slots=True)
class Extent:
    """What a directory takes: its files, bytes on the disk, and its newest change.

    ``links``: ((device, inode), names it has, bytes on the disk) per file.
    """

    files: int
    size_bytes: int
    newest_ms: int
    links: tuple[tuple[tuple[int, int], int, int], ...]


@dataclass(frozen=True, slots=True)
class FoundDirectory:
    """One ``<store>/<task>`` below a job's folder."""

    path: Path
    name: PurePosixPath
    extent: Extent
    holder: Holder | None


def found_directories(folder: Path) -> Iterator[FoundDirectory]:
    """Yield every directory of a store in a job's ``folder``, by name; none without a folder.

    Raises:
        StoreError: a folder may not be read.
    """
    if not folder.is_dir():
        return
    for store in folders_in(folder):
        for task in folders_in(store):
            name = PurePosixPath(store.name, task.name)
            yield FoundDirectory(task, name, extent_of(task), lock_holder(task))


def folders_in(path: Path) -> list[Path]:
    """Return the folders of jobs, stores or tasks in ``path``; StoreError: it may not be read."""
    try:
        entries = list(os.scandir(path))
    except OSError as error:
        raise StoreError(f"{path}: it cannot be read: {error.strerror}") from None
    # What begins with a dot is no store: the history of runs.
    names = sorted(
        e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")
    )
    return [path / name for name in names]


def samzas_checkpoints(stores: Iterable[Path]) -> list[Path]:
    """Return the directories of Samza's checkpoints beside the task directories ``stores``.

    A task ``eu-2026-11`` has a name as a checkpoint of a task ``eu`` has: a directory with our lock
    file is that of a task, which may be another container's.

    StoreError: a folder may not be read.
    """
    tasks: dict[Path, set[str]] = {}
    for path in stores:
        tasks.setdefault(path.parent, set()).add(path.name)
    return [
        found
        for folder, names in tasks.items()
        for found in folders_in(folder)
        if checkpointed(found.name) in names
        and found.name not in names
        and not os.access(found / LOCK_FILE, os.F_OK)
    ]


def extent_of(directory: Path) -> Extent:
    """Return what ``directory`` takes; files that vanish meanwhile are left out.

    The lock file makes it no newer.

    Raises:
        StoreError: it may not be read.
    """
    links, newest_ns = [], 0
    for parent, _, names in os.walk(directory, onerror=_unreadable):
        for name in names:
            try:
                stat = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - a Path each is slow
            except FileNotFoundError:
                continue
            links.append(((stat.st_dev, stat.st_ino), stat.st_nlink, stat.st_blocks * _BLOCK_BYTES))
            if name != LOCK_FILE:
                newest_ns = max(newest_ns, stat.st_mtime_ns)
    if not newest_ns:
        newest_ns = directory.stat().st_mtime_ns
    size = sum(size for _, _, size in links)
    return Extent(len(links), size, newest_ns // 1_000_000, tuple(links))


def _unreadable(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return  # removed meanwhile
    raise StoreError(f"{error.filename}: it cannot be read: {error.strerror}")


def offset_texts(directory: Path) -> dict[str, str | None]:
    """Return {name of a file of offsets: its text; None: it is not there, or damaged}."""
    found: dict[str, str | None] = {}
    for name in offset_file.READ_ORDER:
        try:
            found[name] = offset_file.decode((directory / name).read_bytes())
        except (OSError, WireError):
            found[name] = None
    return found


def source_of(path: Path) -> StoreSource:
    """Return the log that fills the store in the directory ``path``, by the file that names it."""
    files = DirectoryFiles(path)
    try:
        logged = files.read(STORE_META, store_meta.parse_meta)
        if logged is not None:
            stream = logged.changelog.rpartition(" partition ")[0]
            return _source(STORE_META, logged.version, store_meta.FORMAT, stream, logged.topic_id)
        filled = files.read(ADJUNCT_META, recovery.parse_meta)
        if filled is not None:
            owner = filled.version, recovery.FORMAT, filled.stream, filled.topic_id
            return _source(ADJUNCT_META, *owner)
    except (StoreError, WireError) as error:
        return StoreSource(fault=str(error))
    return StoreSource(fault=f"it has neither {STORE_META} nor {ADJUNCT_META}: it may be anything")


def _source(file: str, version: int, known: int, stream: str, topic_id: str) -> StoreSource:
    if version == known and stream and topic_id:
        return StoreSource(stream, topic_id)
    return StoreSource(fault=f"{file} has format {version}, and {known} is what is read here")


def state_found(path: Path, store: StoreConfig, task: TaskModel) -> LocalState:
    """Return what a container would find in the directory ``path`` of the store and ``task``.

    The store is read as far as it is on the disk.
    """
    files = DirectoryFiles(path)
    if store.changelog is None or not (store.is_persistent and files.has_content):
        return LocalState(exists=False)
    kind = persistent_engine(store.factory)
    fault, local = found_files(store.changelog, task, files, kind)
    try:
        with closing(kind.view(path)) as view:
            position = view.position
    except StoreError as error:
        fault = fault or Refusal(RefusalReason.DAMAGED_STORE, str(error))
        return replace(local, fault=fault)
    return replace(local, fault=fault, position=position)
