"""Reads of the open transaction over what is committed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.storage.overlay import Overlay

KEYS = st.binary(min_size=1, max_size=2)


def _over(committed: Mapping[bytes, bytes]) -> Overlay:
    store = InMemoryStore()
    store.write(committed, None)
    return Overlay(store)


@given(
    st.dictionaries(KEYS, st.binary(max_size=2)),
    st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=2))),
    KEYS,
    KEYS,
)
def test_all_reads_agree_with_a_plain_map(
    committed: dict[bytes, bytes],
    writes: list[tuple[bytes, bytes | None]],
    start: bytes,
    end: bytes,
) -> None:
    """get, get_all, ranges and scans are those of the committed map with the writes applied."""
    overlay = _over(committed)
    expected = dict(committed)
    for key, value in writes:
        overlay.put(key, value)
        if value is None:
            expected.pop(key, None)
        else:
            expected[key] = value
    touched = [*committed, *(key for key, _ in writes), b"other"]
    assert [overlay.get(key) for key in touched] == [expected.get(key) for key in touched]
    assert overlay.get_all(touched) == [expected.get(key) for key in touched]
    assert list(overlay.scan()) == sorted(expected.items())
    inside = [(k, v) for k, v in sorted(expected.items()) if start <= k < end]
    assert list(overlay.scan(start, end)) == inside


def test_a_scan_shows_the_moment_of_its_call() -> None:
    """Writes made while it runs do not show."""
    overlay = _over({b"a": b"1"})
    overlay.put(b"c", b"3")
    scan = overlay.scan()
    overlay.put(b"b", b"2")
    overlay.put(b"c", None)
    assert list(scan) == [(b"a", b"1"), (b"c", b"3")]


def test_reserved_keys_are_refused() -> None:
    """User code can neither read nor harm the position."""
    with pytest.raises(ValueError, match="reserved"):
        _over({}).put(b"\x00homeport.position", b"1")


def test_clearing_leaves_committed_values() -> None:
    """A dropped transaction has changed nothing."""
    overlay = _over({b"a": b"1"})
    overlay.put(b"a", b"22")
    assert overlay.size_bytes == 3
    overlay.clear()
    assert overlay.get(b"a") == b"1"
    assert overlay.size_bytes == 0


def test_the_next_transaction_sees_what_is_on_its_way_and_lies_over_it() -> None:
    """Reads and scans see both; what was sealed does not change any more."""
    overlay = _over({b"a": b"1", b"b": b"1", b"c": b"1"})
    overlay.put(b"b", b"2")
    overlay.put(b"c", None)
    overlay.seal()
    assert overlay.size_bytes == 0
    overlay.put(b"a", b"3")
    overlay.put(b"d", b"3")
    assert overlay.sealed() == {b"b": b"2", b"c": None}
    assert overlay.get_all([b"a", b"b", b"c", b"d"]) == [b"3", b"2", None, b"3"]
    assert overlay.get(b"c") is None
    assert list(overlay.scan()) == [(b"a", b"3"), (b"b", b"2"), (b"d", b"3")]


def test_what_was_sealed_is_the_store_s_once_it_is_released() -> None:
    """And gone with the open transaction where it is dropped."""
    overlay = _over({b"a": b"1"})
    overlay.put(b"a", b"2")
    overlay.seal()
    overlay.put(b"b", b"3")
    overlay.clear()
    assert list(overlay.scan()) == [(b"a", b"1")]
    overlay.put(b"a", b"4")
    overlay.seal()
    overlay.put(b"b", b"5")
    overlay.release()
    assert overlay.sealed() == {}
    assert list(overlay.scan()) == [(b"a", b"1"), (b"b", b"5")]
