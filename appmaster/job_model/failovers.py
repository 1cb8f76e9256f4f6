"""The failovers of the coordinator stream that a JobModel still has room for."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from homeport.appmaster.allocation.protocol.events import FailoverRecord, FailoverStep
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.failover import FailoverManager, RecordedFailover
from homeport.job_coordinator.model.ids import ProcessorId

_STEPS = {step.value: step for step in FailoverStep}

log = logging.getLogger("driver")


class FailoversInForce:
    """Those of active containers of a model that have no standby to replace, or one of their own.

    The others came to nothing with the model before: hot standby was switched off, or has fewer
    replicas.

    Args:
        stream: read as of its last catch-up.
        standbys: {standby of the model: its active one}.
        actives: the active containers of the model.
    """

    def __init__(
        self,
        stream: CoordinatorStream,
        standbys: Mapping[ProcessorId, ProcessorId],
        actives: Collection[ProcessorId],
    ) -> None:
        self._stream = stream
        self._standbys = standbys
        self._actives = actives

    def read(self) -> dict[ProcessorId, FailoverRecord]:
        """{active: what is under way}."""
        found = {}
        for active, recorded in FailoverManager(self._stream).read().items():
            step = _STEPS.get(recorded.step)
            if step is None:
                log.warning("failover of %s: unknown step %r", active, recorded.step)
            elif self._fits(active, recorded):
                used = tuple(s for s in recorded.used if self._standbys.get(s) == active)
                found[active] = FailoverRecord(
                    recorded.epoch, recorded.standby, recorded.host, step, used
                )
        return found

    def gone(self) -> Iterator[CoordinatorStreamMessage]:
        """Tombstones of all that ``read`` leaves out."""
        kept = self.read()
        for active in sorted(self._stream.latest(MessageType.SET_FAILOVER)):
            if active not in kept:
                yield FailoverManager.end(ProcessorId(active))

    def _fits(self, active: ProcessorId, recorded: RecordedFailover) -> bool:
        standby = recorded.standby
        is_own = standby is None or self._standbys.get(standby) == active
        return active in self._actives and is_own
