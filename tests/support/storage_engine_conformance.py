"""What every StorageEngine must do, whatever it keeps its bytes in.

A new kind is tested by a class of a few lines: it inherits ``StorageEngineConformance`` and has a
fixture ``engine``, which yields one that is empty.
"""

from __future__ import annotations

import pytest

from homeport.container.engine.storage_engine import StorageEngine

KEYS = (b"", b"\x00", b"\x00homeport", b"\x00homeport.positionz", b"a", b"a\x00", b"b", b"\xff\xff")
"""In byte order; the reserved key lies between the third and the fourth."""


class StorageEngineConformance:
    """The tests; each has an engine with nothing in it."""

    @pytest.fixture
    def engine(self) -> StorageEngine:
        """The engine of this test."""
        raise AssertionError("each kind of engine says how it is opened")

    def test_a_batch_is_applied_with_its_position(self, engine: StorageEngine) -> None:
        """Values, deletions and the position; without one the position stays what it was."""
        before = engine.position
        engine.write({b"b": b"2", b"a": b"1", b"c": b""}, 7)
        engine.write({b"b": None, b"never": None, b"a": b"3"}, 9)
        engine.write({b"d": b"4"}, None)
        engine.flush()
        assert (before, engine.position) == (None, 9)
        assert engine.get(b"a") == b"3"
        assert engine.get(b"b") is None
        assert engine.get_all([b"c", b"b", b"a", b"a"]) == [b"", None, b"3", b"3"]
        assert engine.get_all([]) == []
        assert list(engine.scan()) == [(b"a", b"3"), (b"c", b""), (b"d", b"4")]

    def test_a_scan_is_in_the_order_of_bytes_and_without_the_position(
        self, engine: StorageEngine
    ) -> None:
        """For every pair of bounds, those on both sides of the reserved key too."""
        engine.write({key: b"v" + key for key in reversed(KEYS)}, 1)
        for start in (None, *KEYS, b"zz"):
            for end in (None, *KEYS, b"zz"):
                inside = [
                    (key, b"v" + key)
                    for key in KEYS
                    if (start is None or key >= start) and (end is None or key < end)
                ]
                assert list(engine.scan(start, end)) == inside

    def test_a_scan_stays_at_its_moment(self, engine: StorageEngine) -> None:
        """No later write shows in it, whether it has begun or not: new, changed, deleted keys."""
        engine.write({b"a": b"1", b"b": b"1", b"c": b"1"}, 1)
        begun, untouched = engine.scan(), engine.scan()
        assert next(begun) == (b"a", b"1")
        engine.write({b"b": b"2", b"c": None, b"bb": b"2"}, 2)
        engine.flush()
        assert list(begun) == [(b"b", b"1"), (b"c", b"1")]
        assert list(untouched) == [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]
        assert list(engine.scan()) == [(b"a", b"1"), (b"b", b"2"), (b"bb", b"2")]

    def test_a_closed_scan_is_at_its_end(self, engine: StorageEngine) -> None:
        """So is one that is open when the store closes."""
        engine.write({b"a": b"1", b"b": b"1"}, 1)
        closed, left = engine.scan(), engine.scan()
        assert next(closed) == next(left) == (b"a", b"1")
        closed.close()
        assert list(closed) == []
        engine.close()
        assert list(left) == []
