"""The audit trail: one line, one event, bounded memory."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from homeport.job_coordinator.http.audit import MAX_CHANGES, MAX_TEXT, AuditTrail, Change

MOVE = Change("ada", "10.0.0.7", "http", "move 0", "nm1", "nm2")


def test_a_change_is_in_memory_in_the_log_and_in_the_history(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Author, from where, through what, what, before and after."""
    events = list[Mapping[str, Any]]()
    trail = AuditTrail(events.append)
    with caplog.at_level(logging.INFO, "audit"):
        trail.add(MOVE)
        trail.add(replace(MOVE, before=None))
    first, second = json.loads(trail.to_json())["changes"]
    assert first.pop("at_ms") > 0
    assert first == {"number": 1, **events[0]}
    assert (events[0]["author"], events[0]["address"]) == ("ada", "10.0.0.7")
    assert second["before"] is None
    assert caplog.messages == [
        "audit 1: ada from 10.0.0.7 by http: move 0: 'nm1' -> 'nm2'",
        "audit 2: ada from 10.0.0.7 by http: move 0: nothing -> 'nm2'",
    ]


def test_a_field_is_one_line_of_bounded_length() -> None:
    """No user can write a second line into the log, or act on a terminal."""
    bounded = replace(MOVE, what="a\nb\x1b[2J\u2028", after="x" * 9_999).bounded()
    assert bounded.what == "a b?[2J"
    assert len(bounded.after or "") == MAX_TEXT


def test_the_newest_are_kept() -> None:
    """So many; their numbers go on."""
    trail = AuditTrail(lambda _: None)
    for _ in range(MAX_CHANGES + 5):
        trail.add(MOVE)
    kept = json.loads(trail.to_json())["changes"]
    assert (len(kept), kept[0]["number"], kept[-1]["number"]) == (MAX_CHANGES, 6, MAX_CHANGES + 5)
