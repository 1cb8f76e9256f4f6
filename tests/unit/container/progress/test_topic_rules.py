"""Which record of a transaction its topic refuses, and how the line names it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from homeport.config.system_stream import SystemStream
from homeport.container.progress.topic_rules import (
    BATCH_BYTES,
    TopicRules,
    batch_size,
    story,
    topics,
    wire_size,
)
from homeport.container.progress.transaction_plan import Changes, Send, StoreId, TransactionContent
from homeport.job_coordinator.model.ids import TaskName

NOW_MS = 1_000_000


def _rules(topic_bytes: int, **more: bool | int) -> TopicRules:
    options: dict[str, Any] = dict(more)
    return TopicRules(topic_bytes, batch_bytes=0, **options)


def _content(*sends: Send, change: int = 10) -> TransactionContent:
    entries = {b"k": b"x" * change, b"deleted": None}
    changes = Changes(StoreId("counts", TaskName("P 0")), SystemStream("kafka", "log"), 0, entries)
    return TransactionContent(list(sends), [changes], {})


def _out(size: int, key: bytes | None = None, topic: str = "out") -> Send:
    return Send(topic, key, b"x" * size)


def _one(send: Send, rules: TopicRules) -> str | None:
    return story(TransactionContent([send], [], {}), {send.topic: rules}, NOW_MS)


OUT = "output stream out: a record of "
FITS = batch_size(None, b"x" * 1000, ())


@pytest.mark.parametrize(
    ("send", "rules", "expected"),
    [
        (Send("out", None, b"x" * 5000, None, [("h", b"1")]), _rules(4000), "5002 bytes exceeds"),
        (_out(1001), _rules(FITS), f"1001 bytes exceeds the limit of {FITS} bytes"),
        (Send("out", None, None), _rules(1), "0 bytes exceeds the limit of 1 "),
        (Send("out", None, None, 0, [("", None)]), _rules(1), "0 bytes exceeds the limit of 1 "),
        (_out(0), _rules(batch_size(None, b"", ()) - 1), "0 bytes exceeds the limit of 67 bytes"),
        (_out(100), _rules(9000, client_bytes=135), "100 bytes exceeds the limit of 135 bytes"),
    ],
    ids=["headers count", "one byte", "empty", "header without a value", "takes none", "client's"],
)
def test_an_output_is_named_with_size_and_limit(
    send: Send, rules: TopicRules, expected: str
) -> None:
    """Size is key, value and headers; the limit is the lower one, of the topic or the client.

    What Kafka adds to a record counts.
    """
    assert (_one(send, rules) or "").startswith(OUT + expected)


@pytest.mark.parametrize(
    ("size", "rules"), [(1000, _rules(FITS)), (100, _rules(9000, client_bytes=136))]
)
def test_a_record_that_just_fits_is_not_too_large(size: int, rules: TopicRules) -> None:
    """With what stands beside it in its batch it is as large as the limit."""
    assert _one(_out(size), rules) is None


def test_a_change_is_named_by_its_store() -> None:
    """And by task and changelog; each topic has its own limit."""
    content = _content(_out(5000), change=3000)
    found = story(content, {"out": _rules(9000), "log": _rules(2000)}, 0) or ""
    assert found.startswith("store counts of task 'P 0' (changelog log): a record of 3001 bytes")
    assert story(content, {"out": _rules(9000), "log": _rules(9000)}, 0) is None
    assert topics(content) == {"out", "log"}


def test_the_first_of_two_equally_large_records_is_named() -> None:
    """One line names one record."""
    content = _content(_out(1000), _out(1000, topic="out1"))
    rules = {"out": TopicRules(10), "out1": TopicRules(10), "log": _rules(9000)}
    assert (story(content, rules, 0) or "").startswith(OUT + "1000 bytes exceeds the limit of 10")


def test_a_record_without_a_key_is_named_where_the_topic_is_compacted() -> None:
    """An empty key is one."""
    rules = _rules(9000, is_compacted=True)
    expected = "output stream out: a record has no key, and the topic is compacted: give it a key"
    assert _one(_out(1), rules) == expected
    assert _one(_out(1, b""), rules) is None
    assert _one(_out(1), _rules(9000)) is None


@pytest.mark.parametrize(
    ("timestamp_ms", "is_refused"),
    [
        (NOW_MS + 50, False),
        (NOW_MS + 51, True),
        (NOW_MS - 20, False),
        (NOW_MS - 21, True),
        (None, False),
    ],
)
def test_a_time_that_the_topic_does_not_take_is_named(
    timestamp_ms: int | None, *, is_refused: bool
) -> None:
    """A topic that stamps records itself takes any."""
    send = Send("out", None, b"v", timestamp_ms=timestamp_ms)
    found = _one(send, _rules(9000, before_ms=20, after_ms=50))
    assert (found is not None) is is_refused
    if found is not None:
        assert found.startswith(
            f"output stream out: a record has timestamp {timestamp_ms}, and the"
        )
        assert "20 ms before or 50 ms after the broker's clock" in found
    assert _one(send, _rules(9000, is_stamped=True, before_ms=20, after_ms=50)) is None


def test_a_topic_that_takes_less_than_the_clients_batches_is_named() -> None:
    """Each record alone is small enough."""
    content = TransactionContent([Send("big", None, b"v"), Send("out", None, b"v")], [], {})
    rules = {"big": TopicRules(BATCH_BYTES), "out": TopicRules(BATCH_BYTES - 1)}
    found = story(content, rules, 0)
    assert found is not None
    assert found.startswith("output stream out: the topic takes batches of 999999 bytes, and the")
    assert "set systems.<system>.producer.batch.size=999999" in found


def test_rules_are_read_from_a_topics_configuration() -> None:
    """What is absent, or no number, is as large as can be."""
    given = {
        "max.message.bytes": "5",
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "7",
        "message.timestamp.after.max.ms": "8",
    }
    found = TopicRules.of(given, 9, 10)
    assert found == TopicRules(
        5, 9, 10, is_compacted=True, is_stamped=True, before_ms=7, after_ms=8
    )
    assert TopicRules.of({"max.message.bytes": "x"}, 9, 10) == TopicRules(2**31 - 1, 9, 10)


def test_sizes_count_lengths_as_records_have_them() -> None:
    """Each length takes one byte more at 64, 8192, 2**20 and 2**27."""
    assert wire_size(b"k", None, [("", None), ("é", b"x" * 64)]) == 1 + 2 + (1 + 2) + (2 + 64)
    assert batch_size(None, None, ()) == 61 + 1 + (3 + 1 + 1 + 1)
    assert batch_size(b"x" * 63, b"y" * 64, ()) == 61 + 2 + (3 + 64 + 66 + 1)
    lengths = [(8191, 2), (8192, 3), (2**20 - 1, 3), (2**20, 4), (2**27, 5)]
    assert [wire_size(None, None, [("", b"h" * n)]) - n for n, _ in lengths] == [
        1 + size for _, size in lengths
    ]


def test_headers_are_read_once() -> None:
    """Every record that a task sends with headers is measured."""
    walks: list[int] = []

    class Headers(list[tuple[str, bytes | None]]):
        def __iter__(self) -> Iterator[tuple[str, bytes | None]]:
            walks.append(1)
            return super().__iter__()

    assert wire_size(b"k", b"v", Headers([("a", b"1")])) == 1 + 1 + (1 + 1) + (1 + 1)
    assert len(walks) == 1
