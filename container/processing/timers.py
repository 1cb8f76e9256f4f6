"""Timers: the scheduled calls of one task, in memory or in a store of the task."""

import heapq
import math
from collections.abc import Callable, Collection, Mapping

import pyarrow as pa

from homeport.config.settings.timers_section import TimersConfig
from homeport.config.system_stream import SystemStream
from homeport.container.api import KeyValueStore, Timer
from homeport.container.host.run_over import OVER
from homeport.container.progress.watermark import Watermark, newest_times
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.model.job_model import TaskModel

_MS_PER_S = 1000
_SPARE = 64
_EVENT, _CLOCK = "event", "clock"
_LIMIT_MS = 1 << 63

Partitions = tuple[tuple[str, str, int], ...]


class Timers:
    """Implements ``homeport.container.api.Scheduler`` for one task. Not thread-safe.

    ``store``: keeps the timers, {``kind/name/key``: time}; None: they are only in memory.
    ``ahead_ms``: records further ahead of the clock do not advance event time; None: all do.
    ``on_schedule``: called with each timer that is scheduled.

    Raises:
        ValueError: the store has an entry that is no timer.
    """

    def __init__(
        self,
        now_ms: Callable[[], int] = wall_ms,
        watermark: Watermark | None = None,
        store: KeyValueStore | None = None,
        ahead_ms: int | None = None,
    ) -> None:
        self._ahead_ms = ahead_ms
        self._now_ms = now_ms
        self._watermark = watermark
        self._store = store
        self.on_schedule: Callable[[], object] = _nothing
        self._timers: dict[tuple[str, str], Timer] = {}
        self._heaps: dict[bool, list[tuple[int, str, str]]] = {False: [], True: []}
        for entry, at_ms in store.all() if store is not None else ():
            kind, *parts = entry.split("/", 2)
            if kind not in (_EVENT, _CLOCK) or len(parts) != 2:  # noqa: PLR2004 - name and key
                raise ValueError(
                    f"the store of timers has an entry {entry!r}, which is none: task.timers.store "
                    "needs a store that nothing else has written"
                )
            name, key = parts
            self._add(Timer(name, key, at_ms, kind == _EVENT))

    # -- what a task calls

    @property
    def now_ms(self) -> int:
        """Return the time of the clock, in ms since 1970."""
        return self._now_ms()

    @property
    def watermark_ms(self) -> int | None:
        """Return the event time; None before it is known."""
        return None if self._watermark is None else self._watermark.at(self._now_ms())

    def schedule(
        self, name: str, key: str = "", *, at_ms: int | None = None, after_ms: int | None = None
    ) -> None:
        """Schedule the timer for that time of the clock.

        Raises:
            ValueError: not exactly one time is given, or it is no time to come.
        """
        if (at_ms is None) is (after_ms is None):
            raise ValueError(f"the timer {name!r} needs one of at_ms and after_ms")
        if after_ms is not None and after_ms < 1:
            raise ValueError(f"the timer {name!r} has after_ms={after_ms}, it must be at least 1")
        due_ms = at_ms if after_ms is None else self._now_ms() + after_ms
        self._put(name, key, due_ms, is_event_time=False)

    def schedule_event(self, name: str, key: str = "", *, at_ms: int) -> None:
        """Schedule the timer for that time of the input.

        Raises:
            ValueError: the job has no event time.
        """
        if self._watermark is None:
            raise ValueError(
                f"the timer {name!r} is one of event time, of which the job has none: set "
                "task.watermark.lateness.ms"
            )
        self._put(name, key, at_ms, is_event_time=True)

    def scheduled(self, name: str, key: str = "") -> Timer | None:
        """Return the timer of that name and key."""
        _require_text(name, key)
        return self._timers.get((name, key))

    def cancel(self, name: str, key: str = "") -> None:
        """Cancel the timer of that name and key."""
        _require_text(name, key)
        timer = self._timers.pop((name, key), None)
        if timer is not None and self._store is not None:
            self._store.delete(_entry(timer))

    # -- what its container calls

    def saw(self, rows: pa.Table) -> None:
        """Advance event time by rows that the task has processed."""
        watermark = self._watermark
        if watermark is not None and "timestamp" in rows.column_names:
            now_ms = self._now_ms()
            last_ms = None if self._ahead_ms is None else now_ms + self._ahead_ms
            found = newest_times(rows, "timestamp", watermark.sources, last_ms)
            for source, newest_ms in found:
                watermark.saw(source, newest_ms, now_ms)

    @property
    def is_empty(self) -> bool:
        """Return whether no timer is scheduled."""
        return not self._timers

    def wait_s(self) -> float:
        """Return the seconds until a timer is due; infinite if none will be without more input."""
        if not self._timers:
            return math.inf
        now_ms = self._now_ms()
        waits = [math.inf]
        clock = self._first(is_event_time=False)
        if clock is not None:
            waits.append(clock.at_ms - now_ms)
        event = self._first(is_event_time=True)
        if event is not None and self._watermark is not None:
            reached_ms = self._watermark.at(now_ms)
            if reached_ms is not None and reached_ms >= event.at_ms:
                return 0.0
            idle_ms = self._watermark.idles_at_ms(now_ms)
            waits.append(math.inf if idle_ms is None else idle_ms - now_ms)
        return max(0.0, min(waits) / _MS_PER_S)

    def due(self, limit: int) -> list[Timer]:
        """Return due timers, ``limit`` at most: first the clock's, by time; all stay scheduled."""
        if not self._timers:
            return []
        found: list[Timer] = []
        limits = ((False, self._now_ms()), (True, self.watermark_ms))
        for is_event_time, until_ms in limits:
            taken: list[tuple[int, str, str]] = []
            while until_ms is not None and len(found) < limit:
                timer = self._first(is_event_time=is_event_time)
                if timer is None or timer.at_ms > until_ms:
                    break
                found.append(timer)
                taken.append(heapq.heappop(self._heaps[is_event_time]))
            for item in taken:
                heapq.heappush(self._heaps[is_event_time], item)
        return found

    def take(self, timer: Timer) -> bool:
        """Remove the timer; return whether it was scheduled, for that time."""
        if self._timers.get((timer.name, timer.key)) != timer:
            return False
        self.cancel(timer.name, timer.key)
        return True

    def end(self) -> None:
        """Refuse every further call: the run that this is of has ended."""
        self._timers = self._heaps = self._now_ms = OVER

    # -- inside

    def _put(self, name: str, key: str, at_ms: object, *, is_event_time: bool) -> None:
        # All is checked before anything is written.
        _require_text(name, key)
        if "/" in name:
            raise ValueError(f"the name of the timer {name!r} has a '/': use another sign")
        timer = Timer(name, key, _checked_time(name, at_ms), is_event_time)
        before = self._timers.get((timer.name, timer.key))
        if before == timer:
            return
        if self._store is not None:
            if before is not None and before.is_event_time is not timer.is_event_time:
                self._store.delete(_entry(before))
            self._store.put(_entry(timer), timer.at_ms)
        self._add(timer)

    def _add(self, timer: Timer) -> None:
        self._timers[timer.name, timer.key] = timer
        self.on_schedule()
        heap = self._heaps[timer.is_event_time]
        heapq.heappush(heap, (timer.at_ms, timer.name, timer.key))
        if len(heap) > 2 * len(self._timers) + _SPARE:
            # Most entries are of timers that were cancelled or moved.
            heap[:] = [
                (t.at_ms, t.name, t.key)
                for t in self._timers.values()
                if t.is_event_time is timer.is_event_time
            ]
            heapq.heapify(heap)

    def _first(self, *, is_event_time: bool) -> Timer | None:
        """Return the next timer of its kind; drop outdated entries before it in the heap."""
        heap = self._heaps[is_event_time]
        while heap:
            at_ms, name, key = heap[0]
            timer = self._timers.get((name, key))
            if timer is not None and timer == Timer(name, key, at_ms, is_event_time):
                return timer
            heapq.heappop(heap)
        return None


