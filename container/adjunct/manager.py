"""AdjunctDataStoreManager: which records fill which adjunct store, and which are left for tasks.

PURE. Source: ADJUNCT, "Key classes". The factory has the document's arguments under their names in
Python. The loop hands over tables; a manager of a job's own that has ``process`` alone is called
for each record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.extractor import Bytes, Extraction
from homeport.container.adjunct.markers import marker_of, markers_in
from homeport.container.adjunct.versions import Marker, Run
from homeport.container.api import IncomingMessage
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


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


class OffsetManager(Protocol):
    """Where the tasks of a container stand in their input."""

    def last_processed(self, task: TaskName, partition: SystemStreamPartition) -> int | None:
        """The offset that the task's checkpoint names; None: it has none."""


class AdjunctDataStoreManager(Protocol):
    """What one task's records pass before the task sees them."""

    def process(self, message: IncomingMessage) -> bool:
        """Whether the message is for a store, and so not for the task."""


class TableManager(AdjunctDataStoreManager, Protocol):
    """One that takes tables, as the built-in one does."""

    def process_table(self, rows: pa.Table) -> pa.Table:
        """The rows that are for the task; all others are where they belong."""


class AdjunctDataStoreManagerFactory(Protocol):
    """Named by ``adstore.manager.factory``; made without arguments."""

    def get_adjunct_data_store_manager(
        self,
        task_name: TaskName,
        config: Mapping[str, str],
        ssps: Collection[SystemStreamPartition],
        container_storage_manager: BaseStorageManager,
        task_storage_manager: BaseStorageManager,
        should_write_to_container_stores: bool,  # noqa: FBT001 - the document's argument
        offset_manager: OffsetManager,
    ) -> AdjunctDataStoreManager:
        """The manager of one task."""


class BuiltInManager:
    """Implements ``TableManager``.

    Args:
        stores: all adjunct stores of the job.
        extractions: {store: how its entries are made}.
        container_storage, task_storage: hold the stores.
        writes_container_stores: whether this task is the one that fills those of the container.
    """

    def __init__(
        self,
        stores: Mapping[str, AdjunctStore],
        extractions: Mapping[str, Extraction],
        container_storage: BaseStorageManager,
        task_storage: BaseStorageManager,
        *,
        writes_container_stores: bool,
    ) -> None:
        self._stores = {store.stream: store for store in stores.values()}
        self._extractions = extractions
        self._storages = (container_storage, task_storage)
        self._writes_container_stores = writes_container_stores

    def process_table(self, rows: pa.Table) -> pa.Table:
        """The rows that are for the task; rows are of one task, in the order of their offsets.

        What another task of the container stores is for no task either.
        """
        left = rows
        for stream, store in self._stores.items():
            is_own = pc.and_(
                pc.equal(left["system"], stream.system), pc.equal(left["stream"], stream.stream)
            )
            own = left.filter(is_own)
            if own.num_rows == 0:
                continue
            left = left.filter(pc.invert(is_own))
            self._store(store, own)
        return left

    def process(self, message: IncomingMessage) -> bool:
        """As ``process_table``, of one record."""
        store = self._stores.get(SystemStream(message.system, message.stream))
        if store is None:
            return False
        sink = self._sink(store)
        if sink is not None:
            place = SystemStreamPartition(message.system, message.stream, message.partition)
            markers = marker_of(message, store.markers)
            key = value = None
            if not markers:
                key, value = self._extractions[store.name].of_message(message)
            sink.take(Run(place, [message.offset], [message.timestamp], markers), [key], [value])
        return True

    @property
    def partitions_to_reset(self) -> frozenset[SystemStreamPartition]:
        """Those whose offset is not continued: their stores begin without what they held."""
        return frozenset(ssp for storage in self._storages for ssp in storage.reset_partitions())

    def _sink(self, store: AdjunctStore) -> AdjunctSink | None:
        """Where its records go; None: another task of the container stores them."""
        container_storage, task_storage = self._storages
        if not store.is_broadcast:
            return task_storage.adjunct(store.name)
        return container_storage.adjunct(store.name) if self._writes_container_stores else None

    def _store(self, store: AdjunctStore, rows: pa.Table) -> None:
        sink = self._sink(store)
        if sink is None:
            return
        stream, extraction = store.stream, self._extractions[store.name]
        for number in pc.unique(rows["partition"]).to_pylist():
            own = rows.filter(pc.equal(rows["partition"], number))
            place = SystemStreamPartition(stream.system, stream.stream, number)
            markers = markers_in(own, store.markers)
            keys, values = _entries(own, markers, extraction)
            offsets, timestamps = own["offset"].to_pylist(), own["timestamp"].to_pylist()
            sink.take(Run(place, offsets, timestamps, markers), keys, values)


def _entries(
    rows: pa.Table, markers: Mapping[int, Marker | None], extraction: Extraction
) -> tuple[Bytes, Bytes]:
    """The keys and values of all rows; of markers, which no extractor is handed, None."""
    if not markers:
        return extraction.of(rows)
    kept = [index for index in range(rows.num_rows) if index not in markers]
    keys, values = extraction.of(rows.take(pa.array(kept, pa.int64())))
    return _spread(keys, kept, rows.num_rows), _spread(values, kept, rows.num_rows)


def _spread(data: Bytes, places: Sequence[int], count: int) -> Bytes:
    spread: list[bytes | None] = [None] * count
    for place, element in zip(places, data, strict=True):
        spread[place] = element
    return spread
