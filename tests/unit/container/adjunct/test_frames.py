"""The entries of a store as rows of columns, and changes to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from homeport.container.adjunct import frames
from homeport.container.adjunct.frames import EntryColumns, FrameError, FrameRows

_FORM = pa.schema({"key": pa.string(), "value": pa.int64()})


def _text(data: Sequence[bytes]) -> pa.Array:
    return pa.array([entry.decode() for entry in data], pa.string())


def _numbers(data: Sequence[bytes]) -> pa.Array:
    return pa.array([int(entry) for entry in data], pa.int64())


_COLUMNS = EntryColumns("planes", _FORM, _text, _numbers)


def _rows(**entries: bytes) -> FrameRows:
    return FrameRows.of(_COLUMNS, [(k.encode(), v) for k, v in entries.items()], 10_000)


def _found(rows: FrameRows) -> dict[str, int]:
    assert rows.rows.schema == _FORM
    assert [key.decode() for key in rows.keys.to_pylist()] == rows.rows["key"].to_pylist()
    return dict(zip(*(rows.rows[name].to_pylist() for name in ("key", "value")), strict=True))


def test_changes_reach_the_rows_of_their_keys() -> None:
    """New, changed and deleted ones; a deletion of what is not there is nothing."""
    rows = _rows(a=b"1", b=b"2")
    assert _found(rows) == {"a": 1, "b": 2}
    later = rows.changed({b"a": b"3", b"b": None, b"c": b"4", b"d": None})
    assert _found(later) == {"a": 3, "c": 4}
    assert _found(rows) == {"a": 1, "b": 2}
    assert _found(_rows()) == {}
    assert _found(_rows().changed({b"a": b"1"})) == {"a": 1}


def test_many_changes_leave_few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs at each further change."""
    monkeypatch.setattr(frames, "_ROWS", 2)
    rows = _rows(a=b"1", b=b"2", c=b"3")
    for n in range(50):
        rows = rows.changed({b"k%d" % n: b"%d" % n})
    assert len(_found(rows)) == 53
    assert rows.keys.num_chunks < 12
    assert rows.rows["key"].num_chunks < 12


def test_a_store_larger_than_it_may_be_is_not_read_to_its_end() -> None:
    """The line names the key and what to do."""
    met = []

    def pairs() -> Iterator[tuple[bytes, bytes]]:
        for n in range(1_000_000):
            met.append(n)
            yield b"%d" % n, b"1"

    with pytest.raises(FrameError, match=r"adstore\.frames\.max\.bytes = 1000: .* set it higher"):
        FrameRows.of(_COLUMNS, pairs(), 1000)
    assert len(met) < 200_000


@pytest.mark.parametrize("rows_of_a_part", [1, 2])
def test_a_store_may_be_as_large_as_the_limit(
    rows_of_a_part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one byte more, over all its parts."""
    monkeypatch.setattr(frames, "_ROWS", rows_of_a_part)
    pairs = [(b"a", b"1"), (b"long" * 9, b"2")]
    parts = [pairs] if rows_of_a_part == 2 else [[pair] for pair in pairs]
    size = sum(_COLUMNS.rows(part).nbytes for part in parts)
    assert FrameRows.of(_COLUMNS, pairs, size).rows.num_rows == 2
    with pytest.raises(FrameError):
        FrameRows.of(_COLUMNS, pairs, size - 1)


def test_an_entry_that_the_serde_cannot_read_is_one_line() -> None:
    """It names the store, which entry, and which part of it."""
    with pytest.raises(FrameError, match=r"adjunct store planes .* the value of b'b' is not what"):
        _rows(a=b"1", b=b"x", c=b"y")
    with pytest.raises(FrameError, match=r"the key of b'\\xff' is not"):
        _rows().changed({b"\xff": b"1"})

    def of_two(data: Sequence[bytes]) -> pa.Array:
        if len(data) > 1:
            raise ValueError("two")
        return pa.array(data, pa.binary())

    odd = EntryColumns("planes", _FORM, of_two, of_two)
    with pytest.raises(FrameError, match=r"the key is not what .* \(two\)"):
        odd.rows([(b"a", b""), (b"b", b"")])
