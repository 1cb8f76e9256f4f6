"""STORE-META: its text, and what it says of a store; the time between two readings of clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.store_meta import (
    FORMAT,
    StoreMeta,
    is_meta_due,
    meta_fault,
    meta_text,
    parse_meta,
    stale_fault,
)

META = StoreMeta(
    "kafka.log partition 3",
    "tY6EnbQCT7SGcSuulnN2kg",
    ("a", "b"),
    "G",
    ClockReading(10_000, "boot-1", 500),
)
DAY_MS = 86_400_000


def _at(now_ms: int, boot_id: str = "boot-2", boot_ms: int = 0) -> StoreMeta:
    at_head = ClockReading(now_ms, boot_id, boot_ms)
    return replace(META, at_head=at_head, delete_retention_ms=DAY_MS)


def _stale(now: StoreMeta, position: int = 5) -> str:
    """The kind of refusal of a store at ``position`` of 9 offsets, or ``none``."""
    found = stale_fault(META.at_head, now, position, head=9)
    return "none" if found is None else found.reason.value


def test_the_text_of_store_meta_has_all_fields() -> None:
    """The exact bytes of format 2, and back."""
    text = (
        '{"format":2,"changelog":"kafka.log partition 3","topic-id":"tY6EnbQCT7SGcSuulnN2kg",'
        '"ssps":["a","b"],"grouper":"G","at-head-ms":10000,"boot-id":"boot-1",'
        '"boot-ms":500}'
    )
    assert meta_text(META) == text
    assert parse_meta(text) == META
    kept = replace(META, delete_retention_ms=DAY_MS)
    assert meta_text(kept) == text[:-1] + ',"delete-retention-ms":86400000}'
    assert parse_meta(meta_text(kept)) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format":true}',
        meta_text(META).replace('"at-head-ms":10000', '"at-head-ms":"10000"'),
        meta_text(META).replace('"G"', "7"),
        meta_text(META).replace('["a","b"]', "[1]"),
        meta_text(META).replace("500}", '500,"delete-retention-ms":"1"}'),
    ],
)
def test_a_malformed_store_meta_is_refused(text: str) -> None:
    """A missing field, or one of another type."""
    with pytest.raises(WireError, match="which is not a STORE-META"):
        parse_meta(text)


def test_a_later_format_is_recognised_by_its_number() -> None:
    """Whatever else it holds: such a store is restored from the start."""
    found = parse_meta('{"format":3,"something":"else"}')
    assert meta_fault(found, _at(10_000)) == Refusal(
        RefusalReason.OTHER_FORMAT, f"STORE-META has format 3, and {FORMAT} is what is read here"
    )


@pytest.mark.parametrize(
    ("found", "reason", "words"),
    [
        (
            replace(META, changelog="kafka.a"),
            "foreign",
            "of changelog kafka.a, not of changelog kafka.log partition 3",
        ),
        (
            replace(META, topic_id="x"),
            "recreated",
            "topic id is tY6EnbQCT7SGcSuulnN2kg, the store's is x",
        ),
        (replace(META, grouper="H"), "foreign", "grouped by H, the task is by G"),
        (replace(META, ssps=("c",)), "foreign", "the store is of input c, the task's is a, b"),
        (replace(META, ssps=()), "foreign", "the store is of input none"),
    ],
)
def test_a_store_of_something_else_is_reported(found: StoreMeta, reason: str, words: str) -> None:
    """Each field by itself; the same in all is no fault, whenever it was written."""
    refusal = meta_fault(found, _at(99))
    assert refusal is not None
    assert refusal.reason.value == reason
    assert words in refusal.story
    assert meta_fault(META, _at(99)) is None


@pytest.mark.parametrize("ssps", [("a",), ("a", "b", "c"), ("b", "c")])
def test_a_store_stays_where_an_input_comes_or_goes(ssps: tuple[str, ...]) -> None:
    """What the store holds is its changelog's; the file gets the new inputs."""
    found = replace(META, ssps=ssps)
    assert meta_fault(found, _at(99)) is None
    assert is_meta_due(found, META)


def test_a_store_of_another_schema_is_reported() -> None:
    """A directory of an older version has no forms, and is taken."""
    avro = replace(META, forms=("string", "avro 1"))
    assert parse_meta(meta_text(avro)) == avro
    expected = replace(_at(99), forms=("string", "avro 2"))
    assert meta_fault(META, expected) is None
    assert meta_fault(avro, _at(99)) is None
    assert meta_fault(replace(avro, forms=("string", "avro 2")), expected) is None
    assert meta_fault(avro, expected) == Refusal(
        RefusalReason.FOREIGN,
        "keys and values of the store are string and avro 1, those of the changelog string and "
        "avro 2",
    )
    assert is_meta_due(META, replace(META, forms=("string", "json")))
    for odd in ("[]", "[1,2]", '["a"]'):
        with pytest.raises(WireError):
            parse_meta(meta_text(avro).replace('["string","avro 1"]', odd))


