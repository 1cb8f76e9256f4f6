"""Decides what a start does with an adjunct store that it finds, or does not find, on its host.

PURE. Source: ADJUNCT, "Recovery" and "Store validity detection": both tables. Beyond them it
compares the store's own position with what its stream still has, and the ids of the topic.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.container.progress.clock_reading import NEVER, ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import OffsetRange
from homeport.container.progress.store_meta import (
    MARKER,
    Owner,
    foreign,
    least_ms,
    missed_deletions,
    parsed,
    text_of,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

META_FILE = "ADJUNCT-META"
"""The file, in the form of OFFSET, that names the store of a directory."""
FORMAT = 1
_SKEW_MS = 60_000
"""A file may be dated so far ahead of now: the clock is corrected in small steps."""
_STREAM_CHANGED = frozenset(
    {RefusalReason.RECREATED, RefusalReason.AHEAD, RefusalReason.BEHIND_OLDEST}
)
"""With these, older offsets of the stream mean nothing, those of a checkpoint included."""


@dataclass(frozen=True, slots=True)
class AdjunctMeta:
    """The content of ``ADJUNCT-META``: which store a directory has.

    ``stream`` is system and stream in words; ``topic_id`` the broker's id of the topic, which a
    recreated topic does not get again; ``extractor`` the class that made its entries, empty for
    the default one. ``at_head``: when the store was last known to have all records of its stream.
    ``kept_ms``: how long the stream kept deletions by then; None: it was not compacted. ``forms``:
    the serdes of its keys and values, in brief; None: an older release wrote the file.
    """

    stream: str
    topic_id: str
    extractor: str
    at_head: ClockReading = NEVER
    kept_ms: int | None = None
    version: int = FORMAT
    forms: tuple[str, str] | None = None

    @property
    def owner(self) -> Owner:
        """Return the file's format and the stream."""
        return self.version, f"stream {self.stream}", self.topic_id


def meta_text(meta: AdjunctMeta) -> str:
    """Return the text of ``ADJUNCT-META``."""
    fields = asdict(meta)
    if meta.forms is None:
        del fields["forms"]
    return text_of(fields)


def parse_meta(text: str) -> AdjunctMeta:
    """Return the meta of the text; WireError where it is not the text of an ``ADJUNCT-META``."""
    return parsed(text, AdjunctMeta, f"an {META_FILE}", lambda found: found)


@dataclass(frozen=True, slots=True)
class FoundStore:
    """The state of a store's directory.

    ``meta``: None: there is no such file. It is written after the first positions of the store, and
    before the first record is read. ``positions`` {partition: next offset}. ``newest_ms``: when the
    latest of its files was written, in ms since 1970. ``fault``: why it cannot be read.
    """

    exists: bool
    meta: AdjunctMeta | None = None
    positions: Mapping[SystemStreamPartition, int] = field(default_factory=dict)
    newest_ms: int = 0
    fault: Refusal | None = None


NO_STORE = FoundStore(exists=False)


@dataclass(frozen=True, slots=True)
class StreamNow:
    """The store's stream, by the broker's answer to a request at ``asked``.

    ``ranges``: the offsets of each partition that fills it. ``kept_ms``: how long it keeps
    deletions; None: it is not compacted. ``forms``: the forms of the serdes that read the store
    now, as in ``AdjunctMeta``.
    """

    topic_id: str
    ranges: Mapping[SystemStreamPartition, OffsetRange]
    asked: ClockReading
    kept_ms: int | None = None
    forms: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """How one store begins: with what was found, where ``is_kept``; else with nothing.

    ``starts`` {partition: where reading goes on}. ``refusal``: why a store that was found is
    created again.
    """

    is_kept: bool
    starts: Mapping[SystemStreamPartition, InputPosition]
    refusal: Refusal | None = None


def expected_meta(store: AdjunctStore, topic_id: str) -> AdjunctMeta:
    """Return the owner that a good directory's ``ADJUNCT-META`` has."""
    return AdjunctMeta(str(store.stream), topic_id, store.made_by or "")


def recover(
    store: AdjunctStore,
    found: FoundStore,
    stream: StreamNow,
    last_position: Callable[[SystemStreamPartition], InputPosition],
) -> Recovery:
    """Return the outcome by the tables; a store that is not kept is never found.

    ``last_position``: the table's "last offset": returns the position of a partition by the
    checkpoint, else by ``samza.offset.default``. It may raise, and is called only where the table
    has it.
    """
    is_found = store.is_kept and found.exists
    refusal, from_oldest = None, store.is_bootstrap
    if is_found:
        refusal = _fault(store, found, stream)
        if refusal is not None:
            from_oldest |= refusal.reason in _STREAM_CHANGED
        else:
            # Any of its entries may be wrong, so all of the stream is read again.
            refusal = _unreadable(found.meta, stream.forms) or _stale(found, stream)
            from_oldest |= refusal is not None
    is_kept = is_found and refusal is None
    positions = found.positions if is_kept else {}
    starts: dict[SystemStreamPartition, InputPosition] = {}
    for ssp, available in sorted(stream.ranges.items()):
        if ssp in positions:
            gap = available.oldest - positions[ssp]
            lost = gap if gap > MARKER else 0
            starts[ssp] = InputPosition(max(positions[ssp], available.oldest), lost)
        elif from_oldest:
            starts[ssp] = InputPosition(available.oldest)
        else:
            starts[ssp] = last_position(ssp)
    return Recovery(is_kept, starts, refusal)


