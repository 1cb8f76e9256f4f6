"""A store beside what its changelog, or another directory, says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from homeport.config.system_stream import SystemStream
from homeport.container.progress.restore import OffsetRange
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.state_comparison import (
    Changelog,
    Comparison,
    Kind,
    compare_stores,
    compare_with_changelogs,
)

STREAM = SystemStream("kafka", "log")
Records = Sequence[tuple[int, bytes, bytes | None]]


class _Log:
    """A compacted changelog of (offset, key, value), two records a chunk."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        assert (stream, partition) == (STREAM, 3)
        found = [record for record in self._records if start <= record[0] < head]
        for i in range(0, len(found), 2):
            some = found[i : i + 2]
            yield Chunk({key: value for _, key, value in some}, len(some), some[-1][0])


def _compared(
    store: Mapping[bytes, bytes],
    position: int,
    records: Records,
    scratch: Path,
    *,
    forgets: bool = False,
) -> Comparison:
    head = records[-1][0] + 1 if records else 0
    oldest = records[0][0] if records else 0
    changelog = Changelog(STREAM, 3, OffsetRange(oldest, head), position, forgets)
    pairs = sorted(store.items())
    with closing(RocksDbStore(scratch, RocksDbMemory(1 << 24, 1))) as digests:
        return compare_with_changelogs(pairs, [changelog], _Log(records), [digests])


RECORDS: Records = [
    (10, b"a", b"1"),
    (11, b"b", b"1"),
    (12, b"a", b"2"),
    (13, b"c", b"1"),
    (14, b"b", None),
]


def test_each_difference_is_reported_with_its_key(tmp_path: Path) -> None:
    """A key that is missing, one that should be gone, one that never was, another value."""
    found = _compared({b"a": b"1", b"b": b"1", b"d": b""}, 14, RECORDS, tmp_path)
    assert found.first == [
        (b"a", Kind.OTHER_VALUE),
        (b"b", Kind.SURPLUS),
        (b"c", Kind.MISSING),
        (b"d", Kind.SURPLUS),
    ]
    assert found.compared == found.different == 4


_COMPACTED: Records = [(12, b"a", b"2"), (13, b"c", b"1"), (14, b"b", None)]
_FORGETFUL: Records = [(11, b"gone", b"1"), (12, b"a", b"2")]


@pytest.mark.parametrize(
    ("store", "position", "records", "forgets", "expected"),
    [
        ({b"a": b"2", b"c": b"1"}, 14, RECORDS, False, (2, 0, 0)),
        ({b"a": b"1", b"b": b"1"}, 11, RECORDS, False, (2, 0, 0)),
        ({b"a": b"1", b"b": b"1"}, 11, _COMPACTED, False, (0, 2, 0)),
        ({b"a": b"2", b"old": b"1"}, 12, _FORGETFUL, True, (1, 2, 0)),
        ({b"a": b"1", b"gone": b"1"}, 12, _FORGETFUL, True, (2, 0, 1)),
        ({}, -1, [], False, (0, 0, 0)),
        ({b"a": b"1"}, -1, [], False, (1, 0, 1)),
    ],
    ids=[
        *("the last value of each key", "as of its own position", "written since, and compacted"),
        *("dropped by the topic, or by the store", "another value of what may be dropped"),
        *("an empty changelog", "an empty changelog, and a key"),
    ],
)
def test_a_store_is_compared_as_of_its_own_position(
    store: Mapping[bytes, bytes],
    position: int,
    records: Records,
    expected: tuple[int, int, int],
    tmp_path: Path,
    *,
    forgets: bool,
) -> None:
    """Keys compared, not decided, different; a deleted key is none, though it is still known."""
    found = _compared(store, position, records, tmp_path, forgets=forgets)
    assert (found.compared, found.undecided, found.different) == expected


def test_two_stores_are_walked_side_by_side() -> None:
    """Keys of either alone, and values that differ, wherever they stand."""
    own = [(b"a", b"1"), (b"c", b"1"), (b"d", b"1"), (b"f", b"1")]
    other = [(b"b", b"1"), (b"c", b"1"), (b"d", b"2"), (b"g", b"1"), (b"h", b"1")]
    found = compare_stores(own, other)
    assert (found.compared, found.different) == (7, 6)
    assert [key for key, kind in found.first if kind is Kind.MISSING] == [b"b", b"g", b"h"]
    assert [key for key, kind in found.first if kind is Kind.SURPLUS] == [b"a", b"f"]
    assert compare_stores(own, own) == Comparison(compared=4)


def test_the_first_keys_are_named_and_all_are_counted() -> None:
    """However many differ."""
    found = compare_stores([(b"%03d" % i, b"") for i in range(500)], [])
    assert (found.different, len(found.first)) == (500, 10)


class _Partitions:
    """Several partitions of one stream."""

    def __init__(self, partitions: Sequence[Records]) -> None:
        self._partitions = partitions

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        assert stream == STREAM
        for offset, key, value in self._partitions[partition]:
            if start <= offset < head:
                yield Chunk({key: value}, 1, offset)


def test_a_store_of_several_partitions_is_compared_as_of_each_position(tmp_path: Path) -> None:
    """Each up to its own; a key that two of them have is not decided."""
    partitions: list[Records] = [
        [(0, b"a", b"1"), (1, b"both", b"1"), (2, b"a", b"later")],
        [(0, b"b", b"1"), (1, b"both", b"2"), (2, b"c", b"1"), (3, b"c", None), (4, b"d", b"1")],
    ]
    logs = [
        Changelog(STREAM, number, OffsetRange(0, len(records)), position)
        for number, (position, records) in enumerate(zip((1, 3), partitions, strict=True))
    ]

    def compared(folder: str, **store: bytes) -> Comparison:
        memory = RocksDbMemory(1 << 24, 2)
        digests = [RocksDbStore(tmp_path / folder / str(n), memory) for n in range(2)]
        own = sorted((key.encode(), value) for key, value in store.items())
        found = compare_with_changelogs(own, logs, _Partitions(partitions), digests)
        for item in digests:
            item.close()
        return found

    found = compared("right", a=b"1", b=b"1", both=b"1")
    assert (found.compared, found.undecided, found.different) == (2, 1, 0)
    found = compared("wrong", a=b"1", b=b"2", both=b"3", c=b"1", d=b"1")
    assert found.first == [(b"b", Kind.OTHER_VALUE), (b"c", Kind.SURPLUS)]
    assert found.undecided == 2
