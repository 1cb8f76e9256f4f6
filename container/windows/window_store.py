"""WindowStore: windows in a store of the task, in the order of their ends.

A time has fifteen digits. A time before 1970 is "-" and its distance from -LIMIT_MS. Entries:

* ``w/<end>/<start>/<key>``: the aggregate of one window;
* ``k/<length of key>/<key>/<start>``: the end of a session, so that a key finds its own;
* ``t/`` how far event time has come, ``t/<source>`` the newest time of a source;
* ``f/<fact>/<text>`` a fact of the windows; any store can carry its value.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from homeport.container.api import KeyValueStore
from homeport.container.windows.spans import LIMIT_MS

_FORMS: tuple[Callable[[int], Any], ...] = (int, float, str, lambda time_ms: b"%d" % time_ms)
"""The forms of a time for stores of numbers, text or bytes; int() reads them all."""

_ANY_MS = 10**13
"""The value of each fact: any time, as the store carries times."""
_KEYS = 100_000
"""The sessions of so many keys are kept in memory; the key read longest ago goes first."""


class Place(NamedTuple):
    """One window of one key."""

    end_ms: int
    start_ms: int
    key: str


class WindowStore:
    """The windows of one task. Aggregates are what the store's message serde carries.

    ``store``: its keys have the serde string. ``has_sessions``: windows are found by keys too.
    """

    def __init__(self, name: str, store: KeyValueStore, *, has_sessions: bool) -> None:
        self._name = name
        self._store = store
        self._has_sessions = has_sessions
        self._known: dict[str, list[Place]] = {}
        self._form: Callable[[int], Any] | None = None

    # -- aggregates

    def get(self, place: Place) -> Any | None:  # noqa: ANN401 - a user's value
        """Return the aggregate of one window, None where there is none."""
        return self._store.get(_entry(place))

    def get_all(self, places: Iterable[Place]) -> dict[Place, Any]:
        """Return {place that has an aggregate: the aggregate}."""
        entries = {_entry(place): place for place in places}
        return {entries[e]: value for e, value in self._store.get_all(entries).items()}

    def put_all(self, windows: Mapping[Place, Any]) -> None:
        """Put the aggregate of each window; TypeError where the store cannot carry one."""
        self._store.put_all({_entry(place): value for place, value in windows.items()})
        if self._has_sessions:
            for place in windows:
                self._put_time(_session(place), place.end_ms)
                known = self._known.get(place.key)
                if known is not None:
                    others = [p for p in known if p.start_ms != place.start_ms]
                    self._known[place.key] = sorted([*others, place], key=attrgetter("start_ms"))

    def delete_all(self, places: Iterable[Place]) -> None:
        """Delete these windows."""
        gone = list(places)
        self._store.delete_all(map(_entry, gone))
        if self._has_sessions:
            self._store.delete_all(map(_session, gone))
            for place in gone:
                known = self._known.get(place.key, [])
                if place in known:
                    known.remove(place)

    def ending(self, first_ms: int, last_ms: int) -> list[tuple[Place, Any]]:
        """Return windows that end from ``first_ms`` to ``last_ms``, in the order of their ends."""
        found = self._store.range(_from(first_ms), _from(last_ms + 1))
        with found as pairs:
            return [(_place(entry), value) for entry, value in pairs]

    def ends(self) -> Iterator[int]:
        """Yield the ends of all windows, each once, in their order."""
        end_ms = self._first_end(-LIMIT_MS)
        while end_ms is not None:
            yield end_ms
            end_ms = self._first_end(end_ms + 1)

    def _first_end(self, from_ms: int) -> int | None:
        with self._store.range(_from(from_ms), "w0") as pairs:
            entry = next((entry for entry, _ in pairs), None)
        return None if entry is None else _place(entry).end_ms

    def sessions(self, key: str) -> list[Place]:
        """Return the sessions of ``key``, in the order of their starts.

        Memory has the sessions of keys read lately: a scan is the largest cost of a record.
        """
        known = self._known.pop(key, None)
        if known is None:
            prefix = _own(key)
            with self._store.prefix(prefix) as pairs:
                known = [Place(int(end), _time(entry[len(prefix) :]), key) for entry, end in pairs]
            if len(self._known) >= _KEYS:
                del self._known[next(iter(self._known))]
        self._known[key] = known
        return list(known)

    # -- facts

    def facts(self) -> dict[str, str]:
        """Return {fact: its text} of these windows."""
        with self._store.range("f/", "f0") as pairs:
            return dict(entry[2:].split("/", 1) for entry, _ in pairs)

    def put_facts(self, facts: Mapping[str, str]) -> None:
        """Put the facts, in place of former ones; TypeError where the store carries no times."""
        kept = self.facts()
        for fact, text in facts.items():
            if kept.get(fact) != text:
                if fact in kept:
                    self._store.delete(f"f/{fact}/{kept[fact]}")
                self._put_time(f"f/{fact}/{text}", _ANY_MS)

    # -- times

    def reached(self) -> int | None:
        """Return how far event time had come."""
        return self._time("t/")

    def put_reached(self, time_ms: int) -> None:
        """Put how far event time has come."""
        self._put_time("t/", time_ms)

    def newest(self, sources: Iterable[Hashable]) -> Iterator[tuple[Hashable, int]]:
        """Yield (source, newest time) of each that had one."""
        for source in sources:
            found = self._time(_source(source))
            if found is not None:
                yield source, found

    def put_newest(self, source: Hashable, time_ms: int) -> None:
        """Put the newest time of ``source``."""
        self._put_time(_source(source), time_ms)

    def _time(self, entry: str) -> int | None:
        found = self._store.get(entry)
        return None if found is None else int(found)

    def _put_time(self, entry: str, time_ms: int) -> None:
        if self._form is not None:
            self._store.put(entry, self._form(time_ms))
            return
        for form in _FORMS:
            try:
                self._store.put(entry, form(time_ms))
            except TypeError:
                continue
            self._form = form
            return
        raise TypeError(
            f"the store {self._name!r} cannot carry times: set stores.{self._name}.msg.serde to "
            "json, long, double, string or bytes"
        )


def _text(time_ms: int) -> str:
    """Return the time as text; texts sort by their bytes as the times do."""
    return f"{time_ms:015d}" if time_ms >= 0 else f"-{LIMIT_MS + time_ms:015d}"


def _time(text: str) -> int:
    return int(text[1:]) - LIMIT_MS if text[0] == "-" else int(text)


def _from(time_ms: int) -> str:
    return "w0" if time_ms >= LIMIT_MS else f"w/{_text(max(time_ms, -LIMIT_MS))}"


def _entry(place: Place) -> str:
    return f"w/{_text(place.end_ms)}/{_text(place.start_ms)}/{place.key}"


def _place(entry: str) -> Place:
    _, end, start, key = entry.split("/", 3)
    return Place(_time(end), _time(start), key)


def _own(key: str) -> str:
    return f"k/{len(key)}/{key}/"


def _session(place: Place) -> str:
    return f"{_own(place.key)}{_text(place.start_ms)}"


def _source(source: Hashable) -> str:
    return f"t/{'.'.join(map(str, source)) if isinstance(source, tuple) else source}"
