"""UserManager: a manager of the job's own takes the records of adjunct streams, and fills stores.

PURE except for the manager. Source: ADJUNCT, "Key classes": ``process`` is called before a task
gets a record, and returns whether the record is for a store.
"""

from collections.abc import Collection, Mapping

import pyarrow as pa

from homeport.config.errors import HomeportError, in_one_line
from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.container.adjunct.extractor import (
    ExtractorFailedError,
    MessagesOf,
    Serdes,
    encoded,
    has_reserved,
)
from homeport.container.adjunct.manager import (
    BaseStorageManager,
    Filling,
    TableManager,
    markers_in,
    without,
)
from homeport.container.adjunct.versions import Marker, Run
from homeport.container.api import AdjunctDataStoreManager, IncomingMessage, Partition
from homeport.container.callables import object_fault
from homeport.container.progress.checkpoint import NOTHING
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Pair = tuple[bytes | None, bytes | None]
_NOTHING: tuple[Pair, ...] = ((None, None),)
"""The entries of a record without any: the store's position moves past it."""


class ManagerFailedError(HomeportError):
    """The manager of a job failed, or did something that it may not do."""


class ManagedStore:
    """Implements ``AdjunctEntries``: one store, as the manager of one task sees it."""

    def __init__(self, store: AdjunctStore, kept: Serdes) -> None:
        self._store = store
        self._kept = kept
        self._pairs: list[Pair] = []
        self._is_of_message = False

    def put(self, key: object, value: object) -> None:
        """Put an entry, as ``AdjunctEntries``."""
        name = self._store.name
        if not self._is_of_message:
            raise ManagerFailedError(
                f"store {name}: records of {self._store.stream} alone fill it, while they are "
                "processed"
            )
        if key is None:
            raise ManagerFailedError(f"store {name}: a key may not be None")
        pair = encoded(name, self._kept, key, value)
        if has_reserved([pair[0]]):
            raise ExtractorFailedError(f"store {name}: the key is a reserved one")
        self._pairs.append(pair)

    def begin(self) -> None:
        """Begin a record of the store's stream."""
        self._pairs, self._is_of_message = [], True

    def end(self) -> tuple[Pair, ...]:
        """Return the entries of the record; nothing more may be put."""
        self._is_of_message = False
        return tuple(self._pairs)


class ManagedStorage:
    """Implements the ``BaseStorageManager`` of ``homeport.container.api`` over that of the product.

    ``stores``: how the manager sees all stores of the job.
    """

    def __init__(self, storage: BaseStorageManager, stores: Mapping[str, ManagedStore]) -> None:
        self._storage = storage
        self._stores = {
            name: store for name, store in stores.items() if storage.adjunct(name) is not None
        }

    def adjunct(self, store: str) -> ManagedStore | None:
        """Return the store of that name; None: it is not among these."""
        return self._stores.get(store)

    def reset_partitions(self) -> Collection[Partition]:
        """Return the partitions whose stores were not found, or not valid, at the start."""
        return [(p.system, p.stream, p.partition) for p in self._storage.reset_partitions()]


class StartOffsets:
    """Implements ``OffsetManager``; ``processed`` {task: {partition: last offset}}."""

    def __init__(self, processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]) -> None:
        self._processed = processed

    def last_processed(self, task_name: str, partition: Partition) -> int | None:
        """Return the offset, as ``OffsetManager``."""
        own = self._processed.get(TaskName(task_name), {})
        offset = own.get(SystemStreamPartition(*partition), NOTHING)
        return None if offset == NOTHING else offset


class UserManager(TableManager):
    """Has a manager of the job's own process each record of an adjunct stream.

    ``managed`` {store: how the manager sees it}. ``name``: the manager's factory, for messages.

    Raises:
        ManagerFailedError: a call of the manager's method would not run it.
    """

    def __init__(
        self,
        stores: Mapping[str, AdjunctStore],
        storages: Collection[BaseStorageManager],
        managed: Mapping[str, ManagedStore],
        manager: AdjunctDataStoreManager,
        name: str,
        messages_of: Mapping[str, MessagesOf],
    ) -> None:
        super().__init__(stores, storages)
        fault = object_fault(manager, AdjunctDataStoreManager)
        if fault is not None:
            raise ManagerFailedError(f"{name}: {fault}")
        self._managed = managed
        self._manager = manager
        self._name = name
        self._messages_of = messages_of

    def _filling(
        self, store: AdjunctStore, place: SystemStreamPartition, rows: pa.Table
    ) -> Filling:
        """Return the entries; the run has an offset once for each of its entries.

        Raises:
            ManagerFailedError: the manager raised, or left a record for a task.
        """
        markers = markers_in(rows, store.markers)
        plain = without(rows, markers)[0] if markers else rows
        brought = {m.offset: self._brought(store, m) for m in self._messages_of[store.name](plain)}
        offsets: list[int] = []
        timestamps: list[int] = []
        pairs: list[Pair] = []
        marked: dict[int, Marker | None] = {}
        columns = zip(rows["offset"].to_pylist(), rows["timestamp"].to_pylist(), strict=True)
        for index, (offset, timestamp) in enumerate(columns):
            if index in markers:
                marked[len(offsets)] = markers[index]
            found = brought.get(offset) or _NOTHING
            pairs += found
            offsets += [offset] * len(found)
            timestamps += [timestamp] * len(found)
        run = Run(place, offsets, timestamps, marked)
        return run, [key for key, _ in pairs], [value for _, value in pairs]

    def _brought(self, store: AdjunctStore, message: IncomingMessage) -> tuple[Pair, ...]:
        managed = self._managed[store.name]
        at = f"{store.stream} partition {message.partition} offset {message.offset}"
        managed.begin()
        try:
            is_stored = self._manager.process(message)
        except Exception as error:  # the job's own code may raise anything
            raise ManagerFailedError(f"{self._name}: {at}: {in_one_line(error)}") from error
        finally:
            pairs = managed.end()
        if is_stored is not True:
            raise ManagerFailedError(
                f"{self._name}: {at}: process returned {is_stored!r}, and a record of a store's "
                "stream is never a task's: return True, with or without entries"
            )
        return pairs
