"""What tools change is in the audit trail; what came by HTTP is there once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from homeport.appmaster.report.audited_changes import AuditedChanges
from homeport.config.secret_values import MASK
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import FORCE_RESTART_LAST_SEEN, PlacementRequest
from homeport.job_coordinator.model.upgrade import UpgradeDirection, UpgradeOrder

ASKED = PlacementRequest("u1", "application_1_0001", ProcessorId("0"), "nm2", None, 5)


def record(key: str, value: str, at_ms: int = 1) -> CoordinatorStreamMessage:
    """As the writer tool of ada has written it."""
    return wire.set_config(key, value).stamped(
        source="coordinator-stream-writer", host="gateway", username="ada", timestamp_ms=at_ms
    )


def audited(folder: Path) -> AuditedChanges:
    """With a history of its own."""
    return AuditedChanges(HistoryWriter(folder, "driver", "nm1", 64))


def changes(audit: AuditedChanges) -> list[tuple[Any, ...]]:
    """The trail: author, from where, through what, what, before, after."""
    names = ("author", "address", "through", "what", "before", "after")
    return [tuple(c[n] for n in names) for c in json.loads(audit.trail.to_json())["changes"]]


def test_a_change_by_a_tool_names_user_and_host(tmp_path: Path) -> None:
    """Also in the history; what stood there at first is no change, nor is the same news again."""
    audit = audited(tmp_path)
    begun = {"a": record("a", "1"), "b": record("b", "1")}
    news = {"a": record("a", "2", 2), "b": record("b", "1"), "c": record("c", "1", 2)}
    audit.configured(begun)
    audit.configured(news)
    audit.configured(news)
    tool = ("ada", "gateway", "coordinator-stream-writer")
    assert changes(audit) == [(*tool, "config a", "1", "2"), (*tool, "config c", None, "1")]
    texts = "".join(path.read_text() for path in tmp_path.glob("*.jsonl"))
    events = [json.loads(line) for line in texts.splitlines()]
    assert [(e["event"], e["what"]) for e in events] == [
        ("audit", "config a"),
        ("audit", "config c"),
    ]


def test_the_record_of_a_deletion_names_no_user(tmp_path: Path) -> None:
    """A tombstone has no value, and so no room for one; nor has a record of another program."""
    audit = audited(tmp_path)
    audit.configured({"a": record("a", "1")})
    audit.configured({"b": wire.set_config("b", "1")})
    unnamed = ("unknown", "unknown", "the coordinator stream")
    assert changes(audit) == [
        (*unnamed, "config a", "1", None),
        (*unnamed, "config b", None, "1"),
    ]


def test_secrets_are_masked(tmp_path: Path) -> None:
    """By their key, before and after."""
    audit = audited(tmp_path)
    audit.configured({"my.password": record("my.password", "hunter2")})
    audit.configured({"my.password": record("my.password", "hunter3")})
    assert changes(audit)[0][3:] == ("config my.password", MASK, MASK)
    assert "hunter" not in "".join(p.read_text() for p in tmp_path.glob("*.jsonl"))


def test_what_the_am_writes_of_itself_is_no_change(tmp_path: Path) -> None:
    """Its URL is another one after each driver."""
    audit = audited(tmp_path)
    audit.configured({})
    audit.configured({"yarn.am.tracking.url": record("yarn.am.tracking.url", "http://h:1")})
    assert changes(audit) == []


def test_what_came_by_http_comes_back_once(tmp_path: Path) -> None:
    """And is not written down again; the same value by a tool, later, is."""
    audit = audited(tmp_path)
    audit.configured({})
    audit.by_http(key="a", value="1")
    audit.configured({"a": record("a", "1")})
    audit.by_http(key="a", value=None)
    audit.configured({})
    assert changes(audit) == []
    audit.configured({"a": record("a", "1")})
    assert len(changes(audit)) == 1


def test_requests_of_tools_are_in_the_trail(tmp_path: Path) -> None:
    """Samza's record names no user; one that came by HTTP is there already."""
    audit = audited(tmp_path)
    audit.requested(ASKED, Host("nm1"))
    audit.by_http(request="u2")
    other = PlacementRequest("u2", "a", ProcessorId("1"), FORCE_RESTART_LAST_SEEN, None, 5)
    audit.requested(other, None)
    audit.requested(other, None)
    audit.requested(replace(ASKED, uuid="u3", is_warm=True), Host("nm2"))
    unnamed = ("unknown", "unknown", "the coordinator stream")
    assert changes(audit) == [
        (*unnamed, "move 0", "nm1", "nm2"),
        (*unnamed, "restart 1", None, FORCE_RESTART_LAST_SEEN),
        (*unnamed, "warm move 0", "nm2", "nm2"),
    ]


def test_an_upgrade_names_its_user_and_its_package(tmp_path: Path) -> None:
    """And so does the order that takes it back."""
    audit = audited(tmp_path)
    order = UpgradeOrder("u", "application_1_0001", "ab" * 32, 1000, by="ada")
    audit.upgrade_ordered(order)
    audit.upgrade_ordered(replace(order, direction=UpgradeDirection.BACK, by=""))
    place = ("unknown", "the coordinator stream")
    assert changes(audit) == [
        ("ada", *place, "upgrade", None, "ab" * 32),
        ("unknown", *place, "upgrade --undo", None, "ab" * 32),
    ]
