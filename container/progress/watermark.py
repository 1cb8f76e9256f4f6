"""Watermark: the event time that was reached, by the newest time of each source.

PURE. Times are the caller's, in ms since 1970.
"""

from collections.abc import Hashable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_PLACE = ["system", "stream", "partition"]
_OF_KAFKA = "timestamp"
NO_TIME = -1
"""The timestamp of a record without one, in Kafka and in the column of a batch."""


class Watermark:
    """The event time that was reached: the minimum of the sources' newest times, less the lateness.

    It never goes back. A source that has brought no record for ``idle_ms`` is idle, and does not
    count while another is not; None: no source is ever idle. ``sources``: all that may bring
    records; a further one counts from its first time on. ``now_ms``: from then on sources without
    records are silent.
    """

    def __init__(
        self, sources: Iterable[Hashable], lateness_ms: int, idle_ms: int | None, now_ms: int
    ) -> None:
        self._lateness_ms = lateness_ms
        self._idle_ms = idle_ms
        self._newest: dict[Hashable, int | None] = dict.fromkeys(sources)
        self._heard_ms = dict.fromkeys(self._newest, now_ms)
        self._reached: int | None = None

    @property
    def sources(self) -> tuple[Hashable, ...]:
        """Return all known sources."""
        return tuple(self._newest)

    def saw(self, source: Hashable, time_ms: int, now_ms: int) -> bool:
        """Note that ``source`` has brought this time; return whether it is its newest."""
        self._heard_ms[source] = now_ms
        newest = self._newest.get(source)
        if newest is not None and time_ms <= newest:
            return False
        self._newest[source] = time_ms
        return True

    def reach(self, time_ms: int) -> None:
        """Advance to ``time_ms`` at least, whatever the sources have brought."""
        if self._reached is None or time_ms > self._reached:
            self._reached = time_ms

    def at(self, now_ms: int) -> int | None:
        """Return the event time that was reached; None before a source has brought a time."""
        newest = list(self._newest.values())
        if len(newest) > 1 and self._idle_ms is not None:
            newest = [
                time_ms
                for source, time_ms in self._newest.items()
                if now_ms - self._heard_ms[source] < self._idle_ms
            ]
        times = [time_ms for time_ms in newest if time_ms is not None]
        if times and len(times) == len(newest):
            self.reach(min(times) - self._lateness_ms)
        return self._reached

    def idles_at_ms(self, now_ms: int) -> int | None:
        """Return when the next source that is not idle becomes so; None: none will."""
        if self._idle_ms is None or len(self._newest) == 1:
            return None
        ends = [heard_ms + self._idle_ms for heard_ms in self._heard_ms.values()]
        return min((end_ms for end_ms in ends if end_ms > now_ms), default=None)


def times_of(rows: pa.Table, column: str) -> pa.ChunkedArray:
    """Return times as ms since 1970, null for none; from timestamps, or from numbers of ms."""
    times = rows.column(column)
    if pa.types.is_timestamp(times.type):
        # Not by a cast alone: of times before 1970 it would leave out parts of a ms upwards.
        whole = pc.floor_temporal(times, unit="millisecond")
        return whole.cast(pa.timestamp("ms", times.type.tz)).cast(pa.int64())
    times = times.cast(pa.int64())
    if column != _OF_KAFKA:
        return times
    return pc.if_else(pc.equal(times, NO_TIME), pa.scalar(None, pa.int64()), times)


def newest_times(
    rows: pa.Table, column: str, sources: Sequence[Hashable], last_ms: int | None = None
) -> list[tuple[Hashable, int]]:
    """Return (source, its newest time) of each that has rows with a time.

    A source is (system, stream, partition). A column that has neither whole numbers nor timestamps,
    as a pipeline may make, has no time. ``last_ms``: a later time does not count. Rows without
    columns for their source, as a pipeline may leave them, are of all ``sources`` that these
    columns leave.
    """
    kind = rows.column(column).type
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        return []
    at = rows.column_names.index(column)
    rows = rows.set_column(at, column, times_of(rows, column))
    if last_ms is not None:
        rows = rows.filter(pc.less_equal(rows.column(column), last_ms))
    place = [name for name in _PLACE if name in rows.column_names]
    if len(sources) == 1 or place[-2:] != _PLACE[-2:]:
        newest = pc.max(rows.column(column)).as_py()
        found = [(source, newest) for source in sources]
    else:
        groups = rows.group_by(place).aggregate([(column, "max")])
        columns = [groups.column(name).to_pylist() for name in (*place, f"{column}_max")]
        found = [
            (source, at)
            for *parts, at in zip(*columns, strict=True)
            for source in sources_of(sources, parts)
        ]
    return [(source, newest) for source, newest in found if newest is not None]


def sources_of(sources: Sequence[Hashable], place: Sequence[object]) -> Sequence[Hashable]:
    """Return the source (system, stream, partition); of ``place`` without a system, all such."""
    if len(place) == len(_PLACE):
        return [tuple(place)]
    return [source for source in sources if isinstance(source, tuple) and source[1:] == (*place,)]
