"""What the coordinator stream of an exhaustive world says after a step's records."""

from __future__ import annotations

from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    EndFailover,
    Record,
    WriteFailover,
    WriteFailureCount,
    WriteJobEnd,
    WriteLocality,
    WritePlacementResponse,
    WriteProcessorEpoch,
    WriteStop,
)
from tests.exhaustive.judges import require
from tests.exhaustive.memory import owner_of
from tests.exhaustive.things import Command, EpochRecord, Failover, Stream


def written(stream: Stream, records: tuple[Record, ...]) -> Stream:
    """The stream after these records."""
    for record in records:
        stream = _with_record(stream, record)
    return stream


def _with_record(stream: Stream, record: Record) -> Stream:
    if isinstance(record, WriteProcessorEpoch):
        fence = tuple((i.processor_id, i.epoch) for i in record.fence)
        epochs = dict(stream.epochs)
        epoch, version = record.epoch, record.model_version
        epochs[record.processor_id] = EpochRecord(epoch, fence, epoch, version)
        stopped = tuple(o for o in stream.stopped if o[0] != record.processor_id)
        return stream._replace(epochs=tuple(sorted(epochs.items())), stopped=stopped)
    match record:
        case WritePlacementResponse():
            stream = _answered(stream, record)
        case WriteFailureCount(processor_id=processor_id, count=count):
            failures = {**dict(stream.failures), str(processor_id): count}
            charged = sorted((p, n) for p, n in failures.items() if n)
            stream = stream._replace(failures=tuple(charged))
        case WriteStop(incarnation=i):
            stopped = tuple(sorted({*stream.stopped, owner_of(i)}))
            stream = stream._replace(stopped=stopped)
        case WriteJobEnd(result=result):
            stream = stream._replace(end=result.value)
        case _:
            stream = _with_place(stream, record)
    return stream


def _with_place(stream: Stream, record: Record) -> Stream:
    homes = dict(stream.homes)
    failovers = {f.active: f for f in stream.failovers}
    match record:
        case WriteLocality():
            homes[record.processor_id] = record.host
        case DeleteLocality():
            homes.pop(record.processor_id, None)
        case WriteFailover():
            failovers[record.active] = Failover(
                record.active,
                record.epoch,
                record.standby or "",
                record.host or "",
                record.step,
                record.used,
            )
        case EndFailover():
            failovers.pop(record.active, None)
    return stream._replace(
        homes=tuple(sorted(homes.items())),
        failovers=tuple(failovers[key] for key in sorted(failovers)),
    )


def _answered(stream: Stream, answer: WritePlacementResponse) -> Stream:
    number = answer.request.timestamp_ms
    left = tuple(c for c in stream.commands if c.number != number)
    require(len(left) < len(stream.commands), "a command has one final answer")
    if answer.status.is_final:
        return stream._replace(commands=left)
    source = (answer.source.epoch, answer.source.host or "") if answer.source else None
    to = answer.request.destination
    is_warm = answer.request.is_warm
    command = Command(number, answer.request.processor_id, to, source, is_warm)
    return stream._replace(commands=tuple(sorted((*left, command))))
