"""STORE-META: which store a directory has, and whether that store may be used.

PURE. The file has the form of OFFSET, a checksum and a text; the text is a JSON object. A directory
without the file, such as Samza's, is judged by offsets alone. The other files of a directory have
the same codec (``text_of``, ``parsed``) and the same rule of ownership (``foreign``).

A standby's directory has the STORE-META of its active task's, so that each can use the other's.

Source: safety S2 (the last time at the changelog's head is kept here, as file times prove nothing),
safety S3.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from homeport.config.errors import WireError
from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.refusal import Refusal, RefusalReason

META_FILE = "STORE-META"
FORMAT = 2

MARKER = 1
"""The end of a transaction is no record, and takes an offset."""
_RENEWALS = 10
_SHOWN = 200
_Text = TypeVar("_Text")
_Parsed = TypeVar("_Parsed")


def text_of(fields: Any) -> str:  # noqa: ANN401 - whatever has a JSON form
    """Return ``fields`` as JSON without blanks."""
    return msgspec.json.encode(fields).decode()


def parsed(text: str, kind: type[_Text], what: str, value: Callable[[_Text], _Parsed]) -> _Parsed:
    """Return the value of a text of that kind; WireError where it is none."""
    try:
        return value(msgspec.json.decode(text, type=kind))
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
        raise WireError(f"it holds {text[:_SHOWN]!r}, which is not {what}") from None


Owner = tuple[int, str, str]
"""(format of the file, log with its kind in words, the broker's id of the log's topic)."""


def foreign(file: str, log: str, found: Owner, wanted: Owner) -> Refusal | None:
    """Return why a directory does not belong to the log that is wanted; None where it does.

    ``file``: the name of the file with the owner. ``log``: the beginning of a message about it.
    """
    version, found_log, topic_id = found
    wanted_version, wanted_log, wanted_id = wanted
    if version != wanted_version:
        story = f"{file} has format {version}, and {wanted_version} is what is read here"
        return Refusal(RefusalReason.OTHER_FORMAT, story)
    if found_log != wanted_log:
        story = f"the store is of {found_log}, not of {wanted_log}"
        return Refusal(RefusalReason.FOREIGN, story)
    if topic_id != wanted_id:
        ids = f"its topic id is {wanted_id}, the store's is {topic_id}"
        return Refusal(RefusalReason.RECREATED, f"{log} was recreated: {ids}")
    return None


@dataclass(frozen=True, slots=True)
class StoreMeta:
    """The owner of the state in a directory.

    ``changelog`` is system, stream and partition in words; ``topic_id`` is the broker's id of the
    topic, which a recreated topic does not get again. ``ssps`` are the task's, in words, sorted:
    some may come and go, as the changelog alone makes the store.
    ``at_head``: when the store was last known to have all records of the changelog.
    ``delete_retention_ms``: how long the changelog kept deletions by then; None: not known.
    ``forms``: the serdes of keys and of values, each with the fingerprint of its schema; None: not
    known, as in a directory of an older version.
    """

    changelog: str
    topic_id: str
    ssps: tuple[str, ...]
    grouper: str
    at_head: ClockReading
    delete_retention_ms: int | None = None
    version: int = FORMAT
    forms: tuple[str, str] | None = None

    @property
    def owner(self) -> Owner:
        """Return the file's format and the changelog."""
        return self.version, f"changelog {self.changelog}", self.topic_id


class _MetaText(msgspec.Struct, rename="kebab", omit_defaults=True):
    format: int
    changelog: str
    topic_id: str
    ssps: tuple[str, ...]
    grouper: str
    at_head_ms: int
    boot_id: str
    boot_ms: int
    delete_retention_ms: int | None = None
    forms: tuple[str, str] | None = None


class _Format(msgspec.Struct):
    format: int


def meta_text(meta: StoreMeta) -> str:
    """Return the text of STORE-META."""
    at, owner = meta.at_head, (meta.changelog, meta.topic_id, meta.ssps, meta.grouper)
    clocks = at.wall_ms, at.boot_id, at.boot_ms
    return text_of(_MetaText(meta.version, *owner, *clocks, meta.delete_retention_ms, meta.forms))


def parse_meta(text: str) -> StoreMeta:
    """Return the meta in the text, of another format only its number; WireError: there is none."""
    version = parsed(text, _Format, f"a {META_FILE}", lambda found: found.format)
    if version != FORMAT:
        return StoreMeta("", "", (), "", ClockReading(0), version=version)
    return parsed(text, _MetaText, f"a {META_FILE}", _meta)


