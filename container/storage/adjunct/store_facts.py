"""The facts that a report has of one adjunct store: its size, its position and its age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.container.adjunct.versions import VersionProgress
from homeport.job_coordinator.model.job_model import SystemStreamPartition


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """Of one store as it stands.

    ``records``: of its stream, that it has taken since it was new; of a version, those of it.
    ``size_bytes``: on the disk; None: it is in memory. ``positions`` {partition: next offset}.
    ``since_ms``: the time of the newest record that came since its container began; of a version,
    of its first record; in ms since 1970; None: not known. ``version``: the one that tasks see;
    None: there is none. ``late``: how many versions under way have had no end for too long; None:
    the store has no versions, or it is not known. ``awaits``: what its first version lacks; None:
    nothing, or it has no versions.
    """

    records: int
    size_bytes: int | None
    positions: Mapping[SystemStreamPartition, int]
    since_ms: int | None = None
    version: int | None = None
    late: int | None = None
    awaits: str | None = None

    @staticmethod
    def of_parts(
        parts: VersionProgress,
        size_bytes: int | None,
        since_ms: int | None,
        version: int | None = None,
    ) -> StoreFacts:
        """Those of a store with ``parts``."""
        records = sum(part.records for part in parts.values())
        positions = {partition: part.next for partition, part in parts.items()}
        return StoreFacts(records, size_bytes, positions, since_ms, version)

    def age_s(self, now_ms: int) -> float | None:
        """Seconds since ``since_ms``, by a clock that may be set back."""
        return None if self.since_ms is None else max(0, now_ms - self.since_ms) / 1000
