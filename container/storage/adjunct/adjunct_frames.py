"""AdjunctFrames: the adjunct stores of a container as frames of its pipeline, batch by batch."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from homeport.container.adjunct.frames import (
    EntryColumns,
    FrameError,
    FrameRows,
    StoreFrame,
    StoreFrames,
    too_large,
)
from homeport.container.adjunct.manager import Filling
from homeport.container.adjunct.versions import Versions
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, Layers
from homeport.container.storage.adjunct.filled_store import FilledStore
from homeport.container.storage.adjunct.versioned_store import VersionedStore, dealt
from homeport.container.storage.task_store import passed

_MOST_CHANGES = 50_000
"""So many changes wait for a batch that needs rows, at most: together they cost less."""
_numbers = count(1)
"""Numbers of frames. They go on: a Spark session may outlive the container of its frames."""


class _NextVersions:
    """Which version of a store will be served next, before it is written.

    It takes each layer twice, in the order of the layers: by ``taken`` and then by ``written``.
    """

    def __init__(self, store: VersionedStore) -> None:
        self._store = store
        self._versions = store.versions
        self._waiting: deque[tuple[Filling, ...]] = deque()

    def taken(self, layer: tuple[Filling, ...]) -> Iterator[tuple[bytes, bytes]] | None:
        """Return what readers see once the newest ``layer`` is written; None: the same as before.

        It is read before another layer is taken or written.
        """
        before = self._versions.catalogue.served
        self._waiting.append(layer)
        self._versions = self._after(self._versions, layer, None)
        served = self._versions.catalogue.served
        return None if served is None or served == before else self._pairs_of(served)

    def written(self) -> None:
        self._waiting.popleft()

    def _pairs_of(self, number: int) -> Iterator[tuple[bytes, bytes]]:
        found: dict[int, dict[bytes, bytes | None]] = {}
        versions = self._store.versions
        for layer in self._waiting:
            versions = self._after(versions, layer, found)
        new = found.get(number, {})
        yield from ((k, v) for k, v in self._store.pairs_of(number) if k not in new)
        yield from ((k, v) for k, v in new.items() if v is not None)

    def _after(
        self,
        versions: Versions,
        layer: tuple[Filling, ...],
        found: dict[int, dict[bytes, bytes | None]] | None,
    ) -> Versions:
        for run, keys, values in layer:
            taken = versions.take(run)
            if found is not None:
                for number, entries in dealt(taken, keys, values).items():
                    found.setdefault(number, {}).update(entries)
            versions = taken.versions
        share = self._store.planned.store.minimum_share_percent
        while (verdict := versions.verdict(share)) is not None:
            versions = versions.decided(verdict)
        return versions


@dataclass
class _Part:
    """One store, of a task or of the container. ``changes`` are not in ``rows`` yet.

    ``versions``: those of its data set; None: it has no versions.
    """

    rows: FrameRows
    versions: _NextVersions | None
    changes: dict[bytes, bytes | None] = field(default_factory=dict)

    def merge_changes(self) -> None:
        if self.changes:
            self.rows, self.changes = self.rows.changed(self.changes), {}


class AdjunctFrames:
    """The frames of a container whose pipeline takes adjunct stores; for the loop's thread.

    ``storage``: its ``recover`` has returned. ``columns`` {store that the pipeline takes: how its
    entries become rows}.

    Raises:
        FrameError: all rows together take more than ``limit_bytes``, or one cannot be read.
    """

    def __init__(
        self, storage: AdjunctStorage, columns: Mapping[str, EntryColumns], limit_bytes: int
    ) -> None:
        # From here on each batch switches to a version that it makes whole.
        storage.switch_versions(passed, passed, waits=True)
        self._limit_bytes = limit_bytes
        self._columns = columns
        self._parts: dict[str, list[_Part]] = {}
        self._of_store: dict[FilledStore, _Part] = {}
        for name, own in columns.items():
            self._parts[name] = [self._part(store, own) for store in storage.of_name(name)]
        self._frames: dict[str, StoreFrame] = {}
        self._changed = set(self._parts)

    def _part(self, store: FilledStore, columns: EntryColumns) -> _Part:
        rows = FrameRows.of(columns, store.entries.scan(), self._limit_bytes)
        versions = _NextVersions(store) if isinstance(store, VersionedStore) else None
        part = self._of_store[store] = _Part(rows, versions)
        return part

    def taken(self, layers: Layers) -> None:
        """Take ``layers``, which the stores will have from the batch that brought them on."""
        for store, layer in layers:
            part, name = self._of_store.get(store), store.planned.store.name
            if part is None:
                continue
            if part.versions is not None:
                # Only a version that begins to be served is a change: all of it is read then.
                pairs = part.versions.taken(layer)
                if pairs is not None:
                    part.rows = FrameRows.of(part.rows.columns, pairs, self._limit_bytes)
                    self._changed.add(name)
            elif layer.entries:
                part.changes |= layer.entries
                self._changed.add(name)
                if len(part.changes) > _MOST_CHANGES:
                    part.merge_changes()
                    self._require_room({name: part.rows.rows})

    def written(self, layers: Layers) -> None:
        """Note that the stores have what ``layers`` have."""
        for store, _ in layers:
            part = self._of_store.get(store)
            if part is not None and part.versions is not None:
                part.versions.written()

    def frames(self) -> StoreFrames:
        """Return {store: its rows}, with the layers that were taken last.

        Raises:
            FrameError: they take more than the limit, or one cannot be read.
        """
        if self._changed:
            self._frames = {**self._frames, **{n: self._frame(n) for n in sorted(self._changed)}}
            self._changed.clear()
            self._require_room({name: frame.rows for name, frame in self._frames.items()})
        return self._frames

    def _frame(self, name: str) -> StoreFrame:
        for part in self._parts[name]:
            part.merge_changes()
        none = self._columns[name].schema.empty_table()
        rows = pa.concat_tables([none, *(part.rows.rows for part in self._parts[name])])
        return StoreFrame(next(_numbers), rows)

    def _require_room(self, rows: Mapping[str, pa.Table]) -> None:
        sizes = {name: table.nbytes for name, table in rows.items()}
        if sum(sizes.values()) > self._limit_bytes:
            names = ", ".join(sorted(sizes, key=lambda name: -sizes[name]))
            raise FrameError(too_large(names, self._limit_bytes))
