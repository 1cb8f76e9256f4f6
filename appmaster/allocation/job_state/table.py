"""A persistent table: frozen, cheap to change, with indexes.

PURE. A step may change two of ten thousand containers. A table shares the rest with the one before
it (``immutables.Map``), so the cost of a step depends on what it changes. An index has the keys of
the rows by one of their properties, like the phase, so that no question needs a look at every row.
Only ``Edit`` changes a table, and keeps its indexes. Tables with the same rows are equal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Generic, Self, TypeVar

from immutables import Map

K = TypeVar("K", bound=str)
V = TypeVar("V")
T = TypeVar("T")
F = TypeVar("F", bound="Table[Any, Any]")

IndexValues = tuple[Any, ...]
"""A row's value in each index. None: it is not in there; a frozenset: it has each of these."""

Index = Map[Any, "Map[Any, None]"]
_NONE: Map[Any, None] = Map()


class Table(ABC, Generic[K, V]):
    """Rows by their key; iteration yields the rows in the order of the keys.

    A subclass defines a row's key and its index values. ``indexes``: one {value: keys} each.
    """

    __slots__ = ("indexes", "order", "rows_by_key")

    index_count: ClassVar[int]
    """How many indexes this kind of table has."""

    def __init__(self, rows: Iterable[V] = ()) -> None:
        self.rows_by_key: Map[K, V] = Map({self.key_of(row): row for row in rows})
        self.order: tuple[K, ...] | None = None
        self.indexes: tuple[Index, ...] = self._index_all()

    @staticmethod
    @abstractmethod
    def key_of(row: Any) -> Any:  # noqa: ANN401 - the row's type is the subclass's
        """Return the key of this row."""

    @staticmethod
    @abstractmethod
    def index_values_of(row: Any) -> IndexValues:  # noqa: ANN401 - see key_of
        """Return this row's value in each index."""

    def _index_all(self) -> tuple[Index, ...]:
        found: list[dict[Any, dict[K, None]]] = [{} for _ in range(self.index_count)]
        for key, row in self.rows_by_key.items():
            for index, value in enumerate(self.index_values_of(row)):
                for one in _each(value):
                    found[index].setdefault(one, {})[key] = None
        return tuple(
            Map({v: Map(keys) for v, keys in keys_by_value.items()}) for keys_by_value in found
        )

    def __iter__(self) -> Iterator[V]:
        return iter([self.rows_by_key[key] for key in self.keys()])

    def __len__(self) -> int:
        return len(self.rows_by_key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.rows_by_key == other.rows_by_key

    def __hash__(self) -> int:
        return hash(self.rows_by_key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def get(self, key: K | None) -> V | None:
        """Return the row of ``key``; None where there is none."""
        return None if key is None else self.rows_by_key.get(key)

    def keys(self) -> tuple[K, ...]:
        """Return all keys, sorted."""
        if self.order is None:
            self.order = tuple(sorted(self.rows_by_key))
        return self.order

    def indexed(self, index: int, value: object) -> Map[K, None]:
        """Return the keys of the rows with this value in the index."""
        return self.indexes[index].get(value, _NONE)

    def values_of(self, index: int) -> Iterable[Any]:
        """Return the values in this index that any row has."""
        return self.indexes[index].keys()

    def has_sound_indexes(self) -> bool:
        """Return whether every index agrees with the rows."""
        return self.indexes == self._index_all()

    def followed_by(
        self, rows: Map[K, V], indexes: tuple[Index, ...], order: tuple[K, ...] | None
    ) -> Self:
        """Return the next table, with these rows; ``order``: the sorted keys; None: not known."""
        table = type(self).__new__(type(self))
        table.rows_by_key, table.indexes, table.order = rows, indexes, order
        return table


class Edit(MutableMapping[K, V], Generic[K, V, F]):
    """A table while a step changes it; ``freeze`` returns the result.

    ``changed``: the keys of the rows that were set or deleted. ``noticed`` gets each such row as it
    was (None: there was none) and as it is (None: deleted).
    """

    __slots__ = ("_has_same_keys", "_indexes", "_map", "_noticed", "_table", "changed")

    def __init__(
        self, table: F, noticed: Callable[[V | None, V | None], None] | None = None
    ) -> None:
        self._table = table
        self._map: Map[K, V] = table.rows_by_key
        self._indexes = table.indexes
        self._noticed = noticed
        self._has_same_keys = True
        self.changed: set[K] = set()

    def __getitem__(self, key: K) -> V:
        return self._map[key]

    def get(  # type: ignore[override] # narrower than Mapping.get, as Table.get
        self, key: K | None, default: None = None
    ) -> V | None:
        """Return the row of ``key``; None where there is none."""
        return default if key is None else self._map.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._map

    def __len__(self) -> int:
        return len(self._map)

    def __iter__(self) -> Iterator[K]:
        return iter(self._table.keys() if self._has_same_keys else sorted(self._map))

    def __setitem__(self, key: K, row: V) -> None:
        old = self._map.get(key)
        self._has_same_keys = self._has_same_keys and old is not None
        self._map = self._map.set(key, row)
        self._reindex(key, old, row)

    def __delitem__(self, key: K) -> None:
        old = self._map[key]
        self._has_same_keys = False
        self._map = self._map.delete(key)
        self._reindex(key, old, None)

    def indexed(self, index: int, value: object) -> Map[K, None]:
        """Return the keys of the rows with this value in the index."""
        return self._indexes[index].get(value, _NONE)

    def rows(self, index: int, value: object) -> list[V]:
        """Return the rows with this value in the index, in the order of their keys."""
        return [self._map[key] for key in sorted(self.indexed(index, value))]

    def each_row(self, index: int, value: object) -> Iterator[V]:
        """Return the rows with this value in the index, as ``rows``, but one by one."""
        return (self._map[key] for key in sorted(self.indexed(index, value)))

    def any_row(self, index: int, value: object) -> Iterator[V]:
        """Return the rows with this value in the index, in no order that may decide anything."""
        return (self._map[key] for key in self.indexed(index, value))

    def first(self, index: int, value: object) -> V | None:
        """Return the row with this value in the index, the first one by key; else None."""
        keys = self._indexes[index].get(value)
        return None if keys is None else self._map[min(keys)]

    def freeze(self) -> F:
        """Return the changed table; the same object if nothing was set or deleted."""
        self._noticed = None
        if not self.changed:
            return self._table
        order = self._table.order if self._has_same_keys else None
        return self._table.followed_by(self._map, self._indexes, order)

    def _reindex(self, key: K, old: V | None, row: V | None) -> None:
        self.changed.add(key)
        index_values_of = self._table.index_values_of
        was = index_values_of(old) if old is not None else (None,) * len(self._indexes)
        now = index_values_of(row) if row is not None else (None,) * len(self._indexes)
        if was != now:
            indexes = list(self._indexes)
            for index, before in enumerate(was):
                if before != now[index]:
                    indexes[index] = _reindexed(indexes[index], key, before, now[index])
            self._indexes = tuple(indexes)
        if self._noticed is not None:
            self._noticed(old, row)


def _reindexed(keys_by_value: Index, key: str, was: object, now: object) -> Index:
    for value in _each(was):
        left = keys_by_value[value].delete(key)
        keys_by_value = keys_by_value.set(value, left) if left else keys_by_value.delete(value)
    for value in _each(now):
        keys_by_value = keys_by_value.set(value, keys_by_value.get(value, _NONE).set(key, None))
    return keys_by_value


def _each(value: object) -> Iterable[object]:
    if value is None:
        return ()
    return value if isinstance(value, frozenset) else (value,)


class PersistentSet(AbstractSet[T]):
    """A persistent set; iteration is in no order that may decide anything."""

    __slots__ = ("elements",)

    def __init__(self, elements: Iterable[T] = ()) -> None:
        self.elements: Map[T, None] = Map(dict.fromkeys(elements))

    def __contains__(self, element: object) -> bool:
        return element in self.elements

    def __iter__(self) -> Iterator[T]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentSet):
            return super().__eq__(other)
        return self.elements == other.elements

    def __hash__(self) -> int:
        return hash(self.elements)

    def __repr__(self) -> str:
        return f"PersistentSet({sorted(map(str, self))})"

    def having(self, element: T) -> PersistentSet[T]:
        """Return this one with ``element``."""
        return self if element in self.elements else self._of(self.elements.set(element, None))

    def without(self, element: T) -> PersistentSet[T]:
        """Return this one without ``element``."""
        return self._of(self.elements.delete(element)) if element in self.elements else self

    @classmethod
    def _of(cls, elements: Map[T, None]) -> PersistentSet[T]:
        made = cls.__new__(cls)
        made.elements = elements
        return made
