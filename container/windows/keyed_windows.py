"""Windows: aggregates per key and span of event time, over a store of the task's."""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, short_name
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.timers_section import TimersConfig, require_lateness
from homeport.container.api import IncomingMessage, KeyValueStore, MessageCollector, TaskContext
from homeport.container.progress.watermark import NO_TIME, Watermark, newest_times, sources_of
from homeport.container.serde.serdes import serde
from homeport.container.windows import facts
from homeport.container.windows.aggregates import (
    Aggregate,
    Late,
    OnLate,
    WindowResult,
    require_made,
)
from homeport.container.windows.partials import partials
from homeport.container.windows.spans import LIMIT_MS, Ends, Session, Span, whole_ms
from homeport.container.windows.window_store import Place, WindowStore

_LOG = logging.getLogger(__name__)

_OF_MESSAGE: Any = object()
_STRING = "string"
_NEVER = -(1 << 62)
"""Stands for an event time that is not known yet: no window ends then."""
_IN_USE: weakref.WeakKeyDictionary[KeyValueStore, weakref.ref[Windows]] = (
    weakref.WeakKeyDictionary()
)
"""The ``Windows`` that uses each store."""


def _require_carried(context: TaskContext, store: str, aggregate: Aggregate) -> None:
    """Require that a built-in serde of the store's values carries the first aggregate.

    ConfigError: it does not.
    """
    name, first = keys.STORE_MSG_SERDE.read(Config(context.config), store), aggregate.init()
    if name is None or _stands_for_none(first) or short_name(Kind.SERDE, name) is None:
        return
    try:
        serde(name).to_bytes(first)
    except TypeError as error:
        rule = f"it has the aggregates of windows, which begin with {first!r}: {error}"
        remedy = "write json, or the serde of their type"
        raise ConfigError(keys.STORE_MSG_SERDE.named(store), name, rule, remedy) from None


def _stands_for_none(first: object) -> bool:
    """Return whether no store keeps ``first``: None, or infinity, from which a minimum begins."""
    if isinstance(first, list | tuple | dict):
        return any(map(_stands_for_none, first.values() if isinstance(first, dict) else first))
    return first is None or (isinstance(first, float) and not math.isfinite(first))


