"""Drains a host by HTTP, or ends its drain.

``status.host_drain`` decides which containers leave and in which order, here as for ``homeport
drain``. After one HTTP request the driver writes the key and waits until it is in force. Then it
writes the placement requests and waits for their answers. The coordinator stream keeps the key and
the requests: if this driver ends, the host stays drained and the requested moves go on. An operator
repeats the action to request the moves that are left.
"""

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from homeport.appmaster.allocation.what_if import CommandOutlook, what_if
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.report.audited_changes import AuditedChanges
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError, WireError
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.actions import Plan
from homeport.job_coordinator.http.callers import Caller
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, change_list
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import Host, host_of
from homeport.job_coordinator.model.json_values import optional_field, required_field
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    CANCEL,
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)
from homeport.job_coordinator.status.host_drain import (
    TAKEN_MS,
    UNDONE,
    HostDrain,
    Move,
    am_stays,
    host_change,
    moves,
    not_taken,
    require_host,
    without_place,
)
from homeport.job_coordinator.status.outlook import ShownFate

_KEY = keys.DRAINED_HOSTS
_BUSY = "the containers of {host} are being moved already"
_POLL_S = 0.5
"""How often the driver looks for an answer; the coordinator stream has no event for one."""


class DrainHost:
    """Drains ``host``; ``undo`` ends its drain; ``force`` lets those without another place stay."""

    def __init__(self, driver: Driver, file: Config | None = None) -> None:
        """``file``: the deployment's own configuration; it holds for keys that no record sets."""
        self._driver = driver
        self._file = file or Config()
        self._progress: dict[str, Mapping[str, Any]] = {}
        self._under_way: dict[Host, asyncio.Task[None]] = {}

    async def plan(self, asked: Mapping[str, Any]) -> Plan:
        """Plan the drain as the loss of the host; ConfigError: there is no such host."""
        host, is_undone = _host(asked), _flag(asked, "undo")
        before = await self._drained()
        after = host_change(before, host, is_drained=not is_undone).of(before)
        plan = Plan(f"drain {host}", _named(before), _named(after), ())
        if is_undone:
            return self._plan_of_undo(plan, host, before)
        status = self._driver.view.shown()
        require_host(host, status)
        if host in self._under_way:
            return _impossible(plan, _BUSY.format(host=host))
        state, reports = self._driver.state, self._driver.cluster.hosts
        outlook = await asyncio.to_thread(what_if, state, frozenset({host}), reports)
        rule = without_place(outlook)
        if rule is not None and not _flag(asked, "force"):
            return _impossible(
                plan, f"{rule}; make room there, or drain it as far as there is room"
            )
        lines = [fate_line(fate) for fate in outlook.containers] if moves(host, status) else []
        lines += [f"{host} has no container of the job"] if not lines else []
        lines += [f"{rule}; these stay, or wait"] if rule is not None else []
        lines += [f"{host} gets no other container"]
        lines += filter(None, [am_stays(host, status)])
        return Plan(plan.what, plan.before, plan.after, tuple(lines))

    def _plan_of_undo(self, plan: Plan, host: Host, before: Sequence[str]) -> Plan:
        if host not in map(host_of, before):
            return _impossible(plan, f"{host} is not drained")
        lines = (f"{host} gets containers again; none is moved back", UNDONE)
        return Plan(f"undo drain {host}", plan.before, plan.after, lines)

    async def carry_out(self, asked: Mapping[str, Any], by: Caller) -> Mapping[str, Any]:
        """Write the key and begin the moves; ``answer`` returns their progress by the uuid."""
        host, is_undone = _host(asked), _flag(asked, "undo")
        await self._write_key(host, by, is_drained=not is_undone)
        if is_undone:
            return {"uuid": None, "message": f"{host} gets containers again"}
        if host in self._under_way:  # two calls were planned at once
            raise WireError(_BUSY.format(host=host))
        drain_id = str(uuid.uuid4())
        self._set_progress(drain_id, PlacementStatus.ACCEPTED, f"{host} gets no container any more")
        self._under_way[host] = asyncio.ensure_future(self._run(drain_id, host))
        return {
            "uuid": drain_id,
            "message": f"{host} gets no container any more; those there leave it",
        }

    def answer(self, asked: str) -> Mapping[str, Any] | None:
        """Return the progress of the drain with that uuid; None: this driver has no such drain."""
        return self._progress.get(asked)

    async def _drained(self) -> Sequence[str]:
        record = (await self._driver.view.stream.written()).get(_KEY.name)
        value = None if record is None else record.value("value")
        return _KEY.read(self._file if value is None else Config({_KEY.name: value}))

    async def _write_key(self, host: Host, by: Caller, *, is_drained: bool) -> None:
        def change(stream: CoordinatorStream) -> None:
            wanted = partial(host_change, host=host, is_drained=is_drained)
            write = partial(write_by_http, self._driver.audit, stream, by)
            change_list(stream, _KEY, wanted, write, str(uuid.uuid4()), self._file)

        await self._driver.view.stream.do(change)

    async def _run(self, drain_id: str, host: Host) -> None:
        drain = HostDrain(host)
        try:
            await self._await_taken(host)
            while due := drain.next_moves(self._driver.view.shown()):
                names = ", ".join(processor for processor, _ in due)
                self._set_progress(
                    drain_id, PlacementStatus.IN_PROGRESS, f"processor {names} leaves {host}"
                )
                for request in await self._request_moves(due):
                    found = await self._await_answer(request)
                    drain.answered(request.processor_id, found.status, found.message)
            fault = drain.fault(self._driver.view.shown())
        except HomeportError as error:
            fault = str(error)
        finally:
            del self._under_way[host]
        if fault is None:
            self._set_progress(drain_id, PlacementStatus.SUCCEEDED, drain.done())
        else:
            self._set_progress(drain_id, PlacementStatus.FAILED, fault)

    async def _await_taken(self, host: Host) -> None:
        began_ms = boot_ms()
        while host not in self._driver.state.settings.drained_hosts:
            if boot_ms() - began_ms > TAKEN_MS:
                raise not_taken(_KEY.name)
            await asyncio.sleep(_POLL_S)

    async def _request_moves(self, due: Sequence[Move]) -> list[PlacementRequest]:
        application = self._driver.status.identity.rank.application
        requests = [
            PlacementRequest(
                str(uuid.uuid4()),
                application,
                processor,
                ANY_HOST,
                None,
                wall_ms(),
                is_warm,
                is_drain=True,
            )
            for processor, is_warm in due
        ]
        for request in requests:
            self._driver.audit.requested_by_http(request.uuid)
        messages = list(map(PlacementManager.request_message, requests))
        await self._driver.view.stream.change(lambda _: messages)
        return requests

    async def _await_answer(self, request: PlacementRequest) -> PlacementResponse:
        while True:
            found = await self._driver.view.stream.placement(request.uuid)
            if found is not None and found.status.is_final:
                return found
            await asyncio.sleep(_POLL_S)

    def _set_progress(self, drain_id: str, status: PlacementStatus, message: str) -> None:
        self._progress[drain_id] = {
            "status": status.value,
            "message": message,
            "final": status.is_final,
        }


