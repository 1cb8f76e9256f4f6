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
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)

NEW, OLD = "ab" * 32, "cd" * 32
ORDER = UpgradeOrder("u", "app", NEW, 60_000, UpgradeDirection.FORWARD, "ann")
BACK = replace(ORDER, direction=UpgradeDirection.BACK)
P0, S0 = ProcessorId("0"), ProcessorId("0-0")
STATE = UpgradeState(
    "u", "app", NEW, OLD, 60_000, UpgradePhase.FORWARD, (S0, P0), P0, 7, "a reason", "a line"
)
SHORT = UpgradeState("u", "app", NEW, None, 0)


@pytest.mark.parametrize("state", [STATE, SHORT])
def test_both_records_are_read_back(stream: InMemoryCoordinatorStream, state: UpgradeState) -> None:
    """By the run of the job that they are for; none of them for another run."""
    manager = UpgradeManager(stream)
    assert (manager.orders("app"), manager.state("app")) == (UpgradeOrders(), None)
    stream.write([manager.order_message(ORDER), manager.state_message(state)])
    stream.catch_up()
    assert (manager.orders("app"), manager.state("app")) == (UpgradeOrders(ORDER), state)
    assert (manager.orders("other"), manager.state("other")) == (UpgradeOrders(), None)
    assert manager.last_state() == state


def test_an_order_back_takes_the_place_of_no_other(stream: InMemoryCoordinatorStream) -> None:
    """Nor does an order forward take its place: none of them is lost in silence."""
    manager, next_ = UpgradeManager(stream), replace(ORDER, id="next")
    stream.write(map(manager.order_message, [ORDER, BACK, next_]))
    stream.catch_up()
    assert manager.orders("app") == UpgradeOrders(next_, BACK)


def test_a_refusal_and_the_submissions_package_are_read_back(
    stream: InMemoryCoordinatorStream,
) -> None:
    """For the run that they are of."""
    manager = UpgradeManager(stream)
    assert manager.submitted("app") is None
    stream.write([manager.order_message(ORDER), manager.refusal_message(ORDER, "not now")])
    stream.write([manager.submitted_message("app", OLD)])
    stream.catch_up()
    assert manager.orders("app") == UpgradeOrders(ORDER, None, "u", "not now")
    assert manager.orders("other") == UpgradeOrders()
    assert (manager.submitted("app"), manager.submitted("other")) == (OLD, None)
    stream.write([manager.submitted_message("app", "no sha256")])
    stream.catch_up()
    assert manager.submitted("app") is None


def test_an_order_under_the_key_of_the_other_direction_is_none(
    stream: InMemoryCoordinatorStream,
) -> None:
    """No tool of ours writes one."""
    stream.write([UpgradeManager.order_message(ORDER)._replace(key="undo")])
    stream.catch_up()
    assert UpgradeManager(stream).orders("app") == UpgradeOrders()


def test_a_new_run_forgets_what_was_for_another_one(stream: InMemoryCoordinatorStream) -> None:
    """And what cannot be read; its own records stay."""
    manager = UpgradeManager(stream)
    own = replace(ORDER, application="app2")
    stream.write([manager.order_message(own), manager.state_message(STATE)])
    stream.write([manager.order_message(BACK), manager.refusal_message(BACK, "not now")])
    stream.write([manager.submitted_message("app", OLD)])
    stream.write([CoordinatorStreamMessage(MessageType.SET_UPGRADE, "odd", {})])
    stream.catch_up()
    stream.write(manager.messages_of_a_new_run("app2"))
    stream.catch_up()
    # The client of that run writes the submission's package, perhaps since this was read.
    assert set(stream.latest(MessageType.SET_UPGRADE)) == {"order", "submitted"}


@pytest.mark.parametrize("name", ["id", "application", "package", "watch-ms", "direction"])
def test_a_damaged_order_is_none(stream: InMemoryCoordinatorStream, name: str) -> None:
    """Nothing is begun by it."""
    record = UpgradeManager.order_message(ORDER)
    values = {k: v for k, v in (record.values or {}).items() if k != name}
    stream.write([record._replace(values=values)])
    stream.catch_up()
    assert UpgradeManager(stream).orders("app") == UpgradeOrders()


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