def _nothing() -> None:
    pass


def timers_of(
    settings: TimersConfig,
    task: TaskModel,
    stores: Mapping[str, KeyValueStore],
    now_ms: Callable[[], int] = wall_ms,
    unseen: Collection[SystemStream] = (),
) -> Timers:
    """Return the timers of one task at its start; its stores are restored."""
    watermark = None
    if settings.lateness_ms is not None:
        sources = partitions_of(task, unseen)
        watermark = Watermark(sources, settings.lateness_ms, settings.idle_ms, now_ms())
    store = None if settings.store is None else stores[settings.store]
    return Timers(now_ms, watermark, store, settings.ahead_ms)


def partitions_of(task: TaskModel, unseen: Collection[SystemStream] = ()) -> Partitions:
    """Return (system, stream, partition) of each input that the task sees, sorted."""
    return tuple(
        sorted(
            (ssp.system, ssp.stream, ssp.partition)
            for ssp in task.system_stream_partitions
            if ssp.system_stream not in unseen
        )
    )


def _require_text(name: object, key: object) -> None:
    for what, text in (("name", name), ("key", key)):
        if not isinstance(text, str):
            remedy = "give text, as str() makes it"
            if text is None:  # whose text would be that of each record without a key
                remedy = "give text of its own, such as a field of the value"
            elif isinstance(text, bytes):
                remedy = "decode it, or set the stream's samza.key.serde to string"
            kind = type(text).__name__
            raise TypeError(f"the {what} of a timer must be str, not {kind}: {remedy}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"the {what} of a timer, {text!r}, has half a surrogate pair, which no text in "
                "UTF-8 can have"
            ) from None


def _checked_time(name: str, at_ms: object) -> int:
    if not isinstance(at_ms, int | float) or isinstance(at_ms, bool):
        raise TypeError(f"the timer {name!r} has the time {at_ms!r}: give ms since 1970 as int")
    if not -_LIMIT_MS <= at_ms < _LIMIT_MS:
        raise ValueError(f"the timer {name!r} has the time {at_ms!r}: it must fit into 64 bits")
    return int(at_ms)


def _entry(timer: Timer) -> str:
    return f"{_EVENT if timer.is_event_time else _CLOCK}/{timer.name}/{timer.key}"
