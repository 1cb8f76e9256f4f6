"""Managers fill the adjunct stores with their records, and leave the others for tasks.

PURE. Source: ADJUNCT, "Key classes", ``AdjunctDataStoreManager``. A manager gets tables from the
loop. A store takes no record below its own position, so records that are read again change nothing.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.settings.adjunct_section import AdjunctStore, VersionMarkers
from homeport.container.adjunct.extractor import Bytes, Extraction
from homeport.container.adjunct.versions import Marker, Progress, Run, VersionProgress, parse_marker
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Filling = tuple[Run, Bytes, Bytes]
"""What an ``AdjunctSink`` takes."""


class AdjunctSink(Protocol):
    """One adjunct store, of a task or of the container, that a manager fills."""

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """Put the records of ``run`` that the store does not have yet into it.

        ``keys`` and ``values`` are in the order of the run. A key that is None is not stored; a
        value that is None deletes its key. Those of a marker are passed over.
        """


class BaseStorageManager(Protocol):
    """The stores of a task, or those of a container, for a manager."""

    def adjunct(self, store: str) -> AdjunctSink | None:
        """Return the store of that name; None: it is not among these."""

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        """Return the partitions whose stores were not found, or not valid, when it was opened."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one micro-batch brings to one store, to be written as a whole.

    ``entries`` {key: value; None: it is deleted}. ``parts``: the store's progress with them.
    """

    entries: Mapping[bytes, bytes | None]
    parts: VersionProgress


class Intake:
    """Implements ``AdjunctSink`` for a store without versions, which begins with ``starts``."""

    def __init__(self, starts: Mapping[SystemStreamPartition, Progress]) -> None:
        self._parts = dict(starts)
        self._entries: dict[bytes, bytes | None] = {}
        self._is_empty = True

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """Take records, as ``AdjunctSink``."""
        part = self._parts[run.partition]
        start = bisect_left(run.offsets, part.next)
        if start == len(run.offsets):
            return
        for index in range(start, len(run.offsets)):
            key = keys[index]
            if key is not None:
                self._entries[key] = values[index]
        records = part.records + len(run.offsets) - start
        self._parts[run.partition] = replace(part, next=run.offsets[-1] + 1, records=records)
        self._is_empty = False

    def sealed(self) -> Layer | None:
        """Return all that was taken since the last call; None where that is nothing."""
        if self._is_empty:
            return None
        layer = Layer(self._entries, dict(self._parts))
        self._entries, self._is_empty = {}, True
        return layer


class TableManager(ABC):
    """Takes the records for stores from those of one task, before the task sees them.

    ``stores``: all of the job. ``storages``: have the stores that this task fills. Those of the
    container are left out where another task fills them.
    """

    def __init__(
        self, stores: Mapping[str, AdjunctStore], storages: Collection[BaseStorageManager]
    ) -> None:
        self._of_stream = {store.stream: store for store in stores.values()}
        self._storages = storages

    def process_table(self, rows: pa.Table) -> pa.Table:
        """Return the rows for the task; ``rows`` are of one task, in the order of their offsets.

        Records that another task of the container stores are for no task either.
        """
        left = rows
        for stream, store in self._of_stream.items():
            is_own = pc.and_(
                pc.equal(left["system"], stream.system), pc.equal(left["stream"], stream.stream)
            )
            own = left.filter(is_own)
            if own.num_rows == 0:
                continue
            left = left.filter(pc.invert(is_own))
            self._store(store, own)
        return left

    def _store(self, store: AdjunctStore, rows: pa.Table) -> None:
        found = (storage.adjunct(store.name) for storage in self._storages)
        sink = next((sink for sink in found if sink is not None), None)
        if sink is None:
            return
        for number, own in _by_partition(rows):
            place = SystemStreamPartition(store.stream.system, store.stream.stream, number)
            sink.take(*self._filling(store, place, own))

    @abstractmethod
    def _filling(
        self, store: AdjunctStore, place: SystemStreamPartition, rows: pa.Table
    ) -> Filling:
        """Return the entries that the rows of one partition bring to their store."""


class BuiltInManager(TableManager):
    """Stores the entry that the store's own one of ``extractions`` makes of each record."""

    def __init__(
        self,
        stores: Mapping[str, AdjunctStore],
        storages: Collection[BaseStorageManager],
        extractions: Mapping[str, Extraction],
    ) -> None:
        super().__init__(stores, storages)
        self._extractions = extractions

    def _filling(
        self, store: AdjunctStore, place: SystemStreamPartition, rows: pa.Table
    ) -> Filling:
        markers = markers_in(rows, store.markers)
        keys, values = _entries(rows, markers, self._extractions[store.name])
        offsets, timestamps = rows["offset"].to_pylist(), rows["timestamp"].to_pylist()
        return Run(place, offsets, timestamps, markers), keys, values


def markers_in(rows: pa.Table, known_by: VersionMarkers | None) -> dict[int, Marker | None]:
    """Return {index of a row: its marker, None where it is not understood}, in the rows' order.

    ``known_by``: the mark of a marker; None: the stream has no markers.
    """
    if known_by is None:
        return {}
    if known_by.header is not None:
        return dict(_by_header(rows["headers"], known_by.header))
    assert known_by.key is not None  # noqa: S101 - for the type checker: one of both is set
    is_marker = pc.fill_null(pc.equal(rows["key"], known_by.key.encode()), False)  # noqa: FBT003 - pyarrow takes it by position
    places = pc.indices_nonzero(is_marker)
    values = rows["value"].take(places).to_pylist()
    return dict(zip(places.to_pylist(), map(parse_marker, values), strict=True))


def _by_header(headers: pa.ChunkedArray, name: str) -> Iterator[tuple[int, Marker | None]]:
    places = pc.indices_nonzero(headers.is_valid())
    for place, pairs in zip(places.to_pylist(), headers.take(places).to_pylist(), strict=True):
        found = [value for key, value in pairs if key == name]
        if found:
            # Of headers with one name the last counts, as for a task.
            yield place, parse_marker(found[-1])


def without(rows: pa.Table, markers: Mapping[int, Marker | None]) -> tuple[pa.Table, list[int]]:
    """Return the rows that are no markers, and where each of them was."""
    kept = [index for index in range(rows.num_rows) if index not in markers]
    return rows.take(pa.array(kept, pa.int64())), kept


def _by_partition(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    numbers = rows["partition"].to_numpy()
    if (np.diff(numbers) < 0).any():
        # It is a stable one: rows of one partition stay in their order.
        rows = rows.take(pc.sort_indices(rows["partition"]))
        numbers = rows["partition"].to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
    for start, stop in zip(starts, [*starts[1:], rows.num_rows], strict=True):
        yield int(numbers[start]), rows.slice(start, stop - start)


def _entries(
    rows: pa.Table, markers: Mapping[int, Marker | None], extraction: Extraction
) -> tuple[Bytes, Bytes]:
    """Return the keys and values of all rows. No extractor gets markers: theirs are None."""
    if not markers:
        return extraction.of(rows)
    plain, kept = without(rows, markers)
    keys, values = extraction.of(plain)
    return _spread(keys, kept, rows.num_rows), _spread(values, kept, rows.num_rows)


def _spread(data: Bytes, places: Sequence[int], count: int) -> Bytes:
    spread: list[bytes | None] = [None] * count
    for place, element in zip(places, data, strict=True):
        spread[place] = element
    return spread
