"""Inputs that stand still behind a transaction which their writer has not ended.

A reader of committed records gets nothing behind it, and no error: a job waits, and looks idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOOK_S = 1.0
_QUIET_S = 10.0
"""Transactions of a job last some seconds at most, by default."""
_AGAIN_S = 60.0


@dataclass
class _Still:
    """A partition at ``position`` since ``since_s``; its end is looked at from ``due_s`` on.

    ``is_held``: by an open transaction, as its end was looked at last.
    """

    position: int
    since_s: float
    due_s: float
    is_held: bool = False


class OpenEnds:
    """Finds the partitions whose end cannot be read. Not thread-safe.

    Args:
        clock: gives seconds that never go back.
        stable_end: asks Kafka for the last stable offset of a partition; None: no answer.
    """

    def __init__(
        self, clock: Callable[[], float], stable_end: Callable[[SystemStreamPartition], int | None]
    ) -> None:
        self._clock = clock
        self._stable_end = stable_end
        self._still: dict[SystemStreamPartition, _Still] = {}
        self._looked_s = clock()

    def held(self) -> dict[SystemStreamPartition, float]:
        """{partition that stands behind an open transaction: for how many seconds}."""
        now_s = self._clock()
        return {ssp: now_s - s.since_s for ssp, s in self._still.items() if s.is_held}

    def look(
        self, places: Callable[[], Mapping[SystemStreamPartition, tuple[int, int]]]
    ) -> Iterator[str]:
        """Yield a line for each partition that stands still, once a minute.

        Shapes: ``places`` {partition: (next offset, high watermark)}, of those that are read now;
        called at most once a second.
        """
        now_s = self._clock()
        if now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        for ssp, (position, high) in places().items():
            still = self._still.get(ssp)
            if high <= position:
                self._still.pop(ssp, None)
            elif still is None or still.position != position:
                self._still[ssp] = _Still(position, now_s, now_s + _QUIET_S)
            elif now_s >= still.due_s:
                still.due_s = now_s + _AGAIN_S
                stable = self._stable_end(ssp)
                # Else only the ends of transactions are there, which are no records.
                still.is_held = stable is not None and stable < high
                if still.is_held:
                    yield (
                        f"input {ssp.system_stream} partition {ssp.partition} has stood at offset "
                        f"{position} for {now_s - still.since_s:.0f} s: a transaction is open "
                        f"there (last stable offset {stable}, high watermark {high}), and what "
                        "follows is read once its producer ends it, or Kafka does by its "
                        "transaction.timeout.ms"
                    )
