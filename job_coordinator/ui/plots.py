"""What each container did over the last hour, in points of 15 seconds: lag, records, times.

PURE. Only the process that serves the dashboard keeps the points, in memory: a new driver begins
without any. Four numbers of 4 bytes for each of 240 points are 3,840 bytes for a container. For a
job with more than 1,000 containers nothing is kept, so that all takes at most 3.84 MB.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, Final

from homeport.job_coordinator.status.container_report import ContainerReport, StageTime
from homeport.job_coordinator.status.shape import ShownContainer

STEP_MS: Final = 15_000
"""Time between two points."""
POINTS: Final = 240
MAX_CONTAINERS: Final = 1_000
NAMES: Final = ("lag", "records_per_s", "batch_ms", "commit_ms")
"""The series of a container: offsets that it has not read; records per second; mean time for a
batch, and for a transaction's end, in ms."""

_BATCH: Final = ("tasks", "pipeline")
_DIGITS: Final = 3
_BACK: Final = 4
"""How many points a minute has."""
_MS_PER_S: Final = 1000


@dataclass(frozen=True, slots=True)
class _Counters:
    epoch: int
    at_ms: int
    processed: int
    batch: tuple[int, int]
    commit: tuple[int, int]


@dataclass(slots=True)
class _Series:
    """The points of one container; slot ``n % POINTS`` has point ``n``."""

    values: tuple[array[float], ...] = field(
        default_factory=lambda: tuple(array("f", [nan]) * POINTS for _ in NAMES)
    )
    last: _Counters | None = None


class Plots:
    """The points of all containers, which are taken at the same times."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._newest = 0

    def __len__(self) -> int:
        return len(self._series)

    def take(self, containers: Sequence[ShownContainer], now_ms: int) -> None:
        """Take a point of each container in the status; forget containers that are gone.

        A second call within one point replaces the first. ``now_ms``: the time of a clock that
        never goes back.
        """
        if len(containers) > MAX_CONTAINERS:
            self._series.clear()
            return
        known, self._series = self._series, {}
        point = now_ms // STEP_MS
        for container in containers:
            name = container.processor_id
            series = self._series[name] = known.get(name) or _Series()
            for missed in range(max(self._newest, point - POINTS) + 1, point):
                _put(series, missed, (nan,) * len(NAMES))
            _put(series, point, _numbers(series, container, now_ms))
        self._newest = point

    def newest(self, name: str) -> dict[str, float | None]:
        """Return the newest point of one container, by series; None: not known."""
        series = self._series.get(name)
        if series is None:
            return dict.fromkeys(NAMES)
        slot = self._newest % POINTS
        return {n: _shown(v[slot]) for n, v in zip(NAMES, series.values, strict=True)}

    def caught_up_in_s(self, name: str) -> float | None:
        """Return the time to lag 0 at the last minute's rate; None if the lag did not fall."""
        series = self._series.get(name)
        if series is None:
            return None
        lags = series.values[0]
        now, before = (lags[(self._newest - back) % POINTS] for back in (0, _BACK))
        if isnan(now) or isnan(before) or not 0 < now < before:
            return None
        return round(now / (before - now) * _BACK * STEP_MS / _MS_PER_S, 1)

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the body of ``GET /ui/plots``: the four series of each known container.

        Order: the oldest point first. Shapes: ``step_ms``, between two points; 240 values in each
        series, null where not known.
        """
        first = self._newest + 1
        slots = [n % POINTS for n in range(first, first + POINTS)]
        return {
            "step_ms": STEP_MS,
            "series": {
                name: {
                    series_name: [_shown(values[slot]) for slot in slots]
                    for series_name, values in zip(NAMES, series.values, strict=True)
                }
                for name in names
                if (series := self._series.get(name)) is not None
            },
        }


def _put(series: _Series, point: int, numbers: Sequence[float]) -> None:
    for values, number in zip(series.values, numbers, strict=True):
        values[point % POINTS] = number


def _numbers(series: _Series, container: ShownContainer, now_ms: int) -> tuple[float, ...]:
    report = container.report or ContainerReport()
    lag = container.lag if container.is_standby else report.input_lag
    before, series.last = series.last, _counters(container, report, now_ms)
    found = nan if lag is None else float(lag)
    last = series.last
    if before is None or last is None or last.epoch != before.epoch or last.at_ms <= before.at_ms:
        return (found, nan, nan, nan)
    rate = (last.processed - before.processed) * _MS_PER_S / (last.at_ms - before.at_ms)
    return (found, rate, _mean(before.batch, last.batch), _mean(before.commit, last.commit))


def _counters(container: ShownContainer, report: ContainerReport, now_ms: int) -> _Counters | None:
    if report.processed is None:
        return None
    stages = {stage.stage: stage for stage in report.stages}
    batch = [stages[name] for name in _BATCH if name in stages]
    sending = stages.get("sending", StageTime("sending", 0))
    return _Counters(
        container.epoch or 0,
        now_ms,
        report.processed,
        # Each stage of a batch works once in it.
        (sum(stage.ms for stage in batch), (batch[0].times if batch else 0) or 0),
        (sending.ms, sending.times or 0),
    )


def _mean(before: tuple[int, int], after: tuple[int, int]) -> float:
    times = after[1] - before[1]
    return (after[0] - before[0]) / times if times > 0 else nan


def _shown(value: float) -> float | None:
    return None if isnan(value) else round(value, _DIGITS)
