"""What the next driver must know of the allocator's state: each step's records say all of it."""

from __future__ import annotations

from typing import Any

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState, ContainerPhase, Failover
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    Event,
    JobModelPublished,
    LauncherCheckedIn,
    PlacementRequested,
)
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    DeletePlacementRequest,
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
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import PlacementStatus
from tests.exhaustive.judges import require

Facts = dict[tuple[str, str], Any]
"""{(kind, of what): what a driver that starts now must find}; absent: nothing."""


def judge_records(before: AllocatorState, event: Event, decision: Decision) -> None:
    """The records of a step turn what the stream says before it into what it must say after it.

    A model is in the stream before it is published, and a container writes its own locality.

    Raises:
        UnsafeError: a record is missing, or says something else.
    """
    if isinstance(event, JobModelPublished):
        return
    said, due = _facts(before), _facts(decision.state)
    if isinstance(event, PlacementRequested):
        said |= _written(event)
    for record in decision.records:
        _write(said, record)
    kinds = {kind for kind, _ in said.keys() | due.keys()}
    if isinstance(event, ContainerStarted | LauncherCheckedIn):
        kinds -= {"locality"}
    found = {
        c.processor_id
        for c in decision.state.containers
        if before.container(c.processor_id) is None
    }
    found |= _without_permit(before) | _without_permit(decision.state)
    for key in sorted(said.keys() | due.keys()):
        if key[0] in kinds and key[1] not in found:
            require(said.get(key) == due.get(key), f"the stream does not know the {key[0]}")


def _without_permit(state: AllocatorState) -> set[ProcessorId]:
    """Temporary standbys of which nothing is written yet."""
    assigned = (c for c in state.containers if c.phase is ContainerPhase.ASSIGNED)
    return {c.processor_id for c in assigned if c.is_temporary}


def _facts(state: AllocatorState) -> Facts:
    facts: Facts = {}
    for c in state.containers:
        facts["epoch", c.processor_id] = c.epoch
        facts["failures", c.processor_id] = c.failures or None
        facts["failover", c.processor_id] = c.failover
        facts["locality", c.processor_id] = c.home
    for incarnation in state.retired:
        facts["epoch", incarnation.processor_id] = incarnation.epoch
    for placement in state.placements:
        facts["answer", placement.request.uuid] = placement.status
    if state.ending is not None:
        facts["end", ""] = state.ending.result
    return facts


def _written(event: PlacementRequested) -> Facts:
    """What an operator, or an earlier driver, has written of this request."""
    if not event.is_resumed:
        return {("request", event.request.uuid): True}
    status = PlacementStatus.IN_PROGRESS if event.source else PlacementStatus.ACCEPTED
    return {("answer", event.request.uuid): status}


def _write(said: Facts, record: Record) -> None:
    if isinstance(record, WriteStop):
        for key in [k for k in said if k[1] == record.incarnation.processor_id]:
            del said[key]
    else:
        kind, of_what, fact = _fact(record)
        said[kind, of_what] = fact


def _fact(record: Record) -> tuple[str, str, Any]:
    said: tuple[str, str, Any]
    match record:
        case WriteProcessorEpoch():
            said = "epoch", record.processor_id, record.epoch
        case WriteFailover():
            under_way = Failover(record.step, record.standby, record.host, record.used)
            said = "failover", record.active, under_way
        case EndFailover():
            said = "failover", record.active, None
        case WriteLocality() | DeleteLocality():
            said = "locality", record.processor_id, getattr(record, "host", None)
        case WriteFailureCount():
            said = "failures", record.processor_id, record.count or None
        case WriteJobEnd():
            said = "end", "", record.result
        case WritePlacementResponse():
            status = record.status
            said = "answer", record.request.uuid, None if status.is_final else status
        case DeletePlacementRequest():
            said = "request", record.uuid, None
        case _:
            raise AssertionError(record)
    return said
