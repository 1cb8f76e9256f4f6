"""The input that all contestants get, and what is right. Needs no installed package.

Two pieces of work, both with state per key:

* ``output``: the sum of the key's numbers so far, sent on for each record;
* ``count``: how many records of a key there are, of those with a number below ``LIMIT``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

PARTITIONS = 4
LIMIT = 900
"""Of 1,000: what is not below it is filtered out."""

_GOLDEN = 0x9E3779B97F4A7C15
_POOL_BYTES = 1 << 20
_TEXT_BYTES = 60

Record = tuple[int, bytes, bytes]
"""(partition, key, value)"""


def records(count: int, keys: int) -> Iterator[Record]:
    """JSON values of about 100 bytes; each key comes often, in no order; the same each time."""
    for number, n, kind, text in _numbers(count, keys):
        value = b'{"n":%d,"kind":"%s","price":%d.25,"x":"%s"}' % (n, kind, n, text)
        yield number % PARTITIONS, b"%016x" % (number * _GOLDEN % (1 << 64)), value


def _numbers(count: int, keys: int) -> Iterator[tuple[int, int, bytes, bytes]]:
    chance = random.Random(7)  # noqa: S311 - a benchmark's input is no secret
    pool = chance.randbytes(_POOL_BYTES).hex().encode()
    for _ in range(count):
        number, start = chance.randrange(keys), chance.randrange(_POOL_BYTES)
        text = pool[start : start + _TEXT_BYTES]
        yield number, chance.randrange(1000), b"kind-%d" % (number % 7), text


@dataclass
class Right:
    """What is right of the records that went through ``noted``.

    ``sums``: what ``output`` sends for each key, in its order. ``counts``: what ``count`` comes to.
    """

    sums: dict[bytes, list[int]] = field(default_factory=dict)
    counts: dict[bytes, int] = field(default_factory=dict)

    def noted(self, given: Iterable[Record]) -> Iterator[Record]:
        """The same records."""
        for record in given:
            _, key, value = record
            n = _n(value)
            sent = self.sums.setdefault(key, [])
            sent.append((sent[-1] if sent else 0) + n)
            if n < LIMIT:
                self.counts[key] = self.counts.get(key, 0) + 1
            yield record


def _n(value: bytes) -> int:
    return int(value[5 : value.index(b",")])