def _meta(found: _MetaText) -> StoreMeta:
    at_head = ClockReading(found.at_head_ms, found.boot_id, found.boot_ms)
    owner = found.changelog, found.topic_id, found.ssps, found.grouper
    return StoreMeta(*owner, at_head, found.delete_retention_ms, forms=found.forms)


def meta_fault(found: StoreMeta, wanted: StoreMeta) -> Refusal | None:
    """Return why a store with this STORE-META is not the one that is wanted; None where it is."""
    fault = foreign(META_FILE, "the changelog", found.owner, wanted.owner)
    if fault is not None:
        return fault
    story = None
    if found.grouper != wanted.grouper:
        story = f"the store was grouped by {found.grouper}, the task is by {wanted.grouper}"
    elif found.ssps != wanted.ssps and not {*found.ssps} & {*wanted.ssps}:
        own, tasks = _listed(found.ssps), _listed(wanted.ssps)
        story = f"the store is of input {own}, the task's is {tasks}"
    elif found.forms and wanted.forms and found.forms != wanted.forms:
        story = (
            f"keys and values of the store are {' and '.join(found.forms)}, those of the "
            f"changelog {' and '.join(wanted.forms)}"
        )
    return None if story is None else Refusal(RefusalReason.FOREIGN, story)


def stale_fault(
    at_head: ClockReading, wanted: StoreMeta, position: int, head: int, kept_ms: int | None = None
) -> Refusal | None:
    """Judge a store at ``position`` of its changelog as ``missed_deletions`` does.

    Where no record can have been between position and head, none was missed.
    """
    if head - position - 1 <= MARKER:
        return None
    now_kept_ms = wanted.delete_retention_ms
    return missed_deletions("changelog", at_head, wanted.at_head, now_kept_ms, kept_ms)


def least_ms(*times: int | None) -> int | None:
    """Return the shortest of the known times; None: none is known."""
    return min((ms for ms in times if ms is not None), default=None)


def missed_deletions(
    log: str,
    at_head: ClockReading,
    now: ClockReading,
    now_kept_ms: int | None,
    kept_ms: int | None = None,
) -> Refusal | None:
    """Return why a store behind its log may lack deletions; None: it does not (safety S2).

    Kafka drops a deletion once it is older than the retention. A store that was away for longer may
    miss it.

    ``log``: what it is in words. ``now_kept_ms``: how long deletions are kept. ``kept_ms``: how
    long they were kept when the store stood at the head. Each is None where the log is not
    compacted. The shorter time counts: a longer retention brings no dropped deletion back.
    """
    retention_ms = least_ms(now_kept_ms, kept_ms)
    if retention_ms is None:
        return None
    away_ms = elapsed_ms(at_head, now)
    if away_ms is None:
        ahead_s = (at_head.wall_ms - now.wall_ms) / 1000
        return Refusal(
            RefusalReason.CLOCK_SET_BACK,
            f"by this host's clock it last stood at the {log}'s head {ahead_s:.0f} s from now, "
            "and the host was started since: the clock was set back, and it may be stale",
        )
    if away_ms < retention_ms:
        return None
    is_still = now_kept_ms in {None, retention_ms}
    kept = "are kept" if is_still else "were kept, when it was written,"
    return Refusal(
        RefusalReason.STALE,
        f"it last stood at the {log}'s head {away_ms / 1000:.0f} s ago"
        f"{_doubt(at_head, now, retention_ms)}, and deletions {kept} for "
        f"{retention_ms / 1000:g} s: stale",
    )


def _doubt(at_head: ClockReading, now: ClockReading, retention_ms: int) -> str:
    running_ms = now.boot_ms - at_head.boot_ms
    is_same_start = at_head.boot_id and at_head.boot_id == now.boot_id
    if not is_same_start or running_ms >= retention_ms:
        return ""
    return (
        f" by the clock, of which the host has been running for {running_ms / 1000:.0f} s (the "
        "clock was set forward, or the host was frozen)"
    )


def is_meta_due(found: StoreMeta | None, now: StoreMeta) -> bool:
    """Return whether STORE-META is written although the store has not moved.

    A few times within the retention it gets the last time at which the store stood at the head.
    """
    if found is None or replace(found, at_head=now.at_head) != now:
        return True
    passed_ms = elapsed_ms(found.at_head, now.at_head)
    return passed_ms is None or passed_ms * _RENEWALS >= max(now.delete_retention_ms or 0, 1)


def _listed(ssps: tuple[str, ...]) -> str:
    return ", ".join(ssps) or "none"
