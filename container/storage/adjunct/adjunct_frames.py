"""AdjunctFrames: the adjunct stores of a container as frames of its pipeline, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
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
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, Layers
from homeport.container.storage.adjunct.filled_store import FilledStore
from homeport.container.storage.adjunct.store_heads import Replacement, StoreHead, head_of
from homeport.container.storage.task_store import passed

_MOST_CHANGES = 50_000
"""So many wait, at most, until a batch asks for rows: made together they cost less."""
_numbers = count(1)
"""Of changes; a Spark may outlive the container whose stores they are."""


@dataclass
class _Part:
    """One store, of a task or of the container. ``changes`` are not in ``rows`` yet."""

    head: StoreHead
    rows: FrameRows
    changes: dict[bytes, bytes | None] = field(default_factory=dict)

    def settle(self) -> None:
        if self.changes:
            self.rows, self.changes = self.rows.changed(self.changes), {}


class AdjunctFrames:
    """One per container whose pipeline takes adjunct stores, in the loop's thread.

    Args:
        storage: the stores; ``recover`` has returned.
        columns: {store: how its entries become rows} of those that the pipeline takes.
        limit_bytes: of all their rows together.

    Raises:
        FrameError: they take more, or a store has what its serde cannot read.
    """

    def __init__(
        self, storage: AdjunctStorage, columns: Mapping[str, EntryColumns], limit_bytes: int
    ) -> None:
        # From here on each batch settles all versions that it makes whole.
        storage.settle(passed, passed, waits=True)
        self._limit_bytes = limit_bytes
        self._columns = columns
        self._parts: dict[str, list[_Part]] = {}
        self._of_store: dict[FilledStore, _Part] = {}
        for name, own in columns.items():
            self._parts[name] = [self._part(store, own) for store in storage.of_name(name)]
        self._frames: dict[str, StoreFrame] = {}
        self._changed = set(self._parts)

    def _part(self, store: FilledStore, columns: EntryColumns) -> _Part:
        head = head_of(store)
        part = _Part(head, FrameRows.of(columns, head.pairs(), self._limit_bytes))
        self._of_store[store] = part
        return part

    def taken(self, layers: Layers) -> None:
        """The stores will have what ``layers`` have, from the batch on that brought them."""
        for store, layer in layers:
            part = self._of_store.get(store)
            change = None if part is None else part.head.taken(layer)
            if part is None or change is None:
                continue
            self._changed.add(store.planned.store.name)
            if isinstance(change, Replacement):
                part.changes = {}
                part.rows = FrameRows.of(part.rows.columns, change.pairs, self._limit_bytes)
                continue
            part.changes |= change.entries
            if len(part.changes) > _MOST_CHANGES:
                part.settle()
                self._require_room({store.planned.store.name: part.rows.rows})

    def written(self, layers: Layers) -> None:
        """The stores have what ``layers`` have."""
        for store, _ in layers:
            part = self._of_store.get(store)
            if part is not None:
                part.head.written()

    def frames(self) -> StoreFrames:
        """{store: its rows}, as the batch finds them whose layers were taken last.

        Raises:
            FrameError: they take more than they may, or one cannot be read.
        """
        if self._changed:
            self._frames = {**self._frames, **{n: self._frame(n) for n in sorted(self._changed)}}
            self._changed.clear()
            self._require_room({name: frame.rows for name, frame in self._frames.items()})
        return self._frames

    def _frame(self, name: str) -> StoreFrame:
        for part in self._parts[name]:
            part.settle()
        none = self._columns[name].schema.empty_table()
        rows = pa.concat_tables([none, *(part.rows.rows for part in self._parts[name])])
        return StoreFrame(next(_numbers), rows)

    def _require_room(self, rows: Mapping[str, pa.Table]) -> None:
        sizes = {name: table.nbytes for name, table in rows.items()}
        if sum(sizes.values()) > self._limit_bytes:
            names = ", ".join(sorted(sizes, key=lambda name: -sizes[name]))
            raise FrameError(too_large(names, self._limit_bytes))
