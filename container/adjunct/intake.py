"""What an adjunct store was handed, on its way into it: each record once, in its partition's order.

PURE. A store takes no record below its own position, so what is read again changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace

from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.versions import Progress, Run, VersionProgress
from homeport.job_coordinator.model.job_model import SystemStreamPartition


@dataclass(frozen=True, slots=True)
class Layer:
    """What one micro-batch brings to one store, to be written as a whole.

    ``entries`` {key: value; None: it has none any more}. ``parts``: where the store stands with
    them.
    """

    entries: Mapping[bytes, bytes | None]
    parts: VersionProgress


class Intake:
    """Implements ``AdjunctSink`` for a store of one data set without versions.

    Args:
        starts: {partition: the offset that the store has all records below}.
    """

    def __init__(self, starts: Mapping[SystemStreamPartition, Progress]) -> None:
        self._parts = dict(starts)
        self._entries: dict[bytes, bytes | None] = {}
        self._is_empty = True

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """As ``AdjunctSink``."""
        part = self._parts[run.partition]
        start = bisect_left(run.offsets, part.next)
        if start == len(run.offsets):
            return
        for index in range(start, len(run.offsets)):
            key = keys[index]
            if key is not None:
                self._entries[key] = values[index]
        records = part.records + len(run.offsets) - start
        self._parts[run.partition] = replace(part, next=run.offsets[-1] + 1, records=records)
        self._is_empty = False

    def sealed(self) -> Layer | None:
        """All that was taken since the last call; None where that is nothing."""
        if self._is_empty:
            return None
        layer = Layer(self._entries, dict(self._parts))
        self._entries, self._is_empty = {}, True
        return layer
