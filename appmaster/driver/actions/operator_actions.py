"""Operators' actions on the running job by HTTP: plan one, or write it into the stream.

Each action writes the record that the operator's tool writes, with the name of the token as its
user. The driver reads the record back, and goes on as it does after the tool. A further action is a
class with ``plan`` and ``carry_out``, and a row in ``DriverActions``.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from homeport.appmaster.allocation.what_if import what_if_commanded
from homeport.appmaster.driver.actions.draining import (
    REFUSED,
    DrainHost,
    outlook_lines,
    write_by_http,
)
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.job_model.live_configuration import has_state
from homeport.appmaster.report.audited_changes import placement_named
from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.secret_names import shown_value
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.config_change import (
    ConfigChange,
    check_key,
    check_operators_key,
    checked_change,
)
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.http.actions import Plan
from homeport.job_coordinator.http.callers import Caller
from homeport.job_coordinator.metadata.configuration import AM_KEYS, WRITER_SOURCE
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import ProcessorId, host_of
from homeport.job_coordinator.model.json_values import optional_field, required_field, shown
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
)

_WORDS: Final = {"any": ANY_HOST, "last-seen": LAST_SEEN}
_MAX_KEY: Final = 1_000
_MAX_VALUE: Final = 100_000
"""Characters of a key, and of its value."""

CheckModel = Callable[[Config], None]
"""Raises where a configuration has no valid JobModel; asks Kafka, so it is for a thread."""


class DriverActions:
    """``OperatorActions`` of a driver, on its event loop.

    ``file``: the deployment's own configuration, in force again where a key is taken back.
    """

    def __init__(self, driver: Driver, file: Config, check_model: CheckModel) -> None:
        self._driver = driver
        self._drain = DrainHost(driver, file)
        self._actions: Mapping[str, _Move | DrainHost | _SetKey] = {
            "move": _Move(driver),
            "restart": _Move(driver, FORCE_RESTART_LAST_SEEN),
            "cancel": _Move(driver, CANCEL),
            "drain": self._drain,
            "config": _SetKey(driver, file, check_model),
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the actions, in the dashboard's order."""
        return tuple(self._actions)

    async def plan(self, name: str, asked: Mapping[str, Any]) -> Plan:
        """Return what the action would do; nothing is changed."""
        return await self._actions[name].plan(asked)

    async def carry_out(self, name: str, asked: Mapping[str, Any], by: Caller) -> Mapping[str, Any]:
        """Write the action's record into the coordinator stream."""
        return await self._actions[name].carry_out(asked, by)

    async def answer(self, uuid: str) -> Mapping[str, Any] | None:
        """Return the last answer to a move or restart, or how far a drain has come."""
        drained = self._drain.answer(uuid)
        if drained is not None:
            return drained
        found = await self._driver.view.stream.placement(uuid)
        if found is None:
            return None
        status = found.status
        return {"status": status.value, "message": found.message, "final": status.is_final}


