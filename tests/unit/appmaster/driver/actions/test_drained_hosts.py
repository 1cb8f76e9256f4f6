"""Hosts that several operators drain at once, by HTTP and by tools: none is lost."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.driver.actions.draining import DrainHost
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.driver import Driver
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.callers import Caller, Role
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host

KEY = keys.DRAINED_HOSTS
ADA, BOB = (Caller(name, Role.OPERATE, "10.0.0.9") for name in ("ada", "bob"))


def drained(log: list[tuple[bytes, bytes | None]]) -> set[str]:
    """What a reader of the log sees."""
    stream = InMemoryCoordinatorStream("reader", log)
    stream.catch_up()
    return set(KEY.read(ConfigManager(stream).read()))


class Audit:
    """What came by HTTP, as the trail gets it."""

    def __init__(self) -> None:
        self.records: list[CoordinatorStreamMessage] = []

    def by_http(self, records: list[CoordinatorStreamMessage]) -> None:
        """Kept."""
        self.records += records


def host_drain(stream: InMemoryCoordinatorStream, file: Config | None = None) -> DrainHost:
    """The action on a driver that has only its side of the stream."""
    client = CoordinatorStreamClient(stream, Rank(1, "application_1_0001", 1))
    driver = SimpleNamespace(view=SimpleNamespace(stream=client), audit=Audit())
    return DrainHost(cast("Driver", driver), file)


async def test_two_operators_drain_two_hosts_at_once() -> None:
    """Both planned before either wrote."""
    stream = InMemoryCoordinatorStream("job")
    action = host_drain(stream)
    await asyncio.gather(
        action._write_key(Host("nm1"), ADA, is_drained=True),
        action._write_key(Host("nm2"), BOB, is_drained=True),
    )
    assert drained(stream.log) == {"nm1", "nm2"}
    records = cast("Audit", action._driver.audit).records
    assert [record.username for record in records] == ["ada", "bob"]


@pytest.mark.parametrize("by_tool", ["nm1,nm2", "nm2"])
async def test_a_tool_that_writes_between_look_and_write_loses_nothing(
    by_tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its record says of the host that is drained here."""
    stream = InMemoryCoordinatorStream("job")
    tool = InMemoryCoordinatorStream("tool", stream.log)
    write, waiting = stream.write, [wire.set_config(KEY.name, by_tool)]

    def late(messages: list[CoordinatorStreamMessage]) -> None:
        tool.write([waiting.pop()] if waiting else [])
        write(messages)

    monkeypatch.setattr(stream, "write", late)
    await host_drain(stream)._write_key(Host("nm3"), ADA, is_drained=True)
    assert drained(stream.log) == {*by_tool.split(","), "nm3"}


async def test_a_host_that_the_file_drains_gets_containers_again() -> None:
    """The file's list does not come back with the last host that goes."""
    stream = InMemoryCoordinatorStream("job")
    action = host_drain(stream, Config({KEY.name: "nm1"}))
    await action._write_key(Host("nm1"), ADA, is_drained=False)
    stream.catch_up()
    assert ConfigManager(stream).read()[KEY.name] == ""
