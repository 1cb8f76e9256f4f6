"""What tools change is in the audit trail; what came by HTTP is there once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.report.audited_changes import AuditedChanges
from homeport.config.declarations import all_keys as keys
from homeport.config.secret_values import MASK
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.metadata.configuration import AuditedManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import FORCE_RESTART_LAST_SEEN, PlacementRequest
from homeport.job_coordinator.model.upgrade import UpgradeDirection, UpgradeOrder, UpgradeState

OF_THE_AM: dict[str, Any] = {
    "source": "homeport",
    "host": "nm1",
    "username": "job",
    "timestamp_ms": 1,
}
ASKED = PlacementRequest("u1", "application_1_0001", ProcessorId("0"), "nm2", None, 5)


def record(key: str, value: str, at_ms: int = 1) -> CoordinatorStreamMessage:
    """As the writer tool of ada has written it."""
    return wire.set_config(key, value).stamped(
        source="coordinator-stream-writer", host="gateway", username="ada", timestamp_ms=at_ms
    )


class Job:
    """A job whose driver reads one coordinator stream, again and again, as others write there."""

    def __init__(self, folder: Path, log: list[tuple[bytes, bytes | None]] | None = None) -> None:
        self.stream = InMemoryCoordinatorStream("homeport", [] if log is None else log)
        self.stream.catch_up()
        self.audit = AuditedChanges(HistoryWriter(folder, "driver", "nm1", 64), self.stream)
        self.is_reached = True

    def look(self) -> None:
        """What is new is read and written down, and how far, unless Kafka is away."""
        self.stream.catch_up()
        audited = self.audit.follow(self.stream.taken_keys())
        if audited is not None and self.is_reached:
            self.stream.write([AuditedManager.message(audited)])
            self.audit.noted(audited)

    def write(self, *records: CoordinatorStreamMessage) -> None:
        """A tool writes them, in one go."""
        self.stream.log.extend(wire.encode(message) for message in records)

    def changes(self) -> list[tuple[Any, ...]]:
        """The trail: author, from where, through what, what, before, after."""
        names = ("author", "address", "through", "what", "before", "after")
        trail = json.loads(self.audit.trail.to_json())["changes"]
        return [tuple(change[name] for name in names) for change in trail]


def history(folder: Path) -> str:
    """The lines of the job's history."""
    return "".join(path.read_text() for path in folder.glob("*.jsonl"))


def gone(key: str) -> CoordinatorStreamMessage:
    """The record of a deletion."""
    return wire.tombstone(MessageType.SET_CONFIG, key)


TOOL = ("ada", "gateway", "coordinator-stream-writer")
UNNAMED = ("unknown", "unknown", "the coordinator stream")


def test_a_change_by_a_tool_names_user_and_host(tmp_path: Path) -> None:
    """Also in the history; what stood there at first is no change, nor is the same once more."""
    log = [wire.encode(record("a", "1")), wire.encode(record("b", "1"))]
    job = Job(tmp_path, log)
    job.look()
    job.write(record("a", "2", 2), record("b", "1", 2), record("c", "1", 2))
    job.look()
    job.look()
    assert job.changes() == [(*TOOL, "config a", "1", "2"), (*TOOL, "config c", None, "1")]
    events = [json.loads(line) for line in history(tmp_path).splitlines()]
    assert [(e["event"], e["what"]) for e in events] == [("audit", f"config {k}") for k in "ac"]


def test_each_of_several_changes_between_two_looks_is_a_line(tmp_path: Path) -> None:
    """Also one that was taken back before the driver looked."""
    job = Job(tmp_path)
    job.write(record("a", "1"), record("a", "2"), gone("a"), record("a", "1"), gone("b"))
    job.look()
    assert job.changes() == [
        (*TOOL, "config a", None, "1"),
        (*TOOL, "config a", "1", "2"),
        (*UNNAMED, "config a", "2", None),
        (*TOOL, "config a", None, "1"),
    ]


