"""An upgrade in the coordinator stream: what was ordered, and how far it has come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradePhase,
    UpgradeState,
)

NEW, OLD = "ab" * 32, "cd" * 32
ORDER = UpgradeOrder("u", "app", NEW, 60_000, UpgradeDirection.BACK, "ann")
P0, S0 = ProcessorId("0"), ProcessorId("0-0")
STATE = UpgradeState(
    "u", "app", NEW, OLD, 60_000, UpgradePhase.FORWARD, (S0, P0), P0, 7, "a reason", "a line"
)
SHORT = UpgradeState("u", "app", NEW, None, 0)


@pytest.mark.parametrize("state", [STATE, SHORT])
def test_both_records_are_read_back(stream: InMemoryCoordinatorStream, state: UpgradeState) -> None:
    """By the run of the job that they are for; none of them for another run."""
    manager = UpgradeManager(stream)
    assert (manager.order("app"), manager.state("app")) == (None, None)
    stream.write([manager.order_message(ORDER), manager.state_message(state)])
    stream.catch_up()
    assert (manager.order("app"), manager.state("app")) == (ORDER, state)
    assert (manager.order("other"), manager.state("other")) == (None, None)


def test_a_new_run_forgets_what_was_for_another_one(stream: InMemoryCoordinatorStream) -> None:
    """And what cannot be read; its own records stay."""
    manager = UpgradeManager(stream)
    own = replace(ORDER, application="app2")
    stream.write([manager.order_message(own), manager.state_message(STATE)])
    stream.write([CoordinatorStreamMessage(MessageType.SET_UPGRADE, "odd", {})])
    stream.catch_up()
    stream.write(manager.messages_of_a_new_run("app2"))
    stream.catch_up()
    assert set(stream.latest(MessageType.SET_UPGRADE)) == {"order"}


@pytest.mark.parametrize("name", ["id", "application", "package", "watch-ms", "direction"])
def test_a_damaged_order_is_none(stream: InMemoryCoordinatorStream, name: str) -> None:
    """Nothing is begun by it."""
    record = UpgradeManager.order_message(ORDER)
    values = {k: v for k, v in (record.values or {}).items() if k != name}
    stream.write([record._replace(values=values)])
    stream.catch_up()
    assert UpgradeManager(stream).order("app") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", ""),
        ("watch-ms", "x"),
        ("package", "AB"),
        ("previous", "new"),
        ("phase", "up"),
        ("given", "{}"),
        ("given", "[1]"),
        ("lag-before", "-1"),
    ],
)
def test_a_damaged_state_is_none(stream: InMemoryCoordinatorStream, name: str, value: str) -> None:
    """All processors are wanted with the submission's package, as without one."""
    record = UpgradeManager.state_message(STATE)
    stream.write([record._replace(values={**(record.values or {}), name: value})])
    stream.catch_up()
    assert UpgradeManager(stream).state("app") is None


def test_each_processor_is_wanted_with_one_package() -> None:
    """While it is under way by what was given, later by how it ended."""
    assert STATE.wanted(P0) == NEW
    assert STATE.wanted(ProcessorId("1")) == OLD
    done = replace(STATE, phase=UpgradePhase.DONE)
    gone = replace(STATE, phase=UpgradePhase.GONE_BACK)
    assert (done.wanted(ProcessorId("1")), gone.wanted(P0)) == (NEW, OLD)
    assert [p.is_final for p in UpgradePhase] == [False, False, True, True]
