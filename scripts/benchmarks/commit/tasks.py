"""The two tasks that scripts/bench commit runs, and the records that it gives them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import json as arrow_json

from homeport import BatchTask, KeyValueStore, MessageCollector, TaskContext

PARTITIONS = 4
STORE, OUTPUT = "state", "out"

_PAIR = struct.Struct(">qq")
_READ = arrow_json.ReadOptions(use_threads=False, block_size=64 << 20)
_GOLDEN = 0x9E3779B97F4A7C15
VALUE_BYTES = 100
_POOL_BYTES = 1 << 20

Record = tuple[int, bytes, bytes]
"""(partition, key, value)"""


class Changing(BatchTask):
    """Keeps values per key, and sends what has changed at each transaction's end."""

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self._kept: KeyValueStore = context.store(STORE)
        self._output = f"{context.config['job.name']}-{OUTPUT}"
        self._changed: dict[bytes, bytes] = {}

    def end_transaction(self, collector: MessageCollector) -> None:
        """One output per key that changed."""
        for key, value in self._changed.items():
            collector.send(self._output, value, key)
        self._changed.clear()


class Sums(Changing):
    """Sum and count per key of JSON values."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - sends at the end
        """Adds the batch to what each of its keys had."""
        lines = pa.BufferReader(b"\n".join(table["value"].to_pylist()))
        numbers = arrow_json.read_json(lines, read_options=_READ)["n"]
        rows = pa.table({"key": table["key"], "n": numbers})
        seen = rows.group_by("key", use_threads=False).aggregate([("n", "sum"), ("n", "count")])
        keys, sums, counts = (seen[name].to_pylist() for name in ("key", "n_sum", "n_count"))
        known = self._kept.get_all(keys)
        after = {}
        for key, total, count in zip(keys, sums, counts, strict=True):
            before = known.get(key)
            old_total, old_count = (0, 0) if before is None else _PAIR.unpack(before)
            after[key] = _PAIR.pack(old_total + total, old_count + count)
        self._kept.put_all(after)
        self._changed.update(after)


class Newest(BatchTask):
    """The newest value of each key, with how often the key came."""

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self._state: KeyValueStore = context.store(STORE)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - has no output
        """Reads, changes and writes every key of the batch."""
        keys, values = table["key"].to_pylist(), table["value"].to_pylist()
        state = self._state.get_all(keys)
        for key, value in zip(keys, values, strict=True):
            before = state.get(key)
            count = 1 if before is None else int.from_bytes(before[:8], "big") + 1
            state[key] = count.to_bytes(8, "big") + value
        self._state.put_all(state)


def key_of(number: int) -> bytes:
    """16 bytes without any order."""
    return b"%016x" % (number * _GOLDEN % (1 << 64))


def hot_records(records: int, keys: int, seed: int) -> Iterator[Record]:
    """JSON values of about 110 bytes; each key comes often, in no order."""
    chance = random.Random(seed)  # noqa: S311 - a benchmark's input is no secret
    pool = chance.randbytes(_POOL_BYTES).hex().encode()
    for _ in range(records):
        number, start = chance.randrange(keys), chance.randrange(_POOL_BYTES)
        text = pool[start : start + VALUE_BYTES]
        value = b'{"n":%d,"x":"%s"}' % (chance.randrange(1000), text)
        yield number % PARTITIONS, key_of(number), value


def distinct_records(keys: int, seed: int) -> Iterator[Record]:
    """Every key once, in random order, with 100 random bytes."""
    chance = random.Random(seed)  # noqa: S311 - a benchmark's input is no secret
    pool = chance.randbytes(_POOL_BYTES)
    order = list(range(keys))
    chance.shuffle(order)
    for number in order:
        start = chance.randrange(_POOL_BYTES - VALUE_BYTES)
        yield number % PARTITIONS, key_of(number), pool[start : start + VALUE_BYTES]
