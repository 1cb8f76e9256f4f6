"""Which record of a transaction is too large for its topic, in one line.

PURE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.container.progress.transaction_plan import Send, TransactionContent

OVERHEAD_BYTES = 96
"""What a record alone in its batch has beside key, value and headers, at most."""


def topics(content: TransactionContent) -> set[str]:
    """Every topic that the transaction sends outputs or changes to."""
    return {send.topic for _, send in _named(content)}


def story(content: TransactionContent, limits: Mapping[str, int]) -> str | None:
    """Names the largest record that exceeds its topic's limit, with its size and the limit.

    Shapes: ``limits`` {topic: bytes}. None where no record does.
    """
    largest, words, limit = -1, "", 0
    for what, send in _named(content):
        size = size_of(send)
        if size + OVERHEAD_BYTES > limits[send.topic] and size > largest:
            largest, words, limit = size, what, limits[send.topic]
    if largest < 0:
        return None
    return (
        f"{words}: a record of {largest} bytes exceeds the limit of {limit} bytes; write smaller "
        "values, or raise systems.<system>.producer.max.request.size and the topic's "
        "max.message.bytes"
    )


def size_of(send: Send) -> int:
    """Bytes of key, value and headers."""
    headers = send.headers or {}
    size = len(send.key or b"") + len(send.value or b"")
    return size + sum(len(name) + len(value) for name, value in headers.items())


def _named(content: TransactionContent) -> Iterator[tuple[str, Send]]:
    for send in content.outputs:
        yield f"output stream {send.topic}", send
    for change in content.changes:
        topic = change.changelog.stream
        what = f"store {change.store} of task {change.task_name!r} (changelog {topic})"
        for key, value in change.entries.items():
            yield what, Send(topic, key, value, change.partition)