def test_a_value_that_a_tool_makes_its_own_is_a_line(tmp_path: Path) -> None:
    """It stands above later deployments then."""
    deployed = wire.set_config("a", "1").stamped(
        source="job-runner", host="h", username="u", timestamp_ms=1
    )
    job = Job(tmp_path, [wire.encode(deployed)])
    job.write(record("a", "1"))
    job.look()
    assert job.changes() == [(*TOOL, "config a", "1", "1")]


def test_what_was_written_while_no_driver_ran_is_a_line_of_the_next_one(tmp_path: Path) -> None:
    """Once; also of a driver that died before it had written down what it read."""
    first = Job(tmp_path / "1")
    first.write(record("a", "1"))
    first.look()
    assert len(first.changes()) == 1
    first.write(record("a", "2"), record("a", "3"), gone("b"))
    second = Job(tmp_path / "2", first.stream.log)
    assert second.changes() == [(*TOOL, "config a", "1", "2"), (*TOOL, "config a", "2", "3")]
    second.is_reached = False
    second.look()
    third = Job(tmp_path / "3", first.stream.log)
    assert len(third.changes()) == 2
    third.look()
    third.stream.catch_up()
    assert AuditedManager(third.stream).read() == 4
    fourth = Job(tmp_path / "4", first.stream.log)
    fourth.look()
    assert fourth.changes() == []


def test_the_place_in_the_stream_is_written_until_it_is_there(tmp_path: Path) -> None:
    """And not again where nothing is new."""
    job = Job(tmp_path)
    job.look()
    assert job.stream.log == []
    job.write(record("a", "1"))
    job.is_reached = False
    job.look()
    job.is_reached = True
    job.look()
    job.look()
    assert len(job.stream.log) == 2
    assert len(job.changes()) == 1


@pytest.mark.parametrize("offset", ["x", "-1", "1" * 400, None])
def test_a_damaged_place_is_none(tmp_path: Path, offset: str | None) -> None:
    """What was there at the start is no change then."""
    values = {} if offset is None else {"offset": offset}
    damaged = CoordinatorStreamMessage(MessageType.SET_AUDITED, "set-config", values)
    job = Job(tmp_path, [wire.encode(damaged), wire.encode(record("a", "1"))])
    assert job.changes() == []


def test_the_record_of_a_deletion_names_no_user(tmp_path: Path) -> None:
    """A tombstone has no value, and so no room for one; nor has a record of another program."""
    job = Job(tmp_path, [wire.encode(record("a", "1"))])
    job.write(gone("a"), wire.set_config("b", "1"))
    job.look()
    assert job.changes() == [(*UNNAMED, "config a", "1", None), (*UNNAMED, "config b", None, "1")]


def test_secrets_are_masked(tmp_path: Path) -> None:
    """By their key, before and after."""
    job = Job(tmp_path, [wire.encode(record("my.password", "hunter2"))])
    job.write(record("my.password", "hunter3"))
    job.look()
    assert job.changes()[0][3:] == ("config my.password", MASK, MASK)
    assert "hunter" not in history(tmp_path)


def test_of_tokens_the_names_are_shown(tmp_path: Path) -> None:
    """Never a digest; one that is exchanged under its name is another token."""
    key = keys.JOB_COORDINATOR_OPERATE_TOKENS.name
    ada, bob, eve = (
        f"{name}:{digit * 64}" for name, digit in zip(("ada", "bob", "ada"), "12e", strict=True)
    )
    job = Job(tmp_path, [wire.encode(record(key, ada))])
    for value in (f"{ada}, {bob}", f"{eve},{bob}", "no-digest", "", ada):
        job.write(record(key, value))
    job.write(gone(key))
    job.look()
    assert [change[4:] for change in job.changes()] == [
        ("ada", "ada, bob (new)"),
        ("ada, bob", "ada (new), bob"),
        ("ada, bob", MASK),
        (MASK, ""),
        ("", "ada (new)"),
        ("ada", None),
    ]
    assert not any(text in history(tmp_path) for text in ("1" * 16, "eeee", "no-digest"))


