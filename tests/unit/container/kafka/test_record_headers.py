"""Headers of a record whose names are no text, which the client for Python does not bear."""

from __future__ import annotations

import pytest
from odd_headers import read_with

from homeport.container.kafka.input_consumer import headers_of, table_of
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

IN = SystemStreamPartition("kafka", "in", 0)


def test_a_header_whose_name_is_no_text_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The record is one of each task that reads it; it would end its container at each start.

    So it is in a loop that has run for a while, whose calls Python has specialized.
    """
    with read_with([b"a"]) as usual:
        for _ in range(100):
            headers_of(usual)
    with read_with([b"a", b"\xff", "ü".encode(), b"\xed\xa0\x80", b"<NULL>"]) as message:
        for task in ("Partition 0", "Partition 1"):
            (row,) = table_of(TaskName(task), IN, [message]).to_pylist()
            assert row["headers"] == [("a", b"v"), ("ü", b"v"), ("<NULL>", b"v")]
    (line,) = caplog.messages
    assert line.startswith("input in partition 0 offset 0: 2 of its 5 headers have names that are")


def test_headers_are_read_as_they_are() -> None:
    """Their names are text, in nearly all records."""
    with read_with([b"a", b"a"]) as message:
        (row,) = table_of(TaskName("Partition 0"), IN, [message]).to_pylist()
        assert row["headers"] == [("a", b"v"), ("a", b"v")]