def shared_checkpoint(
    ssp: SystemStreamPartition, checkpoints: Iterable[Mapping[SystemStreamPartition, int]]
) -> int | None:
    """Return the last offset of a partition that several tasks share; None without a checkpoint.

    The lowest: tasks that came from another container may be ahead of what this one has.
    """
    return min((known[ssp] for known in checkpoints if ssp in known), default=None)


def _fault(store: AdjunctStore, found: FoundStore, stream: StreamNow) -> Refusal | None:
    return (
        found.fault
        or _foreign(found.meta, expected_meta(store, stream.topic_id))
        or _lost_partitions(found.positions, stream.ranges)
        or _out_of_range(found.positions, stream.ranges, may_skip=store.is_bounded)
        or _old(found.newest_ms, store.validity_ms, stream.asked.wall_ms)
    )


def _foreign(found: AdjunctMeta | None, wanted: AdjunctMeta) -> Refusal | None:
    if found is None:
        return Refusal(RefusalReason.MISSING_OFFSET, f"{META_FILE} is missing: it never began")
    fault = foreign(META_FILE, wanted.stream, found.owner, wanted.owner)
    if fault is None and found.extractor != wanted.extractor:
        by = "the default extractor"
        fault = Refusal(
            RefusalReason.FOREIGN,
            f"the store was filled by {found.extractor or by}, and {wanted.extractor or by} is "
            "configured",
        )
    return fault


def _lost_partitions(
    positions: Mapping[SystemStreamPartition, int], own: Collection[SystemStreamPartition]
) -> Refusal | None:
    lost = sorted(ssp.partition for ssp in positions if ssp not in own)
    if not lost:
        return None
    return Refusal(
        RefusalReason.FOREIGN,
        f"it holds partitions {', '.join(map(str, lost))}, which nothing here reads any more",
    )


def _out_of_range(
    positions: Mapping[SystemStreamPartition, int],
    ranges: Mapping[SystemStreamPartition, OffsetRange],
    *,
    may_skip: bool,
) -> Refusal | None:
    """Return why the stream has no longer, or not yet, what follows a position.

    ``may_skip``: whether the store knows what it lacks behind a gap, as versions do.
    """
    for ssp, following in sorted(positions.items()):
        place, available = f"{ssp.system_stream} partition {ssp.partition}", ranges[ssp]
        if following > available.head:
            return Refusal(
                RefusalReason.AHEAD,
                f"it stands at offset {following} of {place}, which ends at {available.head}",
            )
        if available.oldest - following > MARKER and not may_skip:
            return Refusal(
                RefusalReason.BEHIND_OLDEST,
                f"it stands at offset {following} of {place}, whose oldest is {available.oldest}",
            )
    return None


def _old(newest_ms: int, validity_ms: int | None, now_ms: int) -> Refusal | None:
    # Source: ADJUNCT: "compare the latest timestamp of files with current time".
    if validity_ms is None:
        return None
    age_ms = now_ms - newest_ms
    if age_ms < -_SKEW_MS:
        return Refusal(
            RefusalReason.CLOCK_SET_BACK,
            f"its newest file was written {-age_ms / 1000:.0f} s from now by this host's clock: "
            "the clock was set back, and its age is unknown",
        )
    if age_ms <= validity_ms:
        return None
    return Refusal(
        RefusalReason.STALE,
        f"its newest file was written {age_ms / 1000:.0f} s ago, and it is valid for "
        f"{validity_ms / 1000:g} s",
    )


def _unreadable(found: AdjunctMeta | None, forms: tuple[str, str] | None) -> Refusal | None:
    """Return why its bytes would be read wrongly: they were written by other serdes."""
    if found is None or found.forms is None or forms is None or found.forms == forms:
        return None
    story = f"its {' and '.join(found.forms)} are read as {' and '.join(forms)} now: other bytes"
    return Refusal(RefusalReason.FOREIGN, story)


def _stale(found: FoundStore, stream: StreamNow) -> Refusal | None:
    """Return why it may lack deletions, which compaction drops after a while (safety S2)."""
    meta = found.meta
    unread = (stream.ranges[ssp].head - at for ssp, at in found.positions.items())
    if meta is None or max(unread, default=0) <= MARKER:
        return None
    if meta.at_head == NEVER and least_ms(stream.kept_ms, meta.kept_ms) is not None:
        story = "it does not say when it last stood at the end of its stream, which is compacted"
        return Refusal(RefusalReason.STALE, story)
    return missed_deletions("stream", meta.at_head, stream.asked, stream.kept_ms, meta.kept_ms)
