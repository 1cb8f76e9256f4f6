"""Decides which records of repartitions a container deletes: those behind committed positions.

PURE. A record is read by one task, and only once; when the transaction of that task is committed,
nothing needs the record any more.
"""

from collections.abc import Collection, Mapping

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class Purging:
    """The deletions of one incarnation, whose tasks alone read their partitions.

    ``streams``: of repartitions. ``interval_s``: the shortest time between two requests; the first
    one comes no sooner than so long after ``now_s``. One request is on its way at a time.
    """

    def __init__(
        self, streams: Collection[SystemStream], interval_s: float, now_s: float = 0.0
    ) -> None:
        self._streams = frozenset(streams)
        self._interval_s = interval_s
        self._next_s = now_s + interval_s
        self._committed: dict[SystemStreamPartition, int] = {}
        self._deleted: dict[SystemStreamPartition, int] = {}
        self._asked: dict[SystemStreamPartition, int] = {}

    def committed(self, processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]) -> None:
        """Note the last offsets of a transaction that Kafka has committed."""
        for offsets in processed.values():
            for ssp, offset in offsets.items():
                if ssp.system_stream in self._streams:
                    self._committed[ssp] = offset + 1

    def due(self, now_s: float) -> dict[SystemStreamPartition, int]:
        """Return what to ask for now: {partition: the offset before which nothing is needed}.

        Empty: nothing. Else call ``answered`` for each partition.
        """
        if self._asked or now_s < self._next_s:
            return {}
        behind = self._committed.items()
        self._asked = {ssp: next_ for ssp, next_ in behind if next_ > self._deleted.get(ssp, 0)}
        if self._asked:
            self._next_s = now_s + self._interval_s
        return dict(self._asked)

    def answered(self, ssp: SystemStreamPartition, *, is_deleted: bool) -> None:
        """Note the answer for one partition; what is not deleted is due once more."""
        before = self._asked.pop(ssp)
        if is_deleted:
            self._deleted[ssp] = before