class Windows:
    """The windows of one task in one store; a task makes them in its ``init``. Not thread-safe.

    The store has everything, also how far event time has come: a window is the same after any end
    of the container. A window closes once the watermark is at its end. The watermark is the oldest
    of the newest times of the task's partitions, less the lateness. A partition without a record
    for ``task.watermark.idle.ms`` does not count.

    Args:
        context: the task's.
        store: the name of a store of its own, with keys of the serde ``string`` and values of
            ``json``, or whatever of ``long``, ``double``, ``string`` and ``bytes`` the aggregates
            are.
        span: ``Tumbling``, ``Hopping`` or ``Session``.
        aggregate: how a window aggregates its records.
        emit: results come as a window closes, or with each update and not again.
        lateness_ms: how much older than the newest record one may be; None: the job's
            ``task.watermark.lateness.ms``, or 0.
        retention_ms: how much longer, in event time, a closed window can be read.
        on_late: gets each record that is too late or too far ahead; None: it is dropped. ``late``
            and ``ahead`` count it either way. ``task.watermark.ahead.ms`` defines too far.

    Raises:
        ConfigError: the serde of the store's values cannot carry the aggregate of no record, or
            ``task.max.concurrency`` is above 1 where neither a lateness nor ``on_late`` is given.
        KeyError: there is no such store.
        TypeError: an argument is of another kind, such as ms that are no whole number.
        ValueError: an argument does not fit, or differs from what made the store's windows.
    """

    def __init__(
        self,
        context: TaskContext,
        store: str,
        span: Span,
        aggregate: Aggregate,
        *,
        emit: Literal["close", "update"] = "close",
        lateness_ms: int | None = None,
        retention_ms: int = 0,
        on_late: OnLate | None = None,
    ) -> None:
        require_made(span, aggregate, on_late)
        has_sessions = isinstance(span, Session)
        if has_sessions and aggregate.merge is None:
            raise ValueError("sessions grow together: give merge, of two aggregates to one")
        if emit not in ("close", "update"):
            raise ValueError(f"emit={emit!r}: it must be 'close' or 'update'")
        if lateness_ms is not None:
            lateness_ms = whole_ms("lateness_ms", lateness_ms)
        retention_ms = whole_ms("retention_ms", retention_ms)
        if min(lateness_ms or 0, retention_ms) < 0:
            raise ValueError("lateness_ms and retention_ms must be at least 0")
        self.late = 0
        self.ahead = 0
        self._span = span
        self._has_sessions = has_sessions
        self._aggregate = aggregate
        self._emits_updates = emit == "update"
        self._retention_ms = retention_ms
        self._on_late = on_late
        self._scheduler = context.scheduler
        _require_carried(context, store, aggregate)
        config = Config(context.config)
        job = TimersConfig.of(config)
        lateness_ms = job.lateness_ms if lateness_ms is None else lateness_ms
        if on_late is None:  # else no record is lost
            require_lateness(store, keys.TASK_MAX_CONCURRENCY.read(config), lateness_ms)
        self._store = WindowStore(store, self._own_store(context, store), has_sessions=has_sessions)
        self._keep_facts(store, emit)
        self._ahead_ms = job.ahead_ms
        now_ms = self._scheduler.now_ms
        self._watermark = Watermark(context.partitions, lateness_ms or 0, job.idle_ms, now_ms)
        for source, newest_ms in self._store.newest(context.partitions):
            self._watermark.saw(source, newest_ms, now_ms)
        reached = self._store.reached()
        self._closed = _NEVER if reached is None else reached
        if reached is not None:
            self._watermark.reach(reached)
        self._ends = Ends(self._closed, self._store.ends())

    def _own_store(self, context: TaskContext, name: str) -> KeyValueStore:
        store = context.store(name)
        configured = StorageConfig.of(Config(context.config)).stores.get(name)
        serde = _STRING if configured is None else configured.key_serde
        if self._has_sessions and serde != _STRING:
            raise ValueError(
                f"{keys.STORE_KEY_SERDE.named(name)}={serde}: sessions are found by the order of "
                f"text: set it to {_STRING}"
            )
        other = _IN_USE.get(store)
        if other is not None and other() is not None:
            raise ValueError(
                f"the store {name!r} has windows already: give each a store of its own"
            )
        _IN_USE[store] = weakref.ref(self)
        return store

    def _keep_facts(self, store: str, emit: str) -> None:
        own = self._aggregate
        now = {facts.SPAN: self._span.text, facts.EMIT: emit}
        kind = facts.kind_of(own.init())
        if kind is not None:
            now[facts.KIND] = kind
        if own.name is not None:
            now[facts.NAME] = own.name
        now[facts.CODE] = facts.code_of(own.init, own.add, own.merge)
        reason = facts.changed(store, self._store.facts(), now)
        if reason is not None:
            raise ValueError(reason)
        self._store.put_facts(now)

    @property
    def watermark_ms(self) -> int | None:
        """Return how far event time has come; None before it is known."""
        return None if self._closed == _NEVER else self._closed

    def add(
        self,
        message: IncomingMessage,
        collector: MessageCollector,
        *,
        key: str | None = None,
        value: Any = _OF_MESSAGE,  # noqa: ANN401 - a user's value
        at_ms: int | None = None,
    ) -> list[WindowResult]:
        """Add the record to its windows, and advance event time.

        Args:
            message: the record; the other arguments replace its parts.
            collector: for ``on_late``.
            key: the key of the windows, a str.
            value: the value for the aggregate's ``add``.
            at_ms: its event time, in ms since 1970; earlier times are negative.

        Returns:
            The updated windows, with emit="update"; else the closed ones, by their end.

        Raises:
            TypeError: the key is no str, or the store cannot carry an aggregate.
            ValueError: the record has no time.
        """
        own = _checked_key(message.key if key is None else key)
        what = message.value if value is _OF_MESSAGE else value
        time_ms = _checked_time(message, at_ms)
        if time_ms > self._last_ms:
            self._lose([Late(own, what, time_ms, is_ahead=True)], collector, ahead=1)
            return []
        if time_ms < self._span.reach_ms - LIMIT_MS:
            self._lose([Late(own, what, time_ms)], collector, late=1)
            return []
        add = self._add_to_session if self._has_sessions else self._add_to_fixed
        results = add(own, what, time_ms)
        if results is None:
            self._lose([Late(own, what, time_ms)], collector, late=1)
        sources: Sequence[Hashable] = self._watermark.sources
        if message.partition >= 0:
            place = (message.system, message.stream, message.partition)
            sources = sources_of(sources, place if message.system else place[1:])
        return [*(results or ()), *self._saw([(place, time_ms) for place in sources])]

    def add_table(
        self,
        table: pa.Table,
        collector: MessageCollector,
        aggregates: Sequence[tuple[str, str]],
        *,
        key: str = "key",
        at: str = "timestamp",
    ) -> list[WindowResult]:
        """Add all rows to their windows; Arrow sums them, and ``add`` gets one value per window.

        That value is a dict of the columns that Arrow makes, such as ``{"miles_sum": 12}``. A row
        is late if its windows were closed before the table.

        Args:
            table: rows of a BatchTask.
            collector: for ``on_late``.
            aggregates: (column, function) of Arrow's group_by, such as ("miles", "sum").
            key: the column of the key.
            at: the column of the event time, a timestamp or ms since 1970.

        Returns:
            As ``add``.

        Raises:
            TypeError: the windows are sessions, which need record after record.
            ValueError: a row has no key or no time.
        """
        if isinstance(self._span, Session):
            raise TypeError("sessions take one record after the other: use add")
        found = partials(table, self._span, self._closed, self._last_ms, aggregates, key, at)
        lost = [Late(*late) for late in found.late()] if self._on_late is not None else []
        self._lose(lost, collector, found.too_late.num_rows, found.ahead.num_rows)
        before = self._store.get_all(found.windows)
        windows = {}
        for place, value in found.windows.items():
            aggregate = before[place] if place in before else self._new(place)
            windows[place] = _kept(self._aggregate.add(aggregate, value))
        results = self._put(windows)
        return [*results, *self._saw(newest_times(found.timed, at, self._watermark.sources))]

    def advance(self, to_ms: int | None = None) -> list[WindowResult]:
        """Advance event time to at least ``to_ms``; return windows that closed. For idle input.

        Call it from ``window`` or ``on_timer``. None: event time is as far as the partitions that
        are not idle let it be.
        """
        if to_ms is not None:
            self._watermark.reach(whole_ms("to_ms", to_ms))
        return self._saw([])

    def at(self, key: str, time_ms: int) -> list[WindowResult]:
        """Return the windows of ``key`` that have ``time_ms``: open ones, and kept closed ones."""
        time_ms = whole_ms("time_ms", time_ms)
        if self._has_sessions:
            places = [p for p in self._store.sessions(key) if p.start_ms <= time_ms < p.end_ms]
        else:
            places = self._places(key, time_ms)
        found = self._store.get_all(places)
        return [self._result(place, found[place]) for place in places if place in found]

    # -- one record

    def _add_to_fixed(
        self,
        key: str,
        value: Any,  # noqa: ANN401 - a user's value
        time_ms: int,
    ) -> list[WindowResult] | None:
        """Return updates; None: the record is too late."""
        windows = {}
        for place in self._places(key, time_ms):
            if place.end_ms > self._closed:
                before = self._store.get(place)
                aggregate = self._new(place) if before is None else before
                windows[place] = _kept(self._aggregate.add(aggregate, value))
        return self._put(windows) if windows else None

    def _add_to_session(
        self,
        key: str,
        value: Any,  # noqa: ANN401 - a user's value
        time_ms: int,
    ) -> list[WindowResult] | None:
        """Return updates; None: the record is too late."""
        (new,) = self._places(key, time_ms)
        met = [
            place
            for place in self._store.sessions(key)
            if place.end_ms > max(new.start_ms, self._closed) and place.start_ms < new.end_ms
        ]
        whole = Place(
            max(place.end_ms for place in (new, *met)),
            min(place.start_ms for place in (new, *met)),
            key,
        )
        if whole.end_ms <= self._closed:
            return None
        found = self._store.get_all(met)
        aggregate = found[met[0]] if met else self._aggregate.init()
        for place in met[1:]:
            aggregate = self._merged(aggregate, found[place])
        # The job's own code runs before any change: it may raise.
        aggregate = _kept(self._aggregate.add(aggregate, value))
        gone = [place for place in met if place != whole]
        self._store.delete_all(gone)
        for place in gone:
            self._ends.remove(place.end_ms)
        if whole not in met:
            self._ends.add(whole.end_ms)
        results = self._put({whole: aggregate})
        if not self._emits_updates:
            return results
        swallowed = [place for place in gone if place.start_ms != whole.start_ms]
        return [*(self._result(place, None) for place in swallowed), *results]

    def _merged(self, one: Any, other: Any) -> Any:  # noqa: ANN401 - a user's values
        return one if self._aggregate.merge is None else _kept(self._aggregate.merge(one, other))

    # -- inside

    def _places(self, key: str, time_ms: int) -> list[Place]:
        return [Place(end_ms, start_ms, key) for start_ms, end_ms in self._span.windows(time_ms)]

    @property
    def _last_ms(self) -> int:
        last_ms = LIMIT_MS - 1 - self._span.reach_ms
        if self._ahead_ms is None:
            return last_ms
        return min(last_ms, self._scheduler.now_ms + self._ahead_ms)

    def _new(self, place: Place) -> Any:  # noqa: ANN401 - a user's value
        self._ends.add(place.end_ms)
        return self._aggregate.init()

    def _put(self, windows: Mapping[Place, Any]) -> list[WindowResult]:
        if not windows:
            return []
        self._store.put_all(windows)
        if not self._emits_updates:
            return []
        return [self._result(place, value) for place, value in windows.items()]

    def _saw(self, times: Iterable[tuple[Any, int]]) -> list[WindowResult]:
        now_ms = self._scheduler.now_ms
        for source, time_ms in times:
            is_newest = self._watermark.saw(source, time_ms, now_ms)
            if is_newest and len(self._watermark.sources) > 1:
                self._store.put_newest(source, time_ms)
        reached = self._watermark.at(now_ms)
        return [] if reached is None or reached <= self._closed else self._close(reached)

    def _close(self, to_ms: int) -> list[WindowResult]:
        before = self._closed
        self._closed = to_ms
        self._store.put_reached(to_ms)
        ended = self._store.ending(before + 1, to_ms) if self._ends.close(to_ms) else []
        until_ms = to_ms - self._retention_ms
        first = self._ends.purge(until_ms)
        if first is not None:
            is_read = first > before and until_ms == to_ms
            gone = ended if is_read else self._store.ending(first, until_ms)
            self._store.delete_all(place for place, _ in gone)
        if self._emits_updates:
            return []
        return [self._result(place, value) for place, value in ended]

    def _result(self, place: Place, value: Any) -> WindowResult:  # noqa: ANN401 - a user's value
        is_final = place.end_ms <= self._closed
        return WindowResult(place.key, place.start_ms, place.end_ms, value, is_final)

    def _lose(
        self, records: Sequence[Late], collector: MessageCollector, late: int = 0, ahead: int = 0
    ) -> None:
        before = self.late, self.ahead
        self.late += late
        self.ahead += ahead
        if _is_logged(before[0], self.late):
            _LOG.warning("%d records were too late for their windows so far", self.late)
        if _is_logged(before[1], self.ahead):
            _LOG.warning(
                "%d records were too far ahead of the clock for windows so far: their time is "
                "beyond %d ms since 1970",
                self.ahead,
                self._last_ms,
            )
        if self._on_late is not None:
            for record in records:
                self._on_late(record, collector)


def _is_logged(before: int, now: int) -> bool:
    return now > before and (len(str(before)) < len(str(now)) or before == 0)


def _checked_time(message: IncomingMessage, at_ms: int | None) -> int:
    if at_ms is None and message.timestamp == NO_TIME:
        raise ValueError(
            f"{message.stream} partition {message.partition} offset {message.offset} has no "
            "timestamp: give at_ms"
        )
    return whole_ms("at_ms", message.timestamp if at_ms is None else at_ms)


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(
            f"the key of a window must be str, not {type(key).__name__}: give key=, or set the "
            "stream's samza.key.serde to string"
        )
    return key


def _kept(aggregate: Any) -> Any:  # noqa: ANN401 - a user's value
    if aggregate is None:
        raise ValueError("add and merge must return an aggregate, and None is none")
    return aggregate
