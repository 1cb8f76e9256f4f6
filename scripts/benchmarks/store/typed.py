"""The KeyValueStore of user code on RocksDB: objects, batches of them, and Arrow columns."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.report import Row
from benchmarks.store.runs import BATCH, KEYS, batches, engine, long_keys, timed
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.serde.serdes import serde
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.overlay import Overlay
from homeport.container.storage.typed_store import TypedStore

TITLE = f"KeyValueStore on RocksDB, {KEYS:,} keys in random order; no changelog in it"
_HOT_KEYS = 10_000
_HOT_RECORDS = 1_000_000
_DISTINCT_TARGET = 50_000
_HOT_TARGET = 200_000
_JOIN_TARGET = 1_000_000
_JOIN_ROWS = 10_000
_KEPT_BYTES = 16 << 20


class _Store:
    """A store of one task with what a transaction does to it."""

    def __init__(self, below: StorageEngine, key: str, msg: str) -> None:
        self._below = below
        self._overlay = Overlay(below)
        self.typed = TypedStore(self._overlay, serde(key), serde(msg))

    def commit(self) -> None:
        """The writes are in the engine."""
        self._overlay.seal()
        self._below.write(self._overlay.sealed(), 1)
        self._overlay.release()


def rows() -> Iterator[Row]:
    """Numbers to numbers, then texts to JSON."""
    keys = long_keys(KEYS)
    with engine("RocksDB") as below:
        store = _Store(below, "long", "long")
        yield from _columns(store, keys)
        yield from _numbers(store, keys)
        yield from _read_modify_write(store, keys)
    with engine("RocksDB") as below:
        yield from _joins(below)
    with engine("RocksDB") as below:
        yield from _texts(_Store(below, "string", "json"), keys[: KEYS // 5])


def _each(keys: Sequence[int], work: Callable[[Sequence[int]], object]) -> Callable[[], None]:
    def run() -> None:
        for part in batches(keys):
            work(part)

    return run


def _columns(store: _Store, keys: list[int]) -> Iterator[Row]:
    columns = [pa.array(part, pa.int64()) for part in batches(keys)]

    def put() -> None:
        for column in columns:
            store.typed.put_arrow(column, column)
            store.commit()

    yield timed(f"long: put_arrow and commit, batches of {BATCH:,}", KEYS, put)
    yield timed("long: get_arrow", KEYS, lambda: [store.typed.get_arrow(c) for c in columns])
    yield timed(
        "long: all_arrow", KEYS, lambda: sum(batch.num_rows for batch in store.typed.all_arrow())
    )


def _numbers(store: _Store, keys: list[int]) -> Iterator[Row]:
    typed = store.typed

    def put_all(part: Sequence[int]) -> None:
        typed.put_all(dict.fromkeys(part, 1))
        store.commit()

    def put(part: Sequence[int]) -> None:
        for key in part:
            typed.put(key, 1)
        store.commit()

    yield timed("long: put_all and commit", KEYS, _each(keys, put_all))
    yield timed("long: get_all", KEYS, _each(keys, typed.get_all))
    yield timed("long: put one by one and commit", KEYS, _each(keys, put))
    some = keys[: KEYS // 5]
    yield timed("long: get one by one", len(some), lambda: [typed.get(key) for key in some])
    yield timed("long: all", KEYS, lambda: sum(1 for _ in typed.all()))


def _read_modify_write(store: _Store, keys: list[int]) -> Iterator[Row]:
    typed = store.typed

    def with_columns(part: Sequence[int]) -> None:
        column = pa.array(part, pa.int64())
        typed.put_arrow(column, pc.add(typed.get_arrow(column), 1))
        store.commit()

    def in_batches(part: Sequence[int]) -> None:
        typed.put_all({key: value + 1 for key, value in typed.get_all(part).items()})
        store.commit()

    def one_by_one(part: Sequence[int]) -> None:
        for key in part:
            typed.put(key, (typed.get(key) or 0) + 1)
        store.commit()

    for what, work in (("columns", with_columns), ("get_all", in_batches), ("get", one_by_one)):
        said = f"+1 on distinct keys, by {what}, batches of {BATCH:,}"
        yield timed(said, KEYS, _each(keys, work), _DISTINCT_TARGET)
    numbers = random.Random(3)  # noqa: S311 - for a measurement
    hot = numbers.choices(keys[:_HOT_KEYS], k=_HOT_RECORDS)
    said = f"+1 on {_HOT_KEYS:,} hot keys, record by record"
    yield timed(said, _HOT_RECORDS, _each(hot, one_by_one), _HOT_TARGET)
    counted = f"+1 on {_HOT_KEYS:,} hot keys, counted by Arrow first"
    yield timed(counted, _HOT_RECORDS, _each(hot, lambda part: _count(store, part)), _HOT_TARGET)


def _count(store: _Store, part: Sequence[int]) -> None:
    counts = pc.value_counts(pa.array(part, pa.int64()))
    keys = counts.field("values")
    before = pc.fill_null(store.typed.get_arrow(keys), 0)
    store.typed.put_arrow(keys, pc.add(before, counts.field("counts")))
    store.commit()


def _joins(below: StorageEngine) -> Iterator[Row]:
    """Of an adjunct store, as tasks read it: values of 200 bytes."""
    names = [b"N%07d" % number for number in long_keys(KEYS // 5)]
    below.write({name: name * 25 for name in names}, 1)
    below.flush()
    kept = ReadOnlyEntries(below, "planes", "kafka.planes", _KEPT_BYTES)
    typed = TypedStore(kept, serde("string"), serde("string"))
    numbers = random.Random(4)  # noqa: S311 - for a measurement
    for what, some, least in (
        (f"{_HOT_KEYS:,} hot keys", names[:_HOT_KEYS], _JOIN_TARGET),
        (f"{len(names):,} keys", names, None),
    ):
        columns = [
            pa.array(numbers.choices(some, k=_JOIN_ROWS)).cast(pa.string()) for _ in range(50)
        ]
        typed.get_arrow(pa.array(some).cast(pa.string()))
        said = f"adjunct store: get_arrow of {_JOIN_ROWS:,} rows of {what}"
        yield timed(said, 50 * _JOIN_ROWS, partial(_get_all, typed, columns), least)


def _get_all(typed: TypedStore, columns: Sequence[pa.Array]) -> None:
    for column in columns:
        typed.get_arrow(column)


def _texts(store: _Store, keys: list[int]) -> Iterator[Row]:
    typed, texts = store.typed, [f"carrier-{key}" for key in keys]
    value = {"flights": 17, "worst": 312.5, "airport": "JFK"}
    count = len(texts)

    def put() -> None:
        typed.put_all(dict.fromkeys(texts, value))
        store.commit()

    yield timed("json: put_all and commit", count, put)
    yield timed("json: get_all", count, lambda: typed.get_all(texts))
    yield timed("json: get one by one", count, lambda: [typed.get(text) for text in texts])
    yield timed("json: all", count, lambda: sum(1 for _ in typed.all()))