class _Move:
    """Moves a container, or restarts it. The request has ``processor``, ``host`` and ``warm``.

    ``destination`` replaces ``host``: ``FORCE_RESTART_LAST_SEEN`` restarts the container where it
    is; ``CANCEL`` cancels its moves and restarts that have not ended.
    """

    def __init__(self, driver: Driver, destination: str | None = None) -> None:
        self._driver = driver
        self._fixed = destination

    async def plan(self, asked: Mapping[str, Any]) -> Plan:
        request = self._request(asked)
        driver = self._driver
        before = driver.view.place_of(request.processor_id)
        reports = driver.cluster.hosts
        outlook = await asyncio.to_thread(what_if_commanded, driver.state, request, reports)
        return Plan(
            placement_named(request),
            before,
            request.destination,
            tuple(outlook_lines(outlook)),
            is_possible=outlook.answer is None or outlook.answer.status not in REFUSED,
        )

    async def carry_out(self, asked: Mapping[str, Any], by: Caller) -> Mapping[str, Any]:
        """Write the request; its answer comes under its uuid."""
        del by  # the record of a request, which is Samza's, has no room for a name
        request = self._request(asked)
        self._driver.audit.requested_by_http(request.uuid)
        message = PlacementManager.request_message(request)
        await self._driver.view.stream.change(lambda _: [message])
        return {"uuid": request.uuid, "message": f"{placement_named(request)} is written"}

    def _request(self, asked: Mapping[str, Any]) -> PlacementRequest:
        request = PlacementRequest(
            str(uuid.uuid4()),
            self._driver.status.identity.rank.application,
            ProcessorId(required_field(asked, "processor", str)),
            self._destination(asked),
            None,
            wall_ms(),
            optional_field(asked, "warm", bool) or False,
        )
        if request.fault:
            raise WireError(request.fault)
        return request

    def _destination(self, asked: Mapping[str, Any]) -> str:
        if self._fixed is not None:
            return self._fixed
        name = host_of(required_field(asked, "host", str))
        if name in _WORDS:
            return _WORDS[name]
        live = sorted(self._driver.state.hosts or ())
        if name not in live:
            raise WireError(
                f"{shown(name)} is no live host of the cluster: there are {', '.join(live)}, or any"
            )
        return name


class _SetKey:
    """Sets a key. Asked: ``key``, ``value``; without a value, takes back what was set."""

    def __init__(self, driver: Driver, file: Config, check_model: CheckModel) -> None:
        self._driver = driver
        self._file = file
        self._check_model = check_model

    async def plan(self, asked: Mapping[str, Any]) -> Plan:
        key, value = _key_of(asked)
        check_operators_key(key)
        check_key(key, value)
        written = await self._driver.view.stream.written()
        record = written.get(key)
        if value is None and (record is None or record.source != WRITER_SOURCE):
            said = f"{key} was not set after the deployment: there is nothing to take back"
            return Plan(f"config {key}", None, None, (said,), is_possible=False)
        change = await asyncio.to_thread(self._checked, key, value, written)
        return Plan(
            f"config {key}",
            _shown(key, change.before),
            _shown(key, change.after),
            (change.meaning(is_running=True),),
        )

    def _checked(
        self, key: str, value: str | None, written: Mapping[str, CoordinatorStreamMessage]
    ) -> ConfigChange:
        texts = {name: message.value("value") for name, message in written.items()}
        before = Config({n: t for n, t in texts.items() if t is not None and n not in AM_KEYS})
        return checked_change(
            key,
            value,
            before,
            self._file,
            has_state=has_state(self._driver.live.job_models.model.config),
            check_model=self._check_model,
        )

    async def carry_out(self, asked: Mapping[str, Any], by: Caller) -> Mapping[str, Any]:
        """Write the record as the writer tool does: a later deployment leaves it."""
        key, value = _key_of(asked)
        check_operators_key(key)
        record = wire.tombstone(MessageType.SET_CONFIG, key)
        if value is not None:
            record = wire.set_config(key, value)
        audit = self._driver.audit
        await self._driver.view.stream.do(lambda at: write_by_http(audit, at, by, record))
        return {"uuid": None, "message": f"{key} is {'taken back' if value is None else 'set'}"}


def _key_of(asked: Mapping[str, Any]) -> tuple[str, str | None]:
    key = required_field(asked, "key", str).strip()
    value = optional_field(asked, "value", str)
    if not key or len(key) > _MAX_KEY or not key.isprintable():
        raise WireError(f"key is no name of a key: {shown(key)}")
    if value is not None and len(value) > _MAX_VALUE:
        raise WireError(f"value has {len(value)} characters: at most {_MAX_VALUE} are taken")
    if value is not None and not value.isprintable():
        raise WireError(f"the value of {key} is not one printable line: {shown(value)}")
    return key, value


def _shown(key: str, config: Config) -> str | None:
    value = config.get(key)
    return None if value is None else shown_value(key, value)
