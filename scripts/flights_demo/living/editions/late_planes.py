"""The second edition: a summary has one field more, the flights that left an hour late."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from zoned_planes import ZonedPlanes

LATE_MIN = 60


class LatePlanes(ZonedPlanes):
    """``late``: of the flights that this edition has added; summaries from before have 0."""

    @staticmethod
    def by_plane(flights: pa.Table) -> dict[str, dict[str, Any]]:
        """Return what a batch has of its planes."""
        late = flights.filter(pc.greater(flights["dep_delay"], LATE_MIN))
        counts = Counter(late["tailnum"].to_pylist())
        planes = ZonedPlanes.by_plane(flights)
        return {tail: {**seen, "late": counts[tail]} for tail, seen in planes.items()}

    @staticmethod
    def added(before: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
        """Return a summary with what a batch has of its plane."""
        late = before.get("late", 0) + seen["late"]
        return {**ZonedPlanes.added(before, seen), "late": late}
