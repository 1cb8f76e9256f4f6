"""Every cell of both recovery tables of ADJUNCT, and every way for a store not to be valid."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from homeport.config.settings.adjunct_section import AdjunctStore, VersionMarkers
from homeport.container.adjunct.recovery import (
    NO_STORE,
    FoundStore,
    Recovery,
    StreamNow,
    expected_meta,
    recover,
    shared_checkpoint,
)
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.adjuncts import DAY_MS, PLANES

_NOW_MS = 1_000_000_000_000
_P0, _P1 = (SystemStreamPartition("kafka", "planes", number) for number in (0, 1))
_NOW = ClockReading(_NOW_MS)
_STREAM = StreamNow("id-1", {_P0: OffsetRange(10, 100), _P1: OffsetRange(0, 50)}, _NOW)
_OLDEST = {_P0: InputPosition(10), _P1: InputPosition(0)}
_LAST = {_P0: InputPosition(71), _P1: InputPosition(31, lost=3)}
_OWN = {_P0: InputPosition(90), _P1: InputPosition(40)}
_MARKED = replace(PLANES, is_bootstrap=True)
_AGELESS = replace(PLANES, validity_ms=None)
_VERSIONS = replace(PLANES, markers=VersionMarkers(header="version"))
_VALID = FoundStore(
    exists=True,
    meta=expected_meta(PLANES, "id-1"),
    positions={_P0: 90, _P1: 40},
    newest_ms=_NOW_MS - DAY_MS,
)
_OLD = replace(_VALID, newest_ms=_NOW_MS - DAY_MS - 1)


def _recovered(store: AdjunctStore, found: FoundStore, stream: StreamNow = _STREAM) -> Recovery:
    return recover(store, found, stream, _LAST.__getitem__)


def _not_asked(_ssp: SystemStreamPartition) -> InputPosition:
    raise AssertionError


_PERSISTENT = (
    ("marked, no store", _MARKED, NO_STORE, "created", _OLDEST),
    ("marked, not valid", _MARKED, _OLD, "created again", _OLDEST),
    ("marked, valid", _MARKED, _VALID, "kept", _OWN),
    ("not marked, no store", PLANES, NO_STORE, "created", _LAST),
    ("not marked, not valid", PLANES, _OLD, "created again", _LAST),
    ("not marked, valid", PLANES, _VALID, "kept", _OWN),
)


@pytest.mark.parametrize(
    ("store", "found", "becomes", "starts"),
    [cell[1:] for cell in _PERSISTENT],
    ids=[cell[0] for cell in _PERSISTENT],
)
def test_the_table_of_persistent_stores(
    store: AdjunctStore,
    found: FoundStore,
    becomes: str,
    starts: dict[SystemStreamPartition, InputPosition],
) -> None:
    """Its six cells: what becomes of the store, and where its stream is read."""
    done = _recovered(store, found)
    assert (done.is_kept, done.starts) == (becomes == "kept", starts)
    assert (done.refusal is not None) is (becomes == "created again")


@pytest.mark.parametrize("found", [NO_STORE, _OLD, _VALID])
@pytest.mark.parametrize(("store", "starts"), [(_MARKED, _OLDEST), (PLANES, _LAST)])
def test_the_table_of_stores_that_do_not_persist(
    store: AdjunctStore, found: FoundStore, starts: dict[SystemStreamPartition, InputPosition]
) -> None:
    """Bootstrap is always forced where the stream is marked, else the last offset counts."""
    done = _recovered(replace(store, is_kept=False), found)
    assert done == Recovery(is_kept=False, starts=starts)


@pytest.mark.parametrize(
    ("store", "found"), [(_MARKED, NO_STORE), (_MARKED, _OLD), (PLANES, _VALID)]
)
def test_the_last_offset_is_asked_only_where_it_counts(
    store: AdjunctStore, found: FoundStore
) -> None:
    """A checkpoint whose records are gone would fail the job, though nothing needs them."""
    recover(store, found, _STREAM, _not_asked)


_META = expected_meta(PLANES, "id-1")
_UNREADABLE = Refusal(RefusalReason.DAMAGED_STORE, "a block is damaged")
_P7 = replace(_P0, partition=7)


def _with(**fields: object) -> FoundStore:
    return replace(_VALID, meta=replace(_META, **fields))  # type: ignore[arg-type]  # as its fields


_INVALID = {
    "a block is damaged": (replace(_VALID, fault=_UNREADABLE), RefusalReason.DAMAGED_STORE),
    "ADJUNCT-META is missing": (replace(_VALID, meta=None), RefusalReason.MISSING_OFFSET),
    "has format 9, and 1 is": (_with(version=9), RefusalReason.OTHER_FORMAT),
    "is of stream kafka.x, not of": (_with(stream="kafka.x"), RefusalReason.FOREIGN),
    "planes was recreated": (_with(topic_id="id-0"), RefusalReason.RECREATED),
    "filled by a:B, and the": (_with(extractor="a:B"), RefusalReason.FOREIGN),
    "it holds partitions 7, which nothing here reads any more": (
        replace(_VALID, positions={_P0: 90, _P7: 1}),
        RefusalReason.FOREIGN,
    ),
    "at offset 101 of kafka.planes partition 0": (
        replace(_VALID, positions={_P0: 101}),
        RefusalReason.AHEAD,
    ),
    "at offset 8 .* whose oldest is 10": (
        replace(_VALID, positions={_P0: 8}),
        RefusalReason.BEHIND_OLDEST,
    ),
    "it is valid for 86400 s": (_OLD, RefusalReason.STALE),
    "the clock was set back": (
        replace(_VALID, newest_ms=_NOW_MS + 60_001),
        RefusalReason.CLOCK_SET_BACK,
    ),
}
_OF_ANOTHER_STREAM = {RefusalReason.RECREATED, RefusalReason.AHEAD, RefusalReason.BEHIND_OLDEST}


@pytest.mark.parametrize("story", _INVALID)
def test_a_store_is_not_valid_for_each_of_these_reasons(story: str) -> None:
    """It is re-created, for one line. No checkpoint means anything for another stream."""
    found, reason = _INVALID[story]
    done = _recovered(PLANES, found)
    assert done.starts == (_OLDEST if reason in _OF_ANOTHER_STREAM else _LAST)
    assert not done.is_kept
    assert done.refusal is not None
    assert done.refusal.reason is reason
    assert re.search(story, done.refusal.story)


_KEPT_MS = DAY_MS // 2
_COMPACTED = replace(_STREAM, kept_ms=_KEPT_MS)


def _at_head(ago_ms: int, kept_ms: int | None = _KEPT_MS) -> FoundStore:
    """It was flushed right now, and stood at its head so long ago."""
    meta = replace(_META, at_head=ClockReading(_NOW_MS - ago_ms), kept_ms=kept_ms)
    return replace(_VALID, meta=meta, newest_ms=_NOW_MS)


@pytest.mark.parametrize(
    ("found", "stream", "story"),
    [
        (_at_head(_KEPT_MS - 1), _COMPACTED, None),
        (_at_head(_KEPT_MS), _COMPACTED, "it last stood at the stream's head 43200 s ago"),
        (_at_head(_KEPT_MS, None), _COMPACTED, "deletions are kept for 43200 s: stale"),
        (_at_head(_KEPT_MS), _STREAM, "deletions are kept for 43200 s: stale"),
        (_at_head(_KEPT_MS, None), _STREAM, None),
        (_at_head(9), replace(_STREAM, kept_ms=9), "deletions are kept for 0.009 s: stale"),
        (
            _at_head(9, 9),
            _COMPACTED,
            "deletions were kept, when it was written, for 0.009 s: stale",
        ),
        (replace(_VALID, newest_ms=_NOW_MS), _COMPACTED, "it does not say when it last stood"),
        (_at_head(-1), _COMPACTED, "the clock was set back, and it may be stale"),
    ],
)
def test_a_store_that_may_lack_deletions_is_not_valid(
    found: FoundStore, stream: StreamNow, story: str | None
) -> None:
    """However lately it was flushed: by when it stood at the head of a compacted stream (S2)."""
    done = _recovered(PLANES, found, stream)
    assert (done.refusal is None) is (story is None)
    if done.refusal is not None and story is not None:
        assert story in done.refusal.story
        # All that is deleted is not there, and all else is: no checkpoint counts.
        assert recover(PLANES, found, stream, _not_asked).starts == _OLDEST


_LONG_AWAY = _at_head(9 * DAY_MS)


@pytest.mark.parametrize(
    ("store", "found", "stream", "start"),
    [
        (PLANES, replace(_VALID, positions={_P0: 100, _P1: 50}), _STREAM, InputPosition(100)),
        (PLANES, replace(_VALID, positions={_P0: 10, _P1: 0}), _STREAM, InputPosition(10)),
        (PLANES, replace(_VALID, positions={_P0: 9, _P1: 40}), _STREAM, InputPosition(10)),
        (PLANES, replace(_VALID, newest_ms=_NOW_MS + 60_000), _STREAM, _OWN[_P0]),
        (PLANES, replace(_VALID, newest_ms=_NOW_MS), _STREAM, _OWN[_P0]),
        (_AGELESS, replace(_VALID, newest_ms=0), _STREAM, _OWN[_P0]),
        (_AGELESS, replace(_VALID, newest_ms=2 * _NOW_MS), _STREAM, _OWN[_P0]),
        (_VERSIONS, replace(_VALID, positions={_P0: 4}), _STREAM, InputPosition(10, lost=6)),
        (
            *(PLANES, replace(_LONG_AWAY, positions={_P0: 99, _P1: 50})),
            *(_COMPACTED, InputPosition(99)),
        ),
        (PLANES, replace(_LONG_AWAY, positions={}), _COMPACTED, _LAST[_P0]),
        (PLANES, replace(_VALID, positions={_P1: 40}), _STREAM, _LAST[_P0]),
        (_MARKED, replace(_VALID, positions={_P1: 40}), _STREAM, _OLDEST[_P0]),
    ],
    ids=[
        *("at the end", "at the oldest", "one offset is gone: an end of a transaction"),
        *("a clock set back a little", "written now", "old", "of the future"),
        *("a gap in a version", "lacks no record", "has no partition yet"),
        *("a new partition", "a new partition of a marked stream"),
    ],
)
def test_a_store_at_the_edge_is_valid(
    store: AdjunctStore, found: FoundStore, stream: StreamNow, start: InputPosition
) -> None:
    """And goes on; a partition that is new to it begins as without a store."""
    done = _recovered(store, found, stream)
    assert (done.is_kept, done.starts[_P0]) == (True, start)


@pytest.mark.parametrize(
    ("store", "found", "stream"),
    [
        (_VERSIONS, replace(_VALID, positions={_P0: 101}), _STREAM),
        (PLANES, replace(_LONG_AWAY, positions={_P0: 98, _P1: 50}), _COMPACTED),
    ],
    ids=["ahead of the stream", "lacks a record"],
)
def test_a_store_beyond_the_edge_is_not(
    store: AdjunctStore, found: FoundStore, stream: StreamNow
) -> None:
    """It is filled again."""
    assert _recovered(store, found, stream).refusal is not None


def test_deletions_count_only_for_a_store_that_would_be_kept() -> None:
    """One that is never found begins again; one with a partition too many is refused for that."""
    found = _at_head(_KEPT_MS)
    done = _recovered(replace(PLANES, is_kept=False), found, _COMPACTED)
    assert done == Recovery(is_kept=False, starts=_LAST)
    found = replace(found, positions={_P0: 90, _P7: 1})
    done = _recovered(PLANES, found, _COMPACTED)
    assert done.refusal is not None
    assert (done.refusal.reason, done.starts) == (RefusalReason.FOREIGN, _LAST)


@pytest.mark.parametrize(
    ("forms", "story"),
    [
        (("string", "long"), None),
        (None, None),
        (("string", "double"), "its string and double are read as string and long now"),
        (("json", "long"), "its json and long are read as string and long now"),
    ],
)
def test_other_serdes_would_read_other_values(
    forms: tuple[str, str] | None, story: str | None
) -> None:
    """All of the stream is read again; what does not say by which it was written goes on."""
    meta = replace(_META, at_head=ClockReading(_NOW_MS), forms=forms)
    now = replace(_STREAM, forms=("string", "long"))
    done = recover(PLANES, replace(_VALID, meta=meta), now, _not_asked)
    assert (done.refusal is None) is (story is None)
    if done.refusal is not None and story is not None:
        assert story in done.refusal.story
        assert done.starts == _OLDEST
    assert recover(PLANES, replace(_VALID, meta=meta), _STREAM, _not_asked).refusal is None


def test_an_extractor_is_part_of_what_a_store_is() -> None:
    """With another one its entries would be others."""
    store = replace(PLANES, extractor="a:B")
    assert expected_meta(PLANES, "id").extractor == ""
    assert expected_meta(store, "id").extractor == "a:B"
    assert expected_meta(replace(store, manager="a:M"), "id").extractor == "a:M"
    done = _recovered(store, _VALID)
    assert done.refusal is not None
    assert "filled by the default extractor, and a:B is configured" in done.refusal.story


def test_tasks_that_share_a_store_continue_at_the_lowest_of_their_offsets() -> None:
    """One that came from a container that was ahead must not let records be passed over."""
    checkpoints: tuple[dict[SystemStreamPartition, int], ...] = ({_P0: 7}, {_P0: 5, _P1: 1}, {})
    assert shared_checkpoint(_P0, checkpoints) == 5
    assert shared_checkpoint(_P1, checkpoints) == 1
    assert shared_checkpoint(_P1, ()) is None
