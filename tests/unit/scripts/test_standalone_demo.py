"""scripts/demo --standalone: its faults, and what it takes of a history."""

from __future__ import annotations

from typing import Any

from flights_demo.processors import Done, commits, first_commits
from flights_demo.standalone_chaos import KINDS, LEAST_FAULTS, schedule


def _line(event: str, ts_ms: int, epoch: int = 1, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"event": event, "ts_ms": ts_ms, "processor_id": "p1", "epoch": epoch, **fields}


def test_the_first_commit_of_each_task_and_incarnation_counts() -> None:
    """A transaction that ends and is not committed says nothing."""
    lines = [
        _line("started", 1),
        _line("transaction-ending", 2, offsets={"a": {}, "b": {}}),
        _line("transaction-committed", 3),
        _line("transaction-ending", 4, offsets={"a": {}}),
        _line("transaction-committed", 5),
        _line("transaction-committed", 6),
        _line("transaction-ending", 7, epoch=2, offsets={"a": {}}),
        _line("transaction-committed", 8, epoch=2),
        _line("transaction-ending", 9, epoch=2, offsets={"c": {}}),
    ]
    assert list(first_commits(lines)) == [
        Done("p1", 1, "a", 3),
        Done("p1", 1, "b", 3),
        Done("p1", 2, "a", 8),
    ]


def test_commits_are_those_whose_transaction_has_ended() -> None:
    """Each task of it, at its time; an aborted one commits nothing."""
    lines = [
        _line("transaction-ending", 1, offsets={"a": {}, "b": {}}),
        _line("transaction-committed", 2),
        _line("transaction-committed", 3),
        _line("started", 4),
        _line("transaction-ending", 5, offsets={"a": {}}),
    ]
    assert list(commits(lines)) == [Done("p1", 1, "a", 2), Done("p1", 1, "b", 2)]


def test_a_seed_reproduces_its_schedule_of_faults() -> None:
    """Each kind comes, each fault is readable, and only what lasts has a length."""
    assert schedule(3) == schedule(3)
    assert schedule(3) != schedule(4)
    for seed in range(20):
        faults = schedule(seed)
        assert {fault.kind for fault in faults} == set(KINDS)
        assert len(faults) >= LEAST_FAULTS
        assert all(fault.kind in str(fault) for fault in faults)
        assert all((fault.length_s > 0) == (fault.kind != "join") for fault in faults)
