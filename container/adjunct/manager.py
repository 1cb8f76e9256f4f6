"""What fills adjunct stores: which records are for which store, and which are left for tasks.

PURE. Source: ADJUNCT, "Key classes", ``AdjunctDataStoreManager``. The loop hands over tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.container.adjunct.extractor import Bytes, Extraction
from homeport.container.adjunct.markers import markers_in
from homeport.container.adjunct.versions import Marker, Run
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Filling = tuple[Run, Bytes, Bytes]
"""What an ``AdjunctSink`` takes."""


class AdjunctSink(Protocol):
    """What a manager fills: one adjunct store, of a task or of the container."""

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """The store has the records of ``run`` that it did not have yet.

        ``keys`` and ``values`` are in the order of the run: None as a key: not stored; as a value:
        the key has none any more. A marker's are passed over.
        """


class BaseStorageManager(Protocol):
    """What the storage of a task and that of a container have in common, for a manager."""

    def adjunct(self, store: str) -> AdjunctSink | None:
        """The store of that name; None: it is not of this storage."""

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        """The partitions whose stores were not found, or not valid, when it was opened."""


class TableManager(ABC):
    """What one task's records pass before the task sees them.

    Args:
        stores: all adjunct stores of the job.
        storages: hold the stores that this task fills; without that of the container where another
            task does.
    """

    def __init__(
        self, stores: Mapping[str, AdjunctStore], storages: Collection[BaseStorageManager]
    ) -> None:
        self._of_stream = {store.stream: store for store in stores.values()}
        self._storages = storages

    def process_table(self, rows: pa.Table) -> pa.Table:
        """The rows that are for the task; rows are of one task, in the order of their offsets.

        What another task of the container stores is for no task either.
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
        """What the rows of one partition bring to the store of their stream."""


class BuiltInManager(TableManager):
    """Stores what an extractor makes of each record.

    Args:
        stores, storages: as of ``TableManager``.
        extractions: {store: how its entries are made}.
    """

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


def without(rows: pa.Table, markers: Mapping[int, Marker | None]) -> tuple[pa.Table, list[int]]:
    """The rows that are no markers, and where each of them was."""
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
    """The keys and values of all rows; of markers, which no extractor is handed, None."""
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
