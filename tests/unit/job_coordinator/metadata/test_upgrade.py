"""An upgrade in the coordinator stream: what was ordered, and how far it has come."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.upgrade import (
    RollingRestartManager,
    UpgradeManager,
    digest_of,
    is_at_once,
    shown_record,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    SUBJECT,
    RollingRestart,
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
ROLLED = replace(STATE, phase=UpgradePhase.BACK, subject=SUBJECT)
ROLLING = RollingRestart(ROLLED, 3, 3, 4, {"my.key": "4", "my.other": None})


@pytest.mark.parametrize("state", [STATE, SHORT])
def test_both_records_are_read_back(stream: InMemoryCoordinatorStream, state: UpgradeState) -> None:
    """By the run of the job that they are for; none of them for another run."""
    manager = UpgradeManager(stream)
    assert (manager.orders("app"), manager.state("app")) == (UpgradeOrders(), None)
    put(stream, manager.order_message(ORDER), manager.state_message(state))
    assert (manager.orders("app"), manager.state("app")) == (UpgradeOrders(ORDER), state)
    assert (manager.orders("other"), manager.state("other")) == (UpgradeOrders(), None)
    assert manager.last_state() == state


def test_an_order_back_takes_the_place_of_no_other(stream: InMemoryCoordinatorStream) -> None:
    """Nor does an order forward take its place: none of them is lost in silence."""
    manager, next_ = UpgradeManager(stream), replace(ORDER, id="next")
    put(stream, *map(manager.order_message, [ORDER, BACK, next_]))
    assert manager.orders("app") == UpgradeOrders(next_, BACK)


def test_a_refusal_and_the_submissions_package_are_read_back(
    stream: InMemoryCoordinatorStream,
) -> None:
    """For the run that they are of."""
    manager = UpgradeManager(stream)
    assert manager.submitted("app") is None
    put(
        stream,
        manager.order_message(ORDER),
        manager.refusal_message(ORDER, "not now"),
        manager.submitted_message("app", OLD),
    )
    assert manager.orders("app") == UpgradeOrders(ORDER, None, "u", "not now")
    assert manager.orders("other") == UpgradeOrders()
    assert (manager.submitted("app"), manager.submitted("other")) == (OLD, None)
    put(stream, manager.submitted_message("app", "no sha256"))
    assert manager.submitted("app") is None


def test_an_order_under_the_key_of_the_other_direction_is_none(
    stream: InMemoryCoordinatorStream,
) -> None:
    """No tool of ours writes one."""
    put(stream, UpgradeManager.order_message(ORDER)._replace(key="undo"))
    assert UpgradeManager(stream).orders("app") == UpgradeOrders()


def test_a_new_run_forgets_what_was_for_another_one(stream: InMemoryCoordinatorStream) -> None:
    """And what cannot be read; its own records stay."""
    manager = UpgradeManager(stream)
    own = replace(ORDER, application="app2")
    put(
        stream,
        manager.order_message(own),
        manager.state_message(STATE),
        manager.order_message(BACK),
        manager.refusal_message(BACK, "not now"),
        manager.submitted_message("app", OLD),
        CoordinatorStreamMessage(MessageType.SET_UPGRADE, "odd", {}),
    )
    put(stream, *manager.messages_of_a_new_run("app2"))
    # The client of that run writes the submission's package, perhaps since this was read.
    assert set(stream.latest(MessageType.SET_UPGRADE)) == {"order", "submitted"}


def test_each_processor_is_wanted_with_one_package() -> None:
    """While it is under way by what was given, later by how it ended."""
    assert STATE.wanted(P0) == NEW
    assert STATE.wanted(ProcessorId("1")) == OLD
    done = replace(STATE, phase=UpgradePhase.DONE)
    gone = replace(STATE, phase=UpgradePhase.GONE_BACK)
    assert (done.wanted(ProcessorId("1")), gone.wanted(P0)) == (NEW, OLD)
    assert [p.is_final for p in UpgradePhase] == [False, False, True, True]


@pytest.mark.parametrize("rolling", [ROLLING, replace(ROLLING, back=None)])
def test_a_rolling_restart_comes_back_as_it_was_written(
    stream: InMemoryCoordinatorStream, rolling: RollingRestart
) -> None:
    """For its run of the job; it is void for another one."""
    manager = RollingRestartManager(stream)
    assert manager.read("app") is None
    put(stream, manager.message(rolling))
    assert manager.read("app") == rolling
    assert manager.read("other") is None


_ORDER, _STATE = UpgradeManager.order_message(ORDER), UpgradeManager.state_message(STATE)
_ROLLING = RollingRestartManager.message(ROLLING)


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        *((_ORDER, name, None) for name in ("id", "application", "package", "watch-ms")),
        (_ORDER, "direction", None),
        (_STATE, "id", ""),
        (_STATE, "watch-ms", "x"),
        (_STATE, "package", "AB"),
        (_STATE, "previous", "new"),
        (_STATE, "phase", "up"),
        (_STATE, "phase", None),
        (_STATE, "given", "{}"),
        (_STATE, "given", "[1]"),
        (_STATE, "lag-before", "-1"),
        (_STATE, "lag-before", ""),
        (_ROLLING, "former", "[]"),
        (_ROLLING, "former", '{"a": 1}'),
        (_ROLLING, "version", "x"),
        (_ROLLING, "phase", "?"),
        (_ROLLING, "phase", None),
    ],
)
def test_a_damaged_record_is_none(
    stream: InMemoryCoordinatorStream,
    record: CoordinatorStreamMessage,
    name: str,
    value: str | None,
) -> None:
    """Nothing is begun by it: all processors run on as they are."""
    values = {**(record.values or {}), name: value}
    put(stream, record._replace(values={k: v for k, v in values.items() if v is not None}))
    assert UpgradeManager(stream).orders("app") == UpgradeOrders()
    assert UpgradeManager(stream).state("app") is None
    assert RollingRestartManager(stream).read("app") is None


def test_the_former_values_are_written_as_a_user_would() -> None:
    """A key that had no value is deleted."""
    first, second = RollingRestartManager.former_messages(ROLLING)
    assert (first.type, first.key, first.value("value")) == (MessageType.SET_CONFIG, "my.key", "4")
    assert (second.key, second.is_tombstone) == ("my.other", True)


def test_an_order_to_restart_all_at_once_is_for_one_value() -> None:
    """The next write without it takes it away; a deletion may have it, too."""
    stream = InMemoryCoordinatorStream()
    manager = RollingRestartManager(stream)
    assert list(manager.at_once_messages("k", "5", is_at_once=False)) == []
    put(stream, *manager.at_once_messages("k", "5", is_at_once=True))
    digest = manager.at_once()
    assert is_at_once(digest, ["k"], Config({"k": "5"}))
    assert not is_at_once(digest, ["k"], Config({"k": "6"}))
    assert not is_at_once(digest, ["k", "l"], Config({"k": "5"}))
    assert not is_at_once(None, ["k"], Config({"k": "5"}))
    assert is_at_once(digest_of("k", None), ["k"], Config({"k": "of the file"}))
    put(stream, *manager.at_once_messages("k", "5", is_at_once=False))
    assert manager.at_once() is None


def test_a_rolling_restart_is_shown_without_its_secrets() -> None:
    """The former value of a secret, the digest of one value, and all of a damaged map."""
    former = {"my.password": "hunter2", "my.key": "4", "my.other": None}
    values = RollingRestartManager.message(replace(ROLLING, former=former)).values or {}
    shown = shown_record(values)
    assert json.loads(shown["former"]) == {**former, "my.password": "********"}
    assert shown["phase"] == "back"
    assert "hunter2" not in str(shown)
    assert shown_record({"former": "{hunter2"}) == {"former": "********"}
    assert shown_record({"digest": digest_of("my.password", "x")}) == {"digest": "********"}
    assert shown_record({"id": "u"}) == {"id": "u"}
