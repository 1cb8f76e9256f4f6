"""The decision of one step in lines: reasons, records, instructions, and all places after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import LIVE, AllocatorState, ContainerState
from homeport.appmaster.allocation.protocol.events import named
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    DeleteLocality,
    DeletePlacementRequest,
    EndFailover,
    EndJob,
    Instruction,
    PermitContainer,
    PrepareProcess,
    Record,
    ReleaseResource,
    RequestResource,
    SetTimer,
    StopContainer,
    SuspectOurselves,
    WriteFailover,
    WriteFailureCount,
    WriteJobEnd,
    WriteLocality,
    WritePlacementResponse,
    WriteProcessorEpoch,
    WriteStop,
)
from homeport.job_coordinator.model.incarnation import Incarnation


def announce(before: AllocatorState, decision: Decision) -> list[str]:
    """The lines of one step, in the order in which the shell would act."""
    after = decision.state
    lines = [f"because  {reason}" for reason in decision.reasons]
    lines += [f"record   {_words_of(record)}" for record in decision.records]
    lines += [f"order    {_words_of(instruction)}" for instruction in decision.instructions]
    lines += _changes(before, after)
    if after.stale_events > before.stale_events:
        lines.append("stale")
    return lines or ["nothing follows"]


def _changes(before: AllocatorState, after: AllocatorState) -> Iterator[str]:
    then = {c.processor_id: _place(c, before) for c in before.containers}
    now = {c.processor_id: _place(c, after) for c in after.containers}
    for processor_id in sorted({*then, *now}):
        place = now.get(processor_id, "not in the model any more")
        if place != then.get(processor_id):
            yield f"{processor_id:<8} {place}"
    was, is_now = (set(state.exclusions) for state in (before, after))
    yield from (f"{host:<8} excluded from placement" for host in sorted(is_now - was))
    yield from (f"{host:<8} excluded no longer" for host in sorted(was - is_now))
    if after.phase is not before.phase:
        yield f"job      {after.phase.value}"


def _place(container: ContainerState, state: AllocatorState) -> str:
    """Phase, incarnation, place and what is charged, as far as the container has them."""
    parts = [container.phase.value]
    if container.resource_id is not None:
        launcher = state.resources.get(container.resource_id)
        host = launcher.host if launcher is not None else "nowhere"
        who = f" {named(container.incarnation)}" if container.phase in LIVE else ""
        parts = [f"{parts[0]}{who} on {host} ({container.resource_id})"]
    elif container.request_id is not None:
        place = container.requested_host or "any host"
        parts = [f"{parts[0]} on {place} (request {container.request_id})"]
    elif container.requested_host is not None:
        parts = [f"{parts[0]} for {container.requested_host}"]
    if container.home is not None:
        parts.append(f"home {container.home}")
    if container.replica_of is not None:
        parts.append(f"standby of {container.replica_of}")
    if container.failures:
        parts.append(f"failures {container.failures}")
    return ", ".join(parts)


def _incarnations(incarnations: tuple[Incarnation, ...]) -> str:
    return " ".join(map(named, incarnations)) or "none"


def _words_of(thing: Record | Instruction) -> str:
    """One record or instruction in words; one that has none of its own by its name and fields."""
    return _WORDS.get(type(thing), _by_its_fields)(thing)


def _by_its_fields(thing: Record | Instruction) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", " ", type(thing).__name__).lower()
    stated = (
        (field.name.removesuffix("_id"), getattr(thing, field.name))
        for field in fields(thing)
        if field.name != "cause"
    )
    return f"{name}: " + ", ".join(f"{key} {getattr(v, 'value', v)}" for key, v in stated)


_WORDS: Mapping[type, Callable[[Any], str]] = {
    WriteFailover: lambda record: (
        f"failover of {record.active} (epoch {record.epoch}): {record.step.value}"
        + (f", place of {record.standby} on {record.host}" if record.standby else "")
        + f", used {' '.join(record.used) or 'none'}"
    ),
    EndFailover: lambda record: f"failover of {record.active} is over",
    WriteLocality: lambda record: (
        f"locality of {record.processor_id}: {record.host} (epoch {record.epoch})"
    ),
    DeleteLocality: lambda record: f"locality of {record.processor_id}: none",
    WritePlacementResponse: lambda record: (
        f"answer to {record.request.uuid}: {record.status.value}, {record.message}"
    ),
    DeletePlacementRequest: lambda record: f"request {record.uuid} has been read",
    WriteProcessorEpoch: lambda record: (
        f"epoch {record.processor_id}@{record.epoch} of model {record.model_version}, "
        f"to fence {_incarnations(record.fence)}"
    ),
    WriteFailureCount: lambda record: f"failures of {record.processor_id}: {record.count}",
    WriteStop: lambda record: f"{named(record.incarnation)} has stopped: {record.how}",
    WriteJobEnd: lambda record: f"the job ends {record.result.value}: {record.diagnostics}",
    RequestResource: lambda order: (
        f"request {order.request_id}: one container on {order.host or 'any host'}"
    ),
    CancelRequest: lambda order: f"cancel request {order.request_id}",
    PermitContainer: lambda order: (
        f"{order.resource_id}: run {named(order.incarnation)} "
        f"after fencing {_incarnations(order.fence)}"
    ),
    StopContainer: lambda order: (
        f"{order.resource_id}: stop {named(order.incarnation)}"
        f"{', and keep its process' if order.keeps_process else ''}"
    ),
    PrepareProcess: lambda order: (
        f"{order.resource_id}: have a process ready for {order.processor_id}"
    ),
    ReleaseResource: lambda order: f"{order.resource_id}: exit",
    SetTimer: lambda order: f"timer {order.timer} in {order.delay_ms} ms",
    CancelTimer: lambda order: f"no timer {order.timer}",
    SuspectOurselves: lambda order: (
        f"warn: {', '.join(order.hosts)} silent at once, the fault may be the AM's"
    ),
    EndJob: lambda order: f"end the application {order.result.value}: {order.diagnostics}",
}
