"""Section join: get_arrow of tasks on a store that is served, with what is kept and without."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from benchmarks.adjunct.stores import BATCH, RECORDS, built_store, keys_in_disorder, values_of
from benchmarks.report import Row, timed
from homeport.container.serde.serdes import serde
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.typed_store import TypedStore

_TITLE = f"adjunct store of {RECORDS:,} x 200 B: joins by get_arrow, {BATCH:,} rows at a time"
_HOT_KEYS = 10_000
_HOT_TARGET = 1_000_000
_COLD_TARGET = 300_000
_BATCHES = 50


def rows(records: int = RECORDS) -> Iterator[Row]:
    """Hot: few keys, again and again. Cold: no key a second time, and nothing kept of any."""
    keys = keys_in_disorder(records, 1)
    with built_store() as store:
        for at in range(0, records, BATCH):
            part = keys[at : at + BATCH]
            store.take(part, values_of(part))
        store.ends()
        store.storage.switch_versions(_passed, _passed, waits=True)
        entries = store.sink.entries
        numbers = random.Random(4)  # noqa: S311 - for a measurement
        hot = [_column(numbers.choices(keys[:_HOT_KEYS], k=BATCH)) for _ in range(_BATCHES)]
        cold = [_column(keys[at : at + BATCH]) for at in range(0, min(records, 500_000), BATCH)]
        few = f"hot: {_HOT_KEYS:,} keys"
        typed = TypedStore(entries, serde("bytes"), serde("bytes"))
        yield timed(few, BATCH * len(hot), partial(_get_all, typed, hot), _HOT_TARGET)
        bare = ReadOnlyEntries(entries.engine, "planes", "kafka.planes")
        typed = TypedStore(bare, serde("bytes"), serde("bytes"))
        count = sum(map(len, cold))
        yield timed("cold: every key once", count, partial(_get_all, typed, cold), _COLD_TARGET)


def _column(keys: Sequence[bytes]) -> pa.Array:
    return pa.array(keys, pa.binary())


def _get_all(store: TypedStore, columns: Sequence[pa.Array]) -> None:
    for column in columns:
        store.get_arrow(column)


def _passed(_step: object) -> None:
    """Nothing waits for a step."""


SECTIONS = {"join": (_TITLE, rows)}