def write_by_http(
    audit: AuditedChanges, stream: CoordinatorStream, by: Caller, record: CoordinatorStreamMessage
) -> None:
    """Write the record of a key as the writer tool does, and note that it comes by HTTP."""
    if not record.is_tombstone:
        record = record._replace(
            source=WRITER_SOURCE, username=by.name, host=by.address, timestamp_ms=wall_ms()
        )
    audit.by_http(records=[record])
    try:
        stream.write([record])
    except HomeportError:
        audit.not_written([record])
        raise


def _host(asked: Mapping[str, Any]) -> Host:
    return host_of(required_field(asked, "host", str))


def _named(hosts: Sequence[str]) -> str | None:
    return ",".join(sorted(map(host_of, hosts))) or None


def _flag(asked: Mapping[str, Any], name: str) -> bool:
    return optional_field(asked, name, bool) or False


def _impossible(plan: Plan, why: str) -> Plan:
    return Plan(plan.what, plan.before, plan.after, (why,), is_possible=False)


REFUSED = frozenset({PlacementStatus.BAD_REQUEST, PlacementStatus.FAILED})
"""The final answers by which a request is not carried out."""


def outlook_lines(outlook: CommandOutlook) -> Iterable[str]:
    """Yield the outcome of a command: a line for each container, then the command's answer."""
    for fate in outlook.fates:
        yield fate_line(fate)
    if outlook.answer is None:
        yield "the job takes no command now; the command waits until it does"
    elif not outlook.answer.status.is_final:
        yield f"then the command waits: {outlook.answer.message}"
    elif outlook.answer.status in REFUSED or outlook.answer.request.destination == CANCEL:
        yield outlook.answer.message


def fate_line(fate: ShownFate) -> str:
    """Return a line with a container's present and future host."""
    name, place = str(fate.processor_id), fate.host_before or "nowhere"
    if not fate.is_placed:
        return f"{name}: {place} -> nowhere"
    if fate.host == fate.host_before:
        return f"{name}: stops, and starts again on {place}"
    return f"{name}: {place} -> {fate.host or 'nowhere'}"
