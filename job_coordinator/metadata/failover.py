"""Manager of failovers that are under way: set-failover.

How it reads: see ``reading``.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, processors, read_all
from homeport.job_coordinator.model.ids import Host, ProcessorId


@dataclass(frozen=True)
class RecordedFailover:
    """An active container is on its way to ``host``, to take the place of ``standby``.

    ``epoch``: of the active's last permit when that was decided; whatever this incarnation and
    those before it say later of where they ran counts no more. ``standby`` and ``host`` are None
    where it could not be failed to a standby. ``step``: how far the search for a place has come, in
    the allocator's word. ``used``: the standbys that have been chosen so far. ``cause``: for
    people.
    """

    epoch: int
    standby: ProcessorId | None
    host: Host | None
    step: str
    used: tuple[ProcessorId, ...] = ()
    cause: str = ""


class FailoverManager(RecordManager):
    """Which active containers are on their way to another place than home.

    Source: STANDBY, "A. Failure of an active container".
    """

    def read(self) -> dict[ProcessorId, RecordedFailover]:
        """{active processor: what is under way}.

        A damaged record is left out: its processor is placed like any other, where its locality
        says.
        """
        found = read_all(self._stream, MessageType.SET_FAILOVER, _failover)
        return {ProcessorId(active): failover for active, failover in found.items()}

    @staticmethod
    def message(active: ProcessorId, failover: RecordedFailover) -> CoordinatorStreamMessage:
        """The record that says that the failover of ``active`` is under way."""
        known = {"standby": failover.standby, "host": failover.host}
        values = {
            "epoch": str(failover.epoch),
            **{name: text for name, text in known.items() if text is not None},
            "step": failover.step,
            "used": wire.list_text(list(failover.used)),
            "cause": failover.cause,
        }
        return CoordinatorStreamMessage(MessageType.SET_FAILOVER, active, values)

    @staticmethod
    def end(active: ProcessorId) -> CoordinatorStreamMessage:
        """The record that says that no failover of ``active`` is under way."""
        return wire.tombstone(MessageType.SET_FAILOVER, active)


def _failover(message: CoordinatorStreamMessage) -> RecordedFailover:
    standby, host, step = (message.value(name) for name in ("standby", "host", "step"))
    if not step:
        raise WireError(f"{message.type} {message.key!r}: no step")
    return RecordedFailover(
        wire.number(message, "epoch"),
        ProcessorId(standby) if standby else None,
        Host(host) if host else None,
        step,
        processors(message, "used"),
        message.value("cause") or "",
    )
