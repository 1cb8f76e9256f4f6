"""Where an adjunct store stands with what is on its way to it, for pipelines, which work ahead.

A layer is written when its batch comes to the tasks. The pipeline works on that batch before, and
is to see what they will see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from homeport.container.adjunct.intake import Layer
from homeport.container.adjunct.versions import Versions
from homeport.container.storage.adjunct.filled_store import FilledStore, Handed
from homeport.container.storage.adjunct.unbounded_store import UnboundedStore
from homeport.container.storage.adjunct.versioned_store import VersionedStore, dealt


@dataclass(frozen=True, slots=True)
class Update:
    """What a layer changes for readers; None: the key has no value any more."""

    entries: Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Replacement:
    """All that readers see from a layer on; to be read before another layer is taken or written."""

    pairs: Iterable[tuple[bytes, bytes]]


class StoreHead(ABC):
    """Of one store, which has begun; of each layer both calls are made, in the order of layers."""

    store: FilledStore

    def pairs(self) -> Iterable[tuple[bytes, bytes]]:
        """What readers see before any layer is taken."""
        return self.store.entries.scan()

    @abstractmethod
    def taken(self, layer: object) -> Update | Replacement | None:
        """What readers will see once the layer, which is the newest, is written; None: the same."""

    @abstractmethod
    def written(self) -> None:
        """The oldest layer was written."""


class _UnboundedHead(StoreHead):
    def __init__(self, store: UnboundedStore) -> None:
        self.store = store

    def taken(self, layer: object) -> Update | Replacement | None:
        assert isinstance(layer, Layer)  # noqa: S101 - for the type checker
        return Update(layer.entries) if layer.entries else None

    def written(self) -> None:
        """Nothing waits: the change went on at once."""


class _VersionedHead(StoreHead):
    """Only a version that begins to be served is a change: what it has is read then."""

    def __init__(self, store: VersionedStore) -> None:
        self.store: VersionedStore = store
        self._versions = store.versions
        self._waiting: deque[tuple[Handed, ...]] = deque()

    def taken(self, layer: object) -> Update | Replacement | None:
        assert isinstance(layer, tuple)  # noqa: S101 - for the type checker
        before = self._versions.catalogue.served
        self._waiting.append(layer)
        self._versions = self._after(self._versions, layer, None)
        served = self._versions.catalogue.served
        if served is None or served == before:
            return None
        return Replacement(self._pairs_of(served))

    def written(self) -> None:
        self._waiting.popleft()

    def _pairs_of(self, number: int) -> Iterator[tuple[bytes, bytes]]:
        found: dict[int, dict[bytes, bytes | None]] = {}
        versions = self.store.versions
        for layer in self._waiting:
            versions = self._after(versions, layer, found)
        new = found.get(number, {})
        yield from ((k, v) for k, v in self.store.pairs_of(number) if k not in new)
        yield from ((k, v) for k, v in new.items() if v is not None)

    def _after(
        self,
        versions: Versions,
        layer: tuple[Handed, ...],
        found: dict[int, dict[bytes, bytes | None]] | None,
    ) -> Versions:
        """The versions once ``layer`` is written; what goes into which is in ``found``."""
        for run, keys, values in layer:
            taken = versions.take(run)
            if found is not None:
                for number, entries in dealt(taken, keys, values).items():
                    found.setdefault(number, {}).update(entries)
            versions = taken.versions
        share = self.store.planned.store.minimum_share_percent
        while (verdict := versions.verdict(share)) is not None:
            versions = versions.decided(verdict)
        return versions


def head_of(store: FilledStore) -> StoreHead:
    """That of a store without versions, or with such."""
    if isinstance(store, VersionedStore):
        return _VersionedHead(store)
    assert isinstance(store, UnboundedStore)  # noqa: S101 - for the type checker: no third kind
    return _UnboundedHead(store)
