"""Which record was too large."""

from __future__ import annotations

from homeport.config.system_stream import SystemStream
from homeport.container.progress.oversized import story, topics
from homeport.container.progress.transaction_plan import Changes, Send, TransactionContent
from homeport.job_coordinator.model.ids import TaskName


def _content(value: int, change: int) -> TransactionContent:
    entries = {b"k": b"x" * change, b"deleted": None}
    changes = Changes("counts", TaskName("P 0"), SystemStream("kafka", "log"), 0, entries)
    sends = [Send("out", b"k", b"small"), Send("out", None, b"x" * value, None, {"h": b"1"})]
    return TransactionContent(sends, [changes], {})


def test_an_output_is_named_with_size_and_limit() -> None:
    """Size is key, value and headers."""
    said = story(_content(5000, 10), {"out": 4000, "log": 4000})
    assert said is not None
    assert said.startswith("output stream out: a record of 5002 bytes exceeds the limit of 4000")


def test_a_change_is_named_by_its_store() -> None:
    """And by task and changelog; each topic has its own limit."""
    said = story(_content(5000, 3000), {"out": 9000, "log": 2000})
    assert said is not None
    assert said.startswith("store counts of task 'P 0' (changelog log): a record of 3001 bytes")


def test_there_is_no_story_if_no_record_is_too_large() -> None:
    """Then something else kept it from being delivered."""
    assert story(_content(10, 10), {"out": 9000, "log": 9000}) is None
    assert topics(_content(1, 1)) == {"out", "log"}


def test_an_empty_record_may_be_too_large_too() -> None:
    """What Kafka adds to a record counts."""
    content = TransactionContent([Send("out", None, None, 0)], [], {})
    said = story(content, {"out": 1})
    assert said is not None
    assert said.startswith("output stream out: a record of 0 bytes exceeds the limit of 1 bytes")