def test_what_the_am_writes_of_itself_is_no_change(tmp_path: Path) -> None:
    """Its URL is another one after each driver; a deployment removes it. What a tool writes is."""
    job, key = Job(tmp_path), "yarn.am.tracking.url"
    job.write(wire.set_config(key, "http://h:1").stamped(**OF_THE_AM), gone(key))
    job.look()
    assert job.changes() == []
    job.write(record(key, "http://evil:1"), wire.set_config(key, "http://h:2").stamped(**OF_THE_AM))
    job.look()
    assert [change[3:] for change in job.changes()] == [(f"config {key}", None, "http://evil:1")]


def http(value: str | None, at_ms: int) -> CoordinatorStreamMessage:
    """The record that a token of ada has written, or of a deletion."""
    if value is None:
        return gone("a")
    return wire.set_config("a", value)._replace(
        source="coordinator-stream-writer", username="ada", host="10.0.0.9", timestamp_ms=at_ms
    )


def test_what_came_by_http_comes_back_once(tmp_path: Path) -> None:
    """And is not written down again; the same value by a tool, later, is."""
    job = Job(tmp_path)
    # Several posts of one key within one look, and two that Kafka did not take.
    sent = [http("1", 1), http("2", 2), http(None, 0), http("1", 4)]
    job.audit.by_http([http("5", 9), http(None, 0)])
    job.audit.not_written([http("5", 9), http(None, 0)])
    job.audit.by_http(sent)
    job.write(*sent)
    job.look()
    assert job.changes() == []
    for value in ("2", "1", "5"):
        job.write(record("a", value))
    job.write(gone("a"))
    job.look()
    assert [change[:3] for change in job.changes()] == [TOOL, TOOL, TOOL, UNNAMED]


def test_requests_of_tools_are_in_the_trail(tmp_path: Path) -> None:
    """Samza's record names no user; one that came by HTTP is there already."""
    job = Job(tmp_path)
    audit = job.audit
    audit.requested(ASKED, Host("nm1"))
    audit.requested_by_http("u2")
    other = PlacementRequest("u2", "a", ProcessorId("1"), FORCE_RESTART_LAST_SEEN, None, 5)
    audit.requested(other, None)
    audit.requested(other, None)
    audit.requested(replace(ASKED, uuid="u3", is_warm=True), Host("nm2"))
    assert job.changes() == [
        (*UNNAMED, "move 0", "nm1", "nm2"),
        (*UNNAMED, "restart 1", None, FORCE_RESTART_LAST_SEEN),
        (*UNNAMED, "warm move 0", "nm2", "nm2"),
    ]


def test_an_upgrade_names_its_user_and_its_package(tmp_path: Path) -> None:
    """And so does the order that takes it back; each is a line, also of two between two looks."""
    job = Job(tmp_path)
    order = UpgradeOrder("u", "application_1_0001", "ab" * 32, 1000, by="ada")
    other = replace(order, id="v", package="cd" * 32, by="bob")
    back = replace(other, direction=UpgradeDirection.BACK, by="")
    job.write(*map(UpgradeManager.order_message, (order, other, back)))
    # Records of the driver's, and a damaged one, are no orders.
    state = UpgradeState("u", "application_1_0001", "ab" * 32, None, 1000)
    damaged = CoordinatorStreamMessage(MessageType.SET_UPGRADE, "order", {"direction": "up"})
    job.write(UpgradeManager.state_message(state), damaged, wire.tombstone(damaged.type, "undo"))
    job.look()
    assert job.changes() == [
        ("ada", *UNNAMED[1:], "upgrade", None, "ab" * 32),
        ("bob", *UNNAMED[1:], "upgrade", None, "cd" * 32),
        (*UNNAMED, "upgrade --undo", None, "cd" * 32),
    ]
    assert Job(tmp_path / "2", job.stream.log).changes() == []
