"""STORE-META: what a store's directory says of itself, and whether the store may be used by it.

PURE. The file has the form of OFFSET, a checksum and a text; the text is a JSON object. A directory
without the file, as Samza's are, is judged by offsets alone.

Source: design, section 9; safety S2 (how long the store has not stood at its changelog's head is
kept here, as file times prove nothing) and S3.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from homeport.config.errors import WireError

META_FILE = "STORE-META"
FORMAT = 1

_MARKER = 1
_RENEWALS = 10


@dataclass(frozen=True, slots=True)
class StoreMeta:
    """Whose state a directory holds. Units: ms since the epoch.

    ``changelog`` is system, stream and partition in words; ``topic_id`` is the broker's id of the
    topic, which a topic made anew does not get again. ``ssps`` are the task's, in words, sorted.
    ``at_head_ms``: when the store was last known to hold all that the changelog held.
    """

    changelog: str
    topic_id: str
    ssps: tuple[str, ...]
    grouper: str
    at_head_ms: int
    version: int = FORMAT


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a good directory's STORE-META says now, and how long the changelog keeps deletions.

    ``meta.at_head_ms`` is the present time.
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
        "at-head-ms": meta.at_head_ms,
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parse_meta(text: str) -> StoreMeta:
    """What the text of STORE-META says; of a later format only its number is sure to be right.

    Raises:
        WireError: it is not the text of a STORE-META.
    """
    try:
        found = json.loads(text)
        version = _whole(found["format"])
        if version != FORMAT:
            return StoreMeta("", "", (), "", 0, version)
        return StoreMeta(
            changelog=_text(found["changelog"]),
            topic_id=_text(found["topic-id"]),
            ssps=tuple(_text(ssp) for ssp in found["ssps"]),
            grouper=_text(found["grouper"]),
            at_head_ms=_whole(found["at-head-ms"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError(f"it holds {text[:200]!r}, which is not a STORE-META") from None


def meta_fault(found: StoreMeta, expected: Expectation) -> str | None:
    """Why a store with this STORE-META is not the one that is wanted; None where it is."""
    wanted = expected.meta
    if found.version != wanted.version:
        return f"STORE-META has format {found.version}, and {wanted.version} is what is read here"
    if found.changelog != wanted.changelog:
        return f"the store is of changelog {found.changelog}, not of {wanted.changelog}"
    if found.topic_id != wanted.topic_id:
        return (
            f"the changelog was made anew: its topic id is {wanted.topic_id}, "
            f"the store's is {found.topic_id}"
        )
    if found.grouper != wanted.grouper:
        return f"the store was grouped by {found.grouper}, the task is by {wanted.grouper}"
    if found.ssps != wanted.ssps:
        return f"the store is of input {_listed(found.ssps)}, the task's is {_listed(wanted.ssps)}"
    return None


def stale_fault(found: StoreMeta, expected: Expectation, position: int, head: int) -> str | None:
    """Why a store at ``position`` may lack deletions; None where it does not (safety S2).

    Kafka drops a deletion once it is older than the retention, so who was away for longer may miss
    it. Where no record can have been between position and head, none was missed: a marker follows
    the last record of a transaction.
    """
    if head - position - 1 <= _MARKER:
        return None
    # A clock that was set back proves nothing either.
    away_ms = abs(expected.meta.at_head_ms - found.at_head_ms)
    if away_ms < expected.delete_retention_ms:
        return None
    return (
        f"it last stood at the changelog's head {away_ms / 1000:.0f} s ago, and deletions are kept "
        f"for {expected.delete_retention_ms / 1000:g} s: stale"
    )


def is_meta_due(found: StoreMeta | None, now: StoreMeta, delete_retention_ms: int) -> bool:
    """Whether STORE-META must be written although the store has not moved.

    It is only told that the store still stands at the head, a few times within the retention.
    """
    if found is None or replace(found, at_head_ms=now.at_head_ms) != now:
        return True
    return abs(now.at_head_ms - found.at_head_ms) * _RENEWALS >= max(delete_retention_ms, 1)


def _listed(ssps: tuple[str, ...]) -> str:
    return ", ".join(ssps) or "none"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value
