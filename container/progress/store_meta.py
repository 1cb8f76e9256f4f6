"""STORE-META: what a store's directory says of itself, and whether the store may be used by it.

PURE. The file has the form of OFFSET, a checksum and a text; the text is a JSON object. A directory
without the file, as Samza's are, is judged by offsets alone.

A standby's directory says what its active task's says, so that each can take the other's over.

Source: safety S2 (how long the store has not stood at its changelog's head is
kept here, as file times prove nothing), safety S3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.job_coordinator.model.job_model import TaskModel

META_FILE = "STORE-META"
FORMAT = 2

_MARKER = 1
_RENEWALS = 10


@dataclass(frozen=True, slots=True)
class StoreMeta:
    """Whose state a directory holds.

    ``changelog`` is system, stream and partition in words; ``topic_id`` is the broker's id of the
    topic, which a topic recreated does not get again. ``ssps`` are the task's, in words,
    sorted. ``at_head``: when the store was last known to hold all that the changelog held.
    ``delete_retention_ms``: how long the changelog kept deletions by then; None where nothing says
    so. ``forms``: the serdes of keys and of values, each with the fingerprint of its schema; None
    where nothing says so, as in a directory of an older version.
    """

    changelog: str
    topic_id: str
    ssps: tuple[str, ...]
    grouper: str
    at_head: ClockReading
    delete_retention_ms: int | None = None
    version: int = FORMAT
    forms: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a good directory's STORE-META says now, and how long the changelog keeps deletions.

    ``meta.at_head`` is the present time.
    """

    meta: StoreMeta
    delete_retention_ms: int


def meta_text(meta: StoreMeta) -> str:
    """The text of STORE-META."""
    fields = {
        "format": meta.version,
        "changelog": meta.changelog,
        "topic-id": meta.topic_id,
        "ssps": list(meta.ssps),
        "grouper": meta.grouper,
        "at-head-ms": meta.at_head.wall_ms,
        "boot-id": meta.at_head.boot_id,
        "boot-ms": meta.at_head.boot_ms,
    }
    if meta.delete_retention_ms is not None:
        fields["delete-retention-ms"] = meta.delete_retention_ms
    if meta.forms is not None:
        fields["forms"] = list(meta.forms)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parse_meta(text: str) -> StoreMeta:
    """What the text of STORE-META says; of a later format only its number is sure to be right.

    Raises:
        WireError: it is not the text of a STORE-META.
    """
    try:
        found = json.loads(text)
        version = whole(found["format"])
        kept_ms, forms = found.get("delete-retention-ms"), found.get("forms")
        if version != FORMAT:
            return StoreMeta("", "", (), "", ClockReading(0), version=version)
        return StoreMeta(
            changelog=_text(found["changelog"]),
            topic_id=_text(found["topic-id"]),
            ssps=tuple(_text(ssp) for ssp in found["ssps"]),
            grouper=_text(found["grouper"]),
            at_head=ClockReading(
                whole(found["at-head-ms"]), _text(found["boot-id"]), whole(found["boot-ms"])
            ),
            delete_retention_ms=None if kept_ms is None else whole(kept_ms),
            forms=None if forms is None else (_text(forms[0]), _text(forms[1])),
        )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise WireError(f"it holds {text[:200]!r}, which is not a STORE-META") from None


def meta_of(
    changelog: SystemStream, topic_id: str, task: TaskModel, grouper: str, at_head: ClockReading
) -> StoreMeta:
    """What the STORE-META of a store of ``task`` says; of a standby it is its active task's.

    A standby task has the inputs and the changelog partition of its active one; only its own name
    differs, and that is not written.
    """
    return StoreMeta(
        changelog=f"{changelog} partition {task.changelog_partition}",
        topic_id=topic_id,
        ssps=tuple(sorted(str(ssp) for ssp in task.system_stream_partitions)),
        grouper=grouper,
        at_head=at_head,
    )


