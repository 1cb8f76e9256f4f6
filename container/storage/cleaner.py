"""Removes what a job left behind on a host: judged and removed under the directory's own lock."""

import contextlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from homeport.config.errors import StoreError
from homeport.container.progress.deleted_directories import (
    DeletedTopics,
    StoreSource,
    deleted_verdict,
    kind_by,
    orphan_verdict,
)
from homeport.container.progress.host_directories import (
    IN_USE,
    DirectoryKind,
    Owner,
    Verdict,
    freed_bytes,
    judged,
    kind_of,
)
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import DirectoryHeldError
from homeport.container.storage.host_survey import FoundDirectory, extent_of, folders_in, source_of
from homeport.job_coordinator.history.writer import OWN_NAME

Owners = Callable[[], Mapping[PurePosixPath, Owner]]
"""Returns the owner of each directory, from the coordinator stream as it is at the call."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a directory is, and what becomes of it."""

    found: FoundDirectory
    kind: DirectoryKind
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Limit:
    """The least age of the newest file in a directory that is removed, and the present time."""

    age_ms: int
    now_ms: int


def judge(found: FoundDirectory, owners: Mapping[PurePosixPath, Owner], limit: Limit) -> Judgement:
    """Return what becomes of ``found`` as it was seen."""
    owner, kind = owners.get(found.name), kind_of(found.name, owners)
    is_held, age_ms = found.holder is not None, limit.now_ms - found.extent.newest_ms
    verdict = judged(kind, owner, is_held=is_held, age_ms=age_ms, limit_ms=limit.age_ms)
    return Judgement(found, kind, verdict)


Judge = Callable[[FoundDirectory], Judgement]
"""Returns what becomes of a directory."""


def judge_by(owners: Owners, limit: Limit) -> Judge:
    """Return what judges by the owners of now."""
    now = owners()
    return lambda found: judge(found, now, limit)


def judge_deleted(topics: DeletedTopics, limit: Limit) -> Judge:
    """Return what judges directories of a job that was deleted, by the files in them."""

    def verdict(source: StoreSource, found: FoundDirectory, age_ms: int) -> Verdict:
        is_held = found.holder is not None
        return deleted_verdict(
            source, topics, is_held=is_held, age_ms=age_ms, limit_ms=limit.age_ms
        )

    return _judge_by_source(verdict, limit)


def judge_orphans(topic_id: Callable[[str], str | None], limit: Limit) -> Judge:
    """Return what judges directories of a job that nothing knows, by the files in them.

    ``topic_id``: returns the id of a topic now, by ``system.stream``; None: there is none.
    """

    def verdict(source: StoreSource, found: FoundDirectory, age_ms: int) -> Verdict:
        is_held = found.holder is not None
        now = None if source.fault is not None else topic_id(source.stream)
        return orphan_verdict(source, now, is_held=is_held, age_ms=age_ms, limit_ms=limit.age_ms)

    return _judge_by_source(verdict, limit)


def _judge_by_source(
    verdict: Callable[[StoreSource, FoundDirectory, int], Verdict], limit: Limit
) -> Judge:
    def judged_now(found: FoundDirectory) -> Judgement:
        source, age_ms = source_of(found.path), limit.now_ms - found.extent.newest_ms
        return Judgement(found, kind_by(source), verdict(source, found, age_ms))

    return judged_now


def remove(found: FoundDirectory, judges: Callable[[], Judge]) -> tuple[Judgement, int]:
    """Remove ``found`` if that is still allowed, judged again under its lock; return bytes freed.

    ``judges``: returns what judges by the evidence of the time of the call. A container that opens
    it meanwhile waits for the lock, finds that the directory is no longer the one that it has
    locked, and makes a new one.

    Raises:
        StoreError: it, or something in it, cannot be removed.
    """
    try:
        directory = StoreDirectory(found.path, below=found.path.parents[1])
    except DirectoryHeldError:
        return replace(judges()(found), verdict=IN_USE), 0
    try:
        # With our own lock file: only the judgement is by that, and not what is shown of it.
        now = replace(found, extent=extent_of(found.path), holder=None)
        judgement = replace(judges()(now), found=found)
        if not judgement.verdict.is_removable:
            return judgement, 0
        directory.remove()
    finally:
        directory.release()
    with contextlib.suppress(OSError):
        found.path.parent.rmdir()  # the store's folder, if that was its last task
    return judgement, freed_bytes(now.extent.links)


def remove_emptied(folder: Path) -> bool:
    """Remove the folder of a deleted job, if only its history is left; return whether it is gone.

    StoreError: it cannot be removed.
    """
    if not folder.is_dir() or folder.is_symlink():
        return False
    for store in folders_in(folder):
        with contextlib.suppress(OSError):
            store.rmdir()
    try:
        if any(entry.name != OWN_NAME for entry in folder.iterdir()):
            return False
        history = folder / OWN_NAME
        if history.exists():
            shutil.rmtree(history)
        folder.rmdir()  # not with what a container makes there meanwhile
    except OSError as error:
        raise StoreError(f"{folder}: it cannot be removed: {error.strerror}") from None
    return True