def test_a_store_is_stale_once_deletions_may_be_gone() -> None:
    """R4: from the retention on; never where no record can have been missed (safety S2)."""
    assert _stale(_at(10_000 + DAY_MS - 1)) == "none"
    late = _at(10_000 + DAY_MS)
    assert stale_fault(META.at_head, late, position=5, head=9) == Refusal(
        RefusalReason.STALE,
        "it last stood at the changelog's head 86400 s ago, and deletions are kept for 86400 s: "
        "stale",
    )
    assert _stale(late, position=8) == "none"
    # One more offset after a record is the marker of its transaction.
    assert _stale(late, position=7) == "none"
    assert _stale(late, position=6) == "stale"


def test_a_retention_that_was_raised_brings_no_deletion_back() -> None:
    """What the store was written under counts, where it is shorter than what is in force now."""
    late = _at(10_000 + DAY_MS // 2)
    assert stale_fault(META.at_head, late, 5, 9, kept_ms=DAY_MS // 2) == Refusal(
        RefusalReason.STALE,
        "it last stood at the changelog's head 43200 s ago, and deletions were kept, when it was "
        "written, for 43200 s: stale",
    )
    assert stale_fault(META.at_head, late, 5, 9, kept_ms=DAY_MS // 2 + 1) is None
    assert stale_fault(META.at_head, _at(10_000 + DAY_MS), 5, 9, kept_ms=2 * DAY_MS) is not None


def test_a_clock_that_was_set_back_neither_keeps_nor_discards_a_store_unseen() -> None:
    """While the host runs its other clock counts; after its start nothing does, which is said."""
    assert _stale(_at(10_000 - DAY_MS, "boot-1", 600)) == "none"
    assert _stale(_at(9_000, "boot-1", 500 + DAY_MS)) == "stale"
    assert stale_fault(META.at_head, _at(10_000 - DAY_MS), position=5, head=9) == Refusal(
        RefusalReason.CLOCK_SET_BACK,
        "by this host's clock it last stood at the changelog's head 86400 s from now, and the host "
        "was started since: the clock was set back, and it may be stale",
    )


def test_a_clock_that_was_set_forward_is_named() -> None:
    """A frozen host looks the same, and would keep deleted keys: the store is rebuilt."""
    found = stale_fault(META.at_head, _at(10_000 + DAY_MS, "boot-1", 3_500), position=5, head=9)
    assert found == Refusal(
        RefusalReason.STALE,
        "it last stood at the changelog's head 86400 s ago by the clock, of which the host has "
        "been running for 3 s (the clock was set forward, or the host was frozen), and deletions "
        "are kept for 86400 s: stale",
    )
    for running_ms in (DAY_MS, DAY_MS + 1):
        at = _at(10_000 + DAY_MS, "boot-1", META.at_head.boot_ms + running_ms)
        both = stale_fault(META.at_head, at, position=5, head=9)
        assert both is not None
        assert "86400 s ago, and deletions" in str(both)


def test_an_idle_store_says_now_and_then_that_it_is_at_the_head() -> None:
    """Without a file, with another content, after a tenth of the retention or an unknown time."""
    later = ClockReading(10_000 + DAY_MS // 10, "boot-1", 600)
    sooner = replace(later, wall_ms=later.wall_ms - 1)
    meta = replace(META, delete_retention_ms=DAY_MS)
    assert is_meta_due(None, meta)
    assert is_meta_due(replace(meta, topic_id="x"), meta)
    assert not is_meta_due(meta, replace(meta, at_head=sooner))
    assert is_meta_due(meta, replace(meta, at_head=later))
    assert is_meta_due(meta, replace(meta, at_head=ClockReading(9_999, "boot-2")))
    for retention_ms in (0, None):
        at_once = replace(META, delete_retention_ms=retention_ms)
        assert not is_meta_due(at_once, at_once)


@pytest.mark.parametrize(
    ("earlier", "later", "elapsed"),
    [
        (ClockReading(100), ClockReading(150), 50),
        (ClockReading(100), ClockReading(99), None),
        (ClockReading(100, "a", 10), ClockReading(150, "b", 1), 50),
        (ClockReading(100, "a", 10), ClockReading(90, "b", 500), None),
        (ClockReading(100, "a", 10), ClockReading(90, "a", 500), 490),
        (ClockReading(100, "a", 10), ClockReading(900, "a", 20), 800),
    ],
)
def test_the_time_away_is_never_too_short(
    earlier: ClockReading, later: ClockReading, elapsed: int | None
) -> None:
    """Within one start of the machine the longer of two; else the calendar's, unless set back."""
    assert elapsed_ms(earlier, later) == elapsed
