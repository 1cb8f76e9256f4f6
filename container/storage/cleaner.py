"""Removes what a job left behind on a host: judged and removed under the directory's own lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

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
from homeport.container.storage.host_survey import FoundDirectory, extent_of

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
        return replace(judge(found, owners(), limit), verdict=IN_USE), 0
    try:
        # With our own lock file: only the judgement is by that, and not what is shown of it.
        now = replace(found, extent=extent_of(found.path), holder=None)
        judgement = replace(judge(now, owners(), limit), found=found)
        if not judgement.verdict.is_removable:
            return judgement, 0
        directory.remove()
    finally:
        directory.release()
    with contextlib.suppress(OSError):
        found.path.parent.rmdir()  # the store's folder, if that was its last task
    return judgement, freed_bytes(now.extent.links)
