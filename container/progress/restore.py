"""What one store must read of its changelog before it may be used.

PURE. Source: design, section 9, "a task that came home reads zero older records"; safety S1 to S3.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.container.progress.store_meta import (
    Expectation,
    StoreMeta,
    meta_fault,
    stale_fault,
)
from homeport.job_coordinator.http.messages import Restored, RestoreKind


@dataclass(frozen=True, slots=True)
class LocalState:
    """What was found in a store's directory.

    ``position`` is the changelog offset under the reserved key: the store holds everything up to
    it. ``offset_file`` is what OFFSET says, ``meta`` what STORE-META does (None: there is none, as
    in a directory of Samza's). ``fault`` says why one of them cannot be read.
    """

    exists: bool
    position: int | None = None
    offset_file: int | None = None
    fault: str | None = None
    meta: StoreMeta | None = None


@dataclass(frozen=True, slots=True)
class ChangelogRange:
    """Offsets of a changelog partition: the oldest that is kept; the head, one past the last."""

    oldest: int
    head: int


@dataclass(frozen=True, slots=True)
class ChangelogTopic:
    """What the broker says of a changelog: its id, and how long it keeps deletions."""

    topic_id: str
    delete_retention_ms: int


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Read [start, head), after the directory was emptied where ``rebuild`` is true.

    ``reason`` says in words why all is read; None where the local state is good.
    """

    start: int
    head: int
    rebuild: bool = False
    reason: str | None = None


def plan_restore(
    local: LocalState, changelog: ChangelogRange, expected: Expectation
) -> RestorePlan:
    """Only what follows the store's own position where that can be trusted, else everything."""
    if not local.exists:
        return RestorePlan(changelog.oldest, changelog.head, reason="no state on this host")
    fault = local.fault or _foreign(local, expected) or _fault(local, changelog)
    if fault is None and local.meta is not None and local.position is not None:
        fault = stale_fault(local.meta, expected, local.position, changelog.head)
    if fault is not None or local.position is None:
        return RestorePlan(changelog.oldest, changelog.head, rebuild=True, reason=fault)
    return RestorePlan(local.position + 1, changelog.head)


def restored(plan: RestorePlan, records: int) -> Restored:
    """What is reported of a restore that read ``records`` records."""
    reason = plan.reason if plan.rebuild else None
    if records == 0:
        return Restored(RestoreKind.NONE, None, None, 0, reason)
    kind = RestoreKind.TAIL if plan.reason is None else RestoreKind.FULL
    return Restored(kind, plan.start, plan.head - 1, records, reason)


def _foreign(local: LocalState, expected: Expectation) -> str | None:
    # Before any offset is looked at: those of another topic mean nothing.
    return None if local.meta is None else meta_fault(local.meta, expected)


def _fault(local: LocalState, changelog: ChangelogRange) -> str | None:
    position = local.position
    if position is None:
        return "the store names no changelog position"
    if local.offset_file is None:
        return "OFFSET is missing"
    if local.offset_file > position:
        return f"OFFSET says {local.offset_file} but the store holds only {position}: damaged"
    if position >= changelog.head:
        return f"position {position} is beyond the changelog's end {changelog.head}"
    if position + 1 < changelog.oldest:
        return f"position {position} is before the changelog's oldest offset {changelog.oldest}"
    return None
