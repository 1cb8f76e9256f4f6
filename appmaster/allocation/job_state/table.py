"""A persistent table: frozen, cheap to change, and found by what its rows have in common.

PURE. Theory. A state of ten thousand containers is followed by one in which two of them differ. A
table shares what did not change with the one before it (``immutables.Map``), so a step costs what
it changes. What would need a look at every row, such as "who is queued", is answered by facets: for
each facet the rows are filed under their value of it. They are derived: ``Edit``, which alone
changes a table, keeps them; two tables with the same rows are equal whatever became of them before.
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

Facets = tuple[Any, ...]
"""What a row is filed under, by facet; None: under nothing, a frozenset: under each of these."""

_Filed = Map[Any, "Map[Any, None]"]
_NOBODY: Map[Any, None] = Map()


class Table(ABC, Generic[K, V]):
    """Rows by their key; iteration is over the rows, in the order of the keys.

    A kind of table says what a row's key and its facets are. Equal and of the same hash: tables of
    the same rows. ``filing`` has, by facet, {value: keys}.
    """

    __slots__ = ("filing", "order", "rows_by_key")

    facets: ClassVar[int] = 0
    """How many facets a row of this kind has."""

    def __init__(self, rows: Iterable[V] = ()) -> None:
        self.rows_by_key: Map[K, V] = Map({self.key_of(row): row for row in rows})
        self.order: tuple[K, ...] | None = None
        self.filing: tuple[_Filed, ...] = self._file_all()

    @staticmethod
    @abstractmethod
    def key_of(row: Any) -> Any:  # noqa: ANN401 - the row's type is the subclass's
        """The key of this row."""

    @staticmethod
    def facets_of(row: Any) -> Facets:  # noqa: ANN401, ARG004 - see key_of
        """What this row is filed under."""
        return ()

    def _file_all(self) -> tuple[_Filed, ...]:
        filed: list[dict[Any, dict[K, None]]] = [{} for _ in range(self.facets)]
        for key, row in self.rows_by_key.items():
            for facet, value in enumerate(self.facets_of(row)):
                for one in _each(value):
                    filed[facet].setdefault(one, {})[key] = None
        return tuple(Map({v: Map(keys) for v, keys in found.items()}) for found in filed)

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
        """The row of ``key``; None where there is none."""
        return None if key is None else self.rows_by_key.get(key)

    def keys(self) -> tuple[K, ...]:
        """All keys, sorted."""
        if self.order is None:
            self.order = tuple(sorted(self.rows_by_key))
        return self.order

    def filed(self, facet: int, value: object) -> Map[K, None]:
        """The keys of the rows with this value of the facet."""
        return self.filing[facet].get(value, _NOBODY)

    def values_of(self, facet: int) -> Iterable[Any]:
        """The values of this facet that any row has."""
        return self.filing[facet].keys()

    def is_filed_well(self) -> bool:
        """Whether every row is filed where its facets say, and nothing else is."""
        return self.filing == self._file_all()

    def followed_by(
        self, rows: Map[K, V], filing: tuple[_Filed, ...], order: tuple[K, ...] | None
    ) -> Self:
        """What this table has become; ``order``: the sorted keys, None where nobody knows them."""
        table = type(self).__new__(type(self))
        table.rows_by_key, table.filing, table.order = rows, filing, order
        return table


class Edit(MutableMapping[K, V], Generic[K, V, F]):
    """A table being changed; ``freeze`` gives the table that it has become.

    ``changed``: the keys of the rows that were set or deleted. ``noticed`` is told of every such
    row: as it was (None: there was none), and as it is (None: deleted).
    """

    __slots__ = ("_filed", "_has_same_keys", "_map", "_noticed", "_table", "changed")

    def __init__(
        self,
        table: F,
        noticed: Callable[[V | None, V | None], None] | None = None,
    ) -> None:
        self._table = table
        self._map: Map[K, V] = table.rows_by_key
        self._filed = table.filing
        self._noticed = noticed
        self._has_same_keys = True
        self.changed: set[K] = set()

    def __getitem__(self, key: K) -> V:
        return self._map[key]

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401 - as Mapping has it
        """The row of ``key``; ``default`` where there is none."""
        return self._map.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._map

    def __len__(self) -> int:
        return len(self._map)

    def __iter__(self) -> Iterator[K]:
        """The keys, sorted."""
        return iter(self._table.keys() if self._has_same_keys else sorted(self._map))

    def __setitem__(self, key: K, row: V) -> None:
        old = self._map.get(key)
        self._has_same_keys = self._has_same_keys and old is not None
        self._map = self._map.set(key, row)
        self._file_anew(key, old, row)

    def __delitem__(self, key: K) -> None:
        old = self._map[key]
        self._has_same_keys = False
        self._map = self._map.delete(key)
        self._file_anew(key, old, None)

    def filed(self, facet: int, value: object) -> Map[K, None]:
        """The keys of the rows with this value of the facet."""
        return self._filed[facet].get(value, _NOBODY)

    def rows(self, facet: int, value: object) -> list[V]:
        """The rows with this value of the facet, in the order of their keys."""
        return [self._map[key] for key in sorted(self.filed(facet, value))]

    def each_row(self, facet: int, value: object) -> Iterator[V]:
        """The rows with this value of the facet, as ``rows``, but one by one."""
        return (self._map[key] for key in sorted(self.filed(facet, value)))

    def any_row(self, facet: int, value: object) -> Iterator[V]:
        """The rows with this value of the facet, in no order that may decide anything."""
        return (self._map[key] for key in self.filed(facet, value))

    def first(self, facet: int, value: object) -> V | None:
        """The row with this value of the facet, the first one by key; None where there is none."""
        keys = self._filed[facet].get(value)
        return None if keys is None else self._map[min(keys)]

    def freeze(self) -> F:
        """The table as it has become: the same object where nothing was set."""
        self._noticed = None
        if not self.changed:
            return self._table
        order = self._table.order if self._has_same_keys else None
        return self._table.followed_by(self._map, self._filed, order)

    def _file_anew(self, key: K, old: V | None, row: V | None) -> None:
        self.changed.add(key)
        if self._filed:
            facets_of = self._table.facets_of
            was = facets_of(old) if old is not None else (None,) * len(self._filed)
            now = facets_of(row) if row is not None else (None,) * len(self._filed)
            if was != now:
                filed = list(self._filed)
                for facet, before in enumerate(was):
                    if before != now[facet]:
                        filed[facet] = _refiled(filed[facet], key, before, now[facet])
                self._filed = tuple(filed)
        if self._noticed is not None:
            self._noticed(old, row)


def _refiled(filed: _Filed, key: str, was: object, now: object) -> _Filed:
    for value in _each(was):
        left = filed[value].delete(key)
        filed = filed.set(value, left) if left else filed.delete(value)
    for value in _each(now):
        filed = filed.set(value, filed.get(value, _NOBODY).set(key, None))
    return filed


def _each(value: object) -> Iterable[object]:
    if value is None:
        return ()
    return value if isinstance(value, frozenset) else (value,)


class Bag(AbstractSet[T]):
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
        if not isinstance(other, Bag):
            return super().__eq__(other)
        return self.elements == other.elements

    def __hash__(self) -> int:
        return hash(self.elements)

    def __repr__(self) -> str:
        return f"Bag({sorted(map(str, self))})"

    def having(self, element: T) -> Bag[T]:
        """This one with ``element``."""
        return self if element in self.elements else self._of(self.elements.set(element, None))

    def without(self, element: T) -> Bag[T]:
        """This one without ``element``."""
        return self._of(self.elements.delete(element)) if element in self.elements else self

    @classmethod
    def _of(cls, elements: Map[T, None]) -> Bag[T]:
        bag = cls.__new__(cls)
        bag.elements = elements
        return bag