def meta_fault(found: StoreMeta, expected: Expectation) -> Refusal | None:
    """Why a store with this STORE-META is not the one that is wanted; None where it is."""
    wanted = expected.meta
    if found.version != wanted.version:
        return Refusal(
            RefusalReason.OTHER_FORMAT,
            f"STORE-META has format {found.version}, and {wanted.version} is what is read here",
        )
    if found.changelog != wanted.changelog:
        return Refusal(
            RefusalReason.FOREIGN,
            f"the store is of changelog {found.changelog}, not of {wanted.changelog}",
        )
    if found.topic_id != wanted.topic_id:
        return Refusal(
            RefusalReason.RECREATED,
            f"the changelog was recreated: its topic id is {wanted.topic_id}, "
            f"the store's is {found.topic_id}",
        )
    story = next(_differences(found, wanted), None)
    return None if story is None else Refusal(RefusalReason.FOREIGN, story)


def _differences(found: StoreMeta, wanted: StoreMeta) -> Iterator[str]:
    if found.grouper != wanted.grouper:
        yield f"the store was grouped by {found.grouper}, the task is by {wanted.grouper}"
    if found.ssps != wanted.ssps:
        yield f"the store is of input {_listed(found.ssps)}, the task's is {_listed(wanted.ssps)}"
    if found.forms and wanted.forms and found.forms != wanted.forms:
        yield (
            f"keys and values of the store are {' and '.join(found.forms)}, those of the changelog "
            f"{' and '.join(wanted.forms)}"
        )


def stale_fault(
    at_head: ClockReading,
    expected: Expectation,
    position: int,
    head: int,
    kept_ms: int | None = None,
) -> Refusal | None:
    """Judge a store at ``position`` of its changelog as ``missed_deletions`` does.

    Where no record can have been between position and head, none was missed: a marker follows the
    last record of a transaction.
    """
    if head - position - 1 <= _MARKER:
        return None
    now, now_kept_ms = expected.meta.at_head, expected.delete_retention_ms
    return missed_deletions("changelog", at_head, now, now_kept_ms, kept_ms)


def missed_deletions(
    log: str, at_head: ClockReading, now: ClockReading, now_kept_ms: int, kept_ms: int | None = None
) -> Refusal | None:
    """Return why a store behind its log may lack deletions; None: it does not (safety S2).

    Kafka drops a deletion once it is older than the retention, so a store that was away for longer
    may miss it.

    ``log``: what it is in words. ``now_kept_ms``: how long deletions are kept. ``kept_ms``: how
    long they were when the store stood at the head. The shorter time counts: a retention that was
    raised since brings nothing back that was dropped before.
    """
    away_ms = elapsed_ms(at_head, now)
    if away_ms is None:
        ahead_s = (at_head.wall_ms - now.wall_ms) / 1000
        return Refusal(
            RefusalReason.CLOCK_SET_BACK,
            f"by this host's clock it last stood at the {log}'s head {ahead_s:.0f} s from now, "
            "and the host was started since: the clock was set back, and it may be stale",
        )
    retention_ms = now_kept_ms if kept_ms is None else min(kept_ms, now_kept_ms)
    if away_ms < retention_ms:
        return None
    kept = "were kept, when it was written," if retention_ms < now_kept_ms else "are kept"
    return Refusal(
        RefusalReason.STALE,
        f"it last stood at the {log}'s head {away_ms / 1000:.0f} s ago"
        f"{_doubt(at_head, now, retention_ms)}, and deletions {kept} for "
        f"{retention_ms / 1000:g} s: stale",
    )


def _doubt(at_head: ClockReading, now: ClockReading, retention_ms: int) -> str:
    """The other clock's word, where it alone would have let the store be used."""
    running_ms = now.boot_ms - at_head.boot_ms
    is_same_start = at_head.boot_id and at_head.boot_id == now.boot_id
    if not is_same_start or running_ms >= retention_ms:
        return ""
    return (
        f" by the clock, of which the host has been running for {running_ms / 1000:.0f} s (the "
        "clock was set forward, or the host was frozen)"
    )


def is_meta_due(found: StoreMeta | None, now: StoreMeta, delete_retention_ms: int) -> bool:
    """Whether STORE-META must be written although the store has not moved.

    It only gets the time at which the store stood at the head, a few times within the retention.
    """
    if found is None or replace(found, at_head=now.at_head) != now:
        return True
    passed_ms = elapsed_ms(found.at_head, now.at_head)
    return passed_ms is None or passed_ms * _RENEWALS >= max(delete_retention_ms, 1)


def _listed(ssps: tuple[str, ...]) -> str:
    return ", ".join(ssps) or "none"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def whole(value: object) -> int:
    """Return ``value``; TypeError where it is no whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value
