"""The metrics of a job's own: what its tasks count, set and observe in one container.

They begin at 0 with the container, and their number has a limit: a label with ever new values
costs series, not memory.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from homeport.container.api import Counter, Gauge, Histogram
from homeport.job_coordinator.status.figures import Sample
from homeport.job_coordinator.status.own_metrics import (
    BOUNDS,
    COUNTER,
    GAUGE,
    HISTOGRAM,
    TASK,
    Labels,
    OwnMetric,
    checked_bounds,
    checked_labels,
)

_LOG = logging.getLogger(__name__)
MOST_SERIES = 256
"""Of one container; a gauge has one for each task."""
_LARGEST = sys.float_info.max
_Made = TypeVar("_Made", bound="_Series")


class _Series:
    """One series of a container; any thread may change it."""

    kind: str
    value: float

    def __init__(self, name: str, labels: Labels, bounds: tuple[float, ...]) -> None:
        self._lock = threading.Lock()
        self.name, self.labels, self.bounds = name, labels, bounds
        self.value = 0.0
        self.buckets = [0] * (len(bounds) + 1 if bounds else 0)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.sampled().series}: {self.value:.15g}>"

    def sampled(self) -> OwnMetric:
        with self._lock:
            value, buckets = max(-_LARGEST, min(self.value, _LARGEST)), tuple(self.buckets)
        return OwnMetric(self.name, self.kind, self.labels, value, self.bounds, buckets)

    def _number(self, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"metric {self.name!r}: {value!r} is no finite number")
        return number


class _Counter(_Series):
    kind = COUNTER

    def inc(self, amount: float = 1) -> None:
        number = self._number(amount)
        if number < 0:
            raise ValueError(f"metric {self.name!r}: a counter only grows: {amount!r} is below 0")
        with self._lock:
            self.value += number


class _Gauge(_Series):
    kind = GAUGE

    def set(self, value: float) -> None:
        self.value = self._number(value)

    def inc(self, amount: float = 1) -> None:
        number = self._number(amount)
        with self._lock:
            self.value += number


class _Histogram(_Series):
    kind = HISTOGRAM

    def observe(self, value: float) -> None:
        number = self._number(value)
        with self._lock:
            self.buckets[bisect_left(self.bounds, number)] += 1
            self.value += number


class OwnMetrics:
    """All series of one container."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[tuple[str, Labels], _Series] = {}
        self._shapes: dict[str, tuple[object, ...]] = {}
        self._refused = 0

    def of_task(self, task_name: str) -> TaskMetrics:
        """Return the metrics as one task uses them."""
        return TaskMetrics(self, task_name)

    def sampled(self) -> tuple[OwnMetric, ...]:
        """Return all series as they are now."""
        return tuple(series.sampled() for series in list(self._series.values()))

    def figures(self) -> Iterator[Sample]:
        """Yield how often a series was refused, if one was."""
        if self._refused:
            yield Sample("own_series_refused", (), self._refused)

    def found(
        self,
        known: dict[tuple[object, ...], Any],
        kind: type[_Made],
        name: str,
        labels: dict[str, str],
        bounds: Sequence[float] = (),
        task: str | None = None,
    ) -> _Made:
        """Return the series, which is kept in ``known`` too; at the limit a new one is not.

        Raises:
            ValueError: its name, labels or bounds break a rule, or differ from those before.
        """
        place = (kind, name, bounds, *labels.items())
        try:
            found: _Made | None = known.get(place)
        except TypeError:  # no label can have such a value: the line comes from below
            found = None
        if found is not None:
            return found
        own = checked_labels(name, labels)
        limits = checked_bounds(name, bounds) if kind is _Histogram else ()
        shape = (kind.kind, tuple(label for label, _ in own), limits)
        if task is not None:
            own = (*own, (TASK, task))
        with self._lock:
            before = self._shapes.get(name, shape)
            if before != shape:
                raise ValueError(
                    f"metric {name!r}: it is a {_shape_text(before)}, and here a "
                    f"{_shape_text(shape)}: give it another name"
                )
            found = cast("_Made | None", self._series.get((name, own)))  # by its shape
            if found is None:
                found = kind(name, own, limits)
                if len(self._series) >= MOST_SERIES:
                    self._refuse(found)
                    return found
                self._series[name, own], self._shapes[name] = found, shape
        known[place] = found
        return found

    def _refuse(self, series: _Series) -> None:
        self._refused += 1
        if self._refused == 1:
            _LOG.warning(
                "the metric %s is not reported: the container has %d series of the job's own, the "
                "most that it keeps: give labels few values",
                series.sampled().series,
                MOST_SERIES,
            )


def _shape_text(shape: tuple[Any, ...]) -> str:
    kind, labels, bounds = shape
    return f"{kind} with labels {labels}" + (f" and bounds {bounds}" if bounds else "")


class TaskMetrics:
    """Implements ``homeport.container.api.Metrics`` for one task."""

    def __init__(self, own: OwnMetrics, task_name: str) -> None:
        self._own, self._task_name = own, task_name
        self._known: dict[tuple[object, ...], Any] = {}

    def counter(self, name: str, /, **labels: str) -> Counter:
        """Return the counter; see ``Metrics``."""
        return self._own.found(self._known, _Counter, name, labels)

    def gauge(self, name: str, /, **labels: str) -> Gauge:
        """Return the gauge; see ``Metrics``."""
        return self._own.found(self._known, _Gauge, name, labels, task=self._task_name)

    def histogram(self, name: str, bounds: Sequence[float] = BOUNDS, /, **labels: str) -> Histogram:
        """Return the histogram; see ``Metrics``."""
        given: Any = bounds
        if isinstance(given, Iterable):  # else it is refused, with the name
            given = tuple(given)
        return self._own.found(self._known, _Histogram, name, labels, given)

    def __repr__(self) -> str:
        return repr(list(self._known.values()))
