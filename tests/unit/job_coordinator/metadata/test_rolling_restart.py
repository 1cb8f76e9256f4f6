"""Records of a rolling restart come back as they were written, and damaged ones not at all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.upgrade import (
    RollingRestartManager,
    digest_of,
    is_at_once,
    shown_record,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    SUBJECT,
    RollingRestart,
    UpgradePhase,
    UpgradeState,
)

STATE = UpgradeState(
    "configuration 3",
    "app",
    "JobModel 3",
    "JobModel 2",
    1000,
    UpgradePhase.BACK,
    (ProcessorId("0"),),
    ProcessorId("0"),
    7,
    "it failed",
    "a line",
    SUBJECT,
)
ROLLING = RollingRestart(STATE, 3, 3, 4, {"my.key": "4", "my.other": None})


@pytest.mark.parametrize("rolling", [ROLLING, replace(ROLLING, back=None)])
def test_a_record_comes_back_as_it_was_written(rolling: RollingRestart) -> None:
    """For its run of the job; it is void for another one."""
    stream = InMemoryCoordinatorStream()
    manager = RollingRestartManager(stream)
    assert manager.read("app") is None
    stream.write([manager.message(rolling)])
    stream.catch_up()
    assert manager.read("app") == rolling
    assert manager.read("other") is None


@pytest.mark.parametrize(
    "damage", [{"former": "[]"}, {"former": '{"a": 1}'}, {"version": "x"}, {"phase": "?"}]
)
def test_a_damaged_record_is_none(damage: dict[str, str]) -> None:
    """All run on as they are, and a later change begins from the start."""
    stream = InMemoryCoordinatorStream()
    values = {**(RollingRestartManager.message(ROLLING).values or {}), **damage}
    key = "configuration"
    stream.write([CoordinatorStreamMessage(MessageType.SET_UPGRADE, key, values)])
    stream.catch_up()
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
    stream.write(manager.at_once_messages("k", "5", is_at_once=True))
    stream.catch_up()
    digest = manager.at_once()
    assert is_at_once(digest, ["k"], Config({"k": "5"}))
    assert not is_at_once(digest, ["k"], Config({"k": "6"}))
    assert not is_at_once(digest, ["k", "l"], Config({"k": "5"}))
    assert not is_at_once(None, ["k"], Config({"k": "5"}))
    assert is_at_once(digest_of("k", None), ["k"], Config({"k": "of the file"}))
    stream.write(manager.at_once_messages("k", "5", is_at_once=False))
    stream.catch_up()
    assert manager.at_once() is None


def test_a_record_is_shown_without_its_secrets() -> None:
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
