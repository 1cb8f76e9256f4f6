"""Removes what a job left behind on a host: judged and removed under the directory's own lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from homeport.container.progress.host_directories import (
    DirectoryKind,
    Owner,
    Verdict,
    freed_bytes,
    judged,
    kind_of,
)
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import DirectoryHeldError
from homeport.container.storage.host_survey import Extent, FoundDirectory, extent_of

Owners = Callable[[], Mapping[PurePosixPath, Owner]]
"""Whose the directories are, by what the coordinator stream says at the call."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a directory is, and what becomes of it."""

    found: FoundDirectory
    kind: DirectoryKind
    owner: Owner | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Limit:
    """How old the newest file of what is removed is at least, and the present time."""

    age_ms: int
    now_ms: int


def judge(found: FoundDirectory, owners: Mapping[PurePosixPath, Owner], limit: Limit) -> Judgement:
    """Return what becomes of ``found`` as it was seen."""
    return _judged(found, owners, limit, found.extent, is_held=found.holder is not None)


def _judged(
    found: FoundDirectory,
    owners: Mapping[PurePosixPath, Owner],
    limit: Limit,
    extent: Extent,
    *,
    is_held: bool,
) -> Judgement:
    owner, kind = owners.get(found.name), kind_of(found.name, owners)
    age_ms = limit.now_ms - extent.newest_ms
    verdict = judged(kind, owner, is_held=is_held, age_ms=age_ms, limit_ms=limit.age_ms)
    return Judgement(found, kind, owner, verdict)


def remove(found: FoundDirectory, owners: Owners, limit: Limit) -> tuple[Judgement, int]:
    """Remove ``found`` if that is still allowed, judged again under its lock; return bytes freed.

    A container that opens it meanwhile waits for the lock, finds that the directory is no longer
    the one that it has locked, and makes a new one.

    Raises:
        StoreError: it, or something in it, cannot be removed.
    """
    try:
        directory = StoreDirectory(found.path, below=found.path.parents[1])
    except DirectoryHeldError:
        return _judged(found, owners(), limit, found.extent, is_held=True), 0
    try:
        extent = extent_of(found.path)
        judgement = _judged(found, owners(), limit, extent, is_held=False)
        if not judgement.verdict.is_removable:
            return judgement, 0
        directory.remove()
    finally:
        directory.release()
    with contextlib.suppress(OSError):
        found.path.parent.rmdir()  # the store's folder, if that was its last task
    return judgement, freed_bytes(extent.links)
