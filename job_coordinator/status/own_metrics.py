"""The metrics of a job's own, in a container's report. PURE.

A container reports each of its series; ``/metrics`` shows them as ``job_<name>``. Counters and
histograms are of all tasks of the container, a gauge of one task.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import msgspec

from homeport.job_coordinator.model.wire_form import Long

PREFIX: Final = "job_"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
TASK: Final = "task"
"""The label of a gauge that has its task."""
MOST_LABELS: Final = 8
MOST_BOUNDS: Final = 32
MOST_CHARACTERS: Final = 128
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of a histogram's buckets where none are given."""

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_NAME_RULE = "it must have ASCII letters, digits and '_', and begin with no digit"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENDINGS = ("_total", "_sum", "_count", "_bucket", "_created", "_info")
_TAKEN = frozenset({"processor", TASK, "le", "quantile"})

Labels = tuple[tuple[str, str], ...]


class OwnMetric(msgspec.Struct, frozen=True, array_like=True):
    """One series. ``labels``: (name, value) of each, by name.

    ``value``: of a histogram the sum of what was observed; ``buckets``: how many of these are
    within each of ``bounds``, and how many are above.
    """

    name: str
    kind: str
    labels: Labels
    value: float
    bounds: tuple[float, ...] = ()
    buckets: tuple[Long, ...] = ()

    @property
    def series(self) -> str:
        """Return the name with its labels, as Prometheus writes them."""
        return series_text(self.name, self.labels)

    def samples(self) -> Iterator[tuple[str, float]]:
        """Yield (name, value) of each number; of a histogram ``_count`` and ``_sum``."""
        if self.kind == HISTOGRAM:
            yield f"{self.name}_count", sum(self.buckets)
            yield f"{self.name}_sum", self.value
        else:
            yield self.name, self.value


def series_text(name: str, labels: Iterable[tuple[str, str]]) -> str:
    """Return the name with its labels, as Prometheus writes them."""
    inner = ",".join(f"{label}={msgspec.json.encode(value).decode()}" for label, value in labels)
    return f"{name}{{{inner}}}" if inner else name


def checked_labels(name: object, labels: Mapping[str, object]) -> Labels:
    """Return the labels of a series in their order.

    ValueError: Prometheus does not take the name or a label, or Homeport uses it itself.
    """
    what = f"metric {name!r:.99}"
    if not (isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= MOST_CHARACTERS):
        raise ValueError(f"{what}: {_NAME_RULE}: give a name such as 'late_orders'")
    if name.endswith(_ENDINGS):
        raise ValueError(f"{what}: Prometheus adds such an ending itself: leave it out")
    if len(labels) > MOST_LABELS:
        raise ValueError(f"{what}: it has {len(labels)} labels: give at most {MOST_LABELS}")
    for label, value in labels.items():
        if not _NAME.fullmatch(label) or label.startswith("__"):
            raise ValueError(f"{what}: label {label!r:.99}: {_NAME_RULE}, nor with '__'")
        if label in _TAKEN:
            raise ValueError(f"{what}: label {label!r} is Homeport's or Prometheus' own: rename it")
        if not isinstance(value, str) or len(value) > MOST_CHARACTERS or _SURROGATE.search(value):
            raise ValueError(
                f"{what}: label {label}={value!r:.99}: give a str of at most {MOST_CHARACTERS} "
                "characters that UTF-8 has"
            )
    return tuple(sorted((label, str(value)) for label, value in labels.items()))


def checked_bounds(name: str, bounds: Iterable[float]) -> tuple[float, ...]:
    """Return the upper bounds of a histogram's buckets.

    ValueError: they are no growing numbers, or too many.
    """
    try:
        found = tuple(map(float, bounds))
    except (TypeError, ValueError, OverflowError):
        found = ()
    grows = all(one < other for one, other in pairwise(found))
    if not (1 <= len(found) <= MOST_BOUNDS and grows and all(map(math.isfinite, found))):
        raise ValueError(
            f"metric {name!r}: bounds {bounds!r:.99}: give 1 to {MOST_BOUNDS} finite numbers, each "
            "greater than the one before"
        )
    return found


def known_metrics(metrics: Iterable[OwnMetric]) -> tuple[OwnMetric, ...]:
    """Return ``metrics`` without unknown kinds, which are of another version.

    ValueError: a name, a label or the buckets break a rule.
    """
    known = tuple(each for each in metrics if each.kind in {COUNTER, GAUGE, HISTOGRAM})
    for each in known:
        labels = {name: value for name, value in each.labels if name != TASK or each.kind != GAUGE}
        checked_labels(each.name, labels)
        if each.kind == HISTOGRAM:
            checked_bounds(each.name, each.bounds)
        if len(each.buckets) != (len(each.bounds) + 1 if each.kind == HISTOGRAM else 0):
            raise ValueError(f"metric {each.name!r}: it has {len(each.buckets)} buckets")
    return known


def summary(metrics: Iterable[OwnMetric]) -> list[tuple[str, str]]:
    """Return (series, value in words) of all containers together, by name.

    Counters are added up, a gauge has its least and greatest value of all tasks, and a histogram
    how often it has observed, and the mean.
    """
    found: dict[tuple[str, str], list[OwnMetric]] = {}
    for each in metrics:
        labels = (pair for pair in each.labels if pair[0] != TASK)
        found.setdefault((series_text(each.name, labels), each.kind), []).append(each)
    return [(series, _in_words(kind, every)) for (series, kind), every in sorted(found.items())]


def _in_words(kind: str, every: list[OwnMetric]) -> str:
    values = [each.value for each in every]
    if kind == COUNTER:
        return f"{sum(values):.15g}"
    if kind == GAUGE:
        least, greatest = f"{min(values):.6g}", f"{max(values):.6g}"
        return least if least == greatest else f"{least} to {greatest}"
    count = sum(sum(each.buckets) for each in every)
    return f"{count}, mean {sum(values) / count:.6g}" if count else "0"
