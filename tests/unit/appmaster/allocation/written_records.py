"""What the coordinator stream says of localities and failovers, as values that a world can keep."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.appmaster.allocation.protocol.events import FailoverRecord
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    EndFailover,
    Record,
    WriteFailover,
    WriteLocality,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId

Localities = tuple[tuple[ProcessorId, Host], ...]
Failovers = tuple[tuple[ProcessorId, FailoverRecord], ...]


def written(
    localities: Localities, failovers: Failovers, records: Iterable[Record]
) -> tuple[Localities, Failovers]:
    """What it says of both after these records."""
    places, under_way = dict(localities), dict(failovers)
    for record in records:
        if isinstance(record, WriteLocality):
            places[record.processor_id] = record.host
        elif isinstance(record, DeleteLocality):
            places.pop(record.processor_id, None)
        elif isinstance(record, WriteFailover):
            under_way[record.active] = FailoverRecord(
                record.epoch, record.standby, record.host, record.step, record.used
            )
        elif isinstance(record, EndFailover):
            del under_way[record.active]
    return tuple(sorted(places.items())), tuple(sorted(under_way.items()))
