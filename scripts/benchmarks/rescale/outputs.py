"""The committed outputs of each task, as a reader sees them: time and run of each, in order.

PURE. Times are of one wall clock, in ms since 1970.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Output(NamedTuple):
    """One output. ``run``: the task from its init to its close, by the pid of its process."""

    at_ms: float
    run: str


@dataclass
class Outputs:
    """The outputs of all tasks, by partition; one thread adds, another looks."""

    seen: dict[int, list[Output]] = field(default_factory=dict)
    counts: Counter[tuple[int, bytes]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, at_ms: float, partition: int, key: bytes, value: bytes) -> None:
        """Take the next output of a partition; the counts of a key must come one by one."""
        number, run = value.decode().split()
        self.counts[partition, key] += 1
        if int(number) != self.counts[partition, key]:
            self.wrong.append(
                f"partition {partition}, key {key.decode()}: output {self.counts[partition, key]}"
                f" says {number}"
            )
        self.seen.setdefault(partition, []).append(Output(at_ms, run))

    def faults(self, sent: Mapping[tuple[int, bytes], int]) -> list[str]:
        """Return what is wrong, a line each. ``sent``: {(partition, key): records sent}."""
        found = list(self.wrong)
        for (partition, key), count in sent.items():
            if (reached := self.counts[partition, key]) != count:
                found.append(
                    f"partition {partition}, key {key.decode()}: {count} sent, {reached} counted"
                )
        return found

    def has_all(self, sent: Mapping[tuple[int, bytes], int]) -> bool:
        """Return whether as many outputs are there as records were sent."""
        return self.counts.total() >= sum(sent.values())

    def all_since(self, at_ms: float, partitions: int) -> bool:
        """Return whether each partition has an output that came later."""
        lasts = [outputs[-1].at_ms for outputs in list(self.seen.values())]
        return len(lasts) == partitions and min(lasts) > at_ms

    def gap(self, partition: int, since_ms: float, until_ms: float) -> Gap:
        """Return how the task of a partition stood still in a span of time."""
        outputs = list(self.seen[partition])
        # One before the span, as what stands still at its begin has begun before it.
        first = max(0, bisect.bisect(outputs, (since_ms,)) - 1)
        last = bisect.bisect(outputs, (until_ms,))
        span = outputs[first : last + 1]
        pairs = list(itertools.pairwise(span))
        longest_ms = max((b.at_ms - a.at_ms for a, b in pairs), default=0.0)
        begun = [b.at_ms for a, b in pairs if a.run != b.run]
        return Gap(longest_ms / 1000, begun[-1] if begun else None, len(begun))


@dataclass(frozen=True, slots=True)
class Gap:
    """Of one task. ``longest_s``: between two outputs; ``begun_ms``: its newest run's first one.

    ``runs``: how many runs began; none began where ``begun_ms`` is None.
    """

    longest_s: float
    begun_ms: float | None
    runs: int
