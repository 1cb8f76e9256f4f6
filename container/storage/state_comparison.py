"""Compares a store, of any size, with its changelogs or with another directory, key by key.

A changelog is replayed into a scratch store of digests, which has them in the order of the keys.
Then both are walked side by side: only the scratch store takes memory.

A changelog is replayed to its head. A key that was written again behind the store's position may
have lost its older record to compaction. It is compared where that record is still there; else it
is left undecided.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import merge
from itertools import groupby
from operator import itemgetter

from homeport.config.system_stream import SystemStream
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.progress.restore import OffsetRange
from homeport.container.storage.changelog_reader import RecordReader

Pairs = Iterable[tuple[bytes, bytes]]

_DIGEST_BYTES = 16
_FIRST = 10
_DELETED, _PRESENT, _UNKNOWN = b"d", b"p", b"u"
_SINCE, _UP_TO = b"+", b"="
_BY_KEY = itemgetter(0)


class Kind(StrEnum):
    """How a key differs."""

    MISSING = "missing here"
    SURPLUS = "only here"
    OTHER_VALUE = "another value"


@dataclass
class Comparison:
    """The outcome of a comparison: how many keys were compared, were left undecided, and differ.

    ``first``: the first keys that differ, in byte order, each with its difference.
    """

    compared: int = 0
    undecided: int = 0
    different: int = 0
    first: list[tuple[bytes, Kind]] = field(default_factory=list)

    def differs(self, key: bytes, kind: Kind) -> None:
        """Count one more key that differs."""
        self.different += 1
        if len(self.first) < _FIRST:
            self.first.append((key, kind))


@dataclass(frozen=True, slots=True)
class Changelog:
    """One partition of a changelog, and where it stood when the comparison began.

    ``position``: the last offset that the store has of it. ``forgets``: topic and store drop old
    records, each in its own time (a store with a time to live), so a key that only one of them has
    proves nothing.
    """

    stream: SystemStream
    partition: int
    range: OffsetRange
    position: int
    forgets: bool = False


def compare_stores(own: Pairs, other: Pairs) -> Comparison:
    """Return how ``own`` differs from ``other``; both in byte order of their keys."""
    found = Comparison()
    for key, mine, theirs in _side_by_side(own, other):
        found.compared += 1
        if mine is None:
            found.differs(key, Kind.MISSING)
        elif theirs is None:
            found.differs(key, Kind.SURPLUS)
        elif mine != theirs:
            found.differs(key, Kind.OTHER_VALUE)
    return found


def compare_with_changelogs(
    own: Pairs,
    changelogs: Sequence[Changelog],
    reader: RecordReader,
    digests: Sequence[StorageEngine],
) -> Comparison:
    """Return how a store differs from what its changelogs have up to its position in each.

    A key that two of them have is not decided: nothing shows which record came last.

    ``digests``: an empty store for each changelog; what is left in it is of no use.

    Raises:
        DiskFullError: there is no room for the digests.
        UnavailableError: a changelog could not be read to its head.
    """
    for changelog, part in zip(changelogs, digests, strict=True):
        _replay(part, changelog, reader)
    found = Comparison()
    forgets = any(changelog.forgets for changelog in changelogs)
    for key, value, said in _side_by_side(own, _merged([part.scan() for part in digests])):
        _compare(found, key, value, said, forgets=forgets)
    return found


def _merged(parts: Sequence[Pairs]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys of all ``parts``, in byte order."""
    for key, pairs in groupby(merge(*parts, key=_BY_KEY), _BY_KEY):
        values = [value for _, value in pairs]
        yield key, values[0] if len(values) == 1 else _SINCE + _UNKNOWN


def _compare(
    found: Comparison, key: bytes, value: bytes | None, said: bytes | None, *, forgets: bool
) -> None:
    kind = _kind(value, said)
    if kind is None:
        # What neither has is no key: a deletion that the changelog still knows.
        found.compared += value is not None
    elif (said is not None and said.startswith(_SINCE)) or (
        forgets and kind is not Kind.OTHER_VALUE
    ):
        found.undecided += 1
    else:
        found.compared += 1
        found.differs(key, kind)


def _kind(value: bytes | None, said: bytes | None) -> Kind | None:
    state = _UNKNOWN if said is None else said[1:2]
    if value is None:
        return Kind.MISSING if state == _PRESENT else None
    if state != _PRESENT:
        return Kind.SURPLUS
    return None if said is not None and said[2:] == _digest(value) else Kind.OTHER_VALUE


def _replay(digests: StorageEngine, changelog: Changelog, reader: RecordReader) -> None:
    stream, partition, ends = changelog.stream, changelog.partition, changelog.range
    middle = min(max(changelog.position + 1, ends.oldest), ends.head)
    if ends.oldest < middle:
        for chunk in reader.read(stream, partition, ends.oldest, middle):
            digests.write({k: _UP_TO + _state(v) for k, v in chunk.entries.items()}, None)
    if middle < ends.head:
        for chunk in reader.read(stream, partition, middle, ends.head):
            digests.write(_marked(digests, chunk.entries), None)


def _marked(
    digests: StorageEngine, entries: Mapping[bytes, bytes | None]
) -> dict[bytes, bytes | None]:
    keys = list(entries)
    known = digests.get_all(keys)
    return {k: _SINCE + (was[1:] if was else _UNKNOWN) for k, was in zip(keys, known, strict=True)}


def _state(value: bytes | None) -> bytes:
    return _DELETED if value is None else _PRESENT + _digest(value)


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES).digest()


def _side_by_side(left: Pairs, right: Pairs) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
    """Yield each key of either with both values, in byte order."""
    mine = ((key, value, None) for key, value in left)
    theirs = ((key, None, value) for key, value in right)
    for key, found in groupby(merge(mine, theirs, key=_BY_KEY), _BY_KEY):
        first, *second = found
        yield key, first[1], second[0][2] if second else first[2]
