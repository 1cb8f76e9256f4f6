"""STORE-META: its text, and what it tells of a store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.container.progress.store_meta import (
    FORMAT,
    Expectation,
    StoreMeta,
    is_meta_due,
    meta_fault,
    meta_text,
    parse_meta,
    stale_fault,
)

META = StoreMeta("kafka.log partition 3", "tY6EnbQCT7SGcSuulnN2kg", ("a", "b"), "G", 10_000)
DAY_MS = 86_400_000


def _at(now_ms: int, retention_ms: int = DAY_MS) -> Expectation:
    return Expectation(replace(META, at_head_ms=now_ms), retention_ms)


def test_its_text_says_everything() -> None:
    """The exact bytes of format 1, and back."""
    text = (
        '{"format":1,"changelog":"kafka.log partition 3","topic-id":"tY6EnbQCT7SGcSuulnN2kg",'
        '"ssps":["a","b"],"grouper":"G","at-head-ms":10000}'
    )
    assert meta_text(META) == text
    assert parse_meta(text) == META


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
    ],
)
def test_what_is_no_store_meta_is_refused(text: str) -> None:
    """A missing field, or one of another type."""
    with pytest.raises(WireError, match="which is not a STORE-META"):
        parse_meta(text)


def test_a_later_format_is_told_by_its_number() -> None:
    """Whatever else it holds: such a store is read anew."""
    found = parse_meta('{"format":2,"something":"else"}')
    assert meta_fault(found, _at(10_000)) == (
        f"STORE-META has format 2, and {FORMAT} is what is read here"
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (replace(META, changelog="kafka.a"), "of changelog kafka.a, not of kafka.log partition 3"),
        (replace(META, topic_id="x"), "topic id is tY6EnbQCT7SGcSuulnN2kg, the store's is x"),
        (replace(META, grouper="H"), "grouped by H, the task is by G"),
        (replace(META, ssps=("a",)), "the store is of input a, the task's is a, b"),
        (replace(META, ssps=()), "the store is of input none"),
    ],
)
def test_a_store_of_something_else_is_told(found: StoreMeta, words: str) -> None:
    """Each field by itself; the same in all is no fault, whenever it was written."""
    assert words in (meta_fault(found, _at(99)) or "")
    assert meta_fault(META, _at(99)) is None


def test_a_store_is_stale_once_deletions_may_be_gone() -> None:
    """From the retention on, in either direction of the clock; never where nothing can follow."""
    assert stale_fault(META, _at(10_000 + DAY_MS - 1), position=5, head=9) is None
    late = _at(10_000 + DAY_MS)
    assert (stale_fault(META, late, position=5, head=9) or "").endswith("for 86400 s: stale")
    assert stale_fault(META, _at(10_000 - DAY_MS), position=5, head=9) is not None
    assert stale_fault(META, late, position=8, head=9) is None
    # One more offset after a record is the marker of its transaction.
    assert stale_fault(META, late, position=7, head=9) is None
    assert stale_fault(META, late, position=6, head=9) is not None


def test_an_idle_store_says_now_and_then_that_it_is_at_the_head() -> None:
    """Without a file, with another content, and after a tenth of the retention."""
    later = replace(META, at_head_ms=10_000 + DAY_MS // 10)
    assert is_meta_due(None, META, DAY_MS)
    assert is_meta_due(replace(META, topic_id="x"), META, DAY_MS)
    assert not is_meta_due(META, replace(later, at_head_ms=later.at_head_ms - 1), DAY_MS)
    assert is_meta_due(META, later, DAY_MS)
    assert not is_meta_due(META, META, 0)
