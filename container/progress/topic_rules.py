"""Which record of a transaction its topic refuses, in one line: Kafka itself does not report it.

PURE. A broker names neither record nor topic. The broker in memory of a test has the same rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from homeport.config.config import INT_MAX
from homeport.container.progress.transaction_plan import Send, TransactionContent

Headers = Sequence[tuple[str, bytes | None]]

CLIENT_OVERHEAD_BYTES = 36
"""The client adds so much to the size of a record that it compares with its limit (measured)."""
BATCH_SIZE = "batch.size"
BATCH_BYTES = 1_000_000
"""librdkafka's default of ``batch.size``."""
_BATCH_OVERHEAD_BYTES = 61
_LAST_MS = 2**63 - 1
_SHORT = 1 << 6
_VARINT = (_SHORT, 1 << 13, 1 << 20, 1 << 27)
"""From each of these on, a length takes one byte more."""
_SIZES = "topic's max.message.bytes"


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The limits of a topic.

    ``topic_bytes``: the most of a batch; ``client_bytes``: the most of a record in the client;
    ``batch_bytes``: up to so many the client puts together. ``before_ms``, ``after_ms``: how far a
    timestamp may be from now.
    """

    topic_bytes: int
    client_bytes: int = INT_MAX
    batch_bytes: int = BATCH_BYTES
    is_compacted: bool = False
    is_stamped: bool = False
    before_ms: int = _LAST_MS
    after_ms: int = _LAST_MS

    @staticmethod
    def of(topic: Mapping[str, str], client_bytes: int, batch_bytes: int) -> TopicRules:
        """Return the rules of a topic with that configuration, whose client has those limits."""
        return TopicRules(
            _number(topic, "max.message.bytes", INT_MAX),
            client_bytes,
            batch_bytes,
            "compact" in topic.get("cleanup.policy", ""),
            topic.get("message.timestamp.type") == "LogAppendTime",
            _number(topic, "message.timestamp.before.max.ms", _LAST_MS),
            _number(topic, "message.timestamp.after.max.ms", _LAST_MS),
        )

    def refusal(self, send: Send, now_ms: int) -> str | None:
        """Return why the topic refuses a record at the time ``now_ms``; None where it takes it."""
        headers = send.headers or ()
        size = wire_size(send.key, send.value, headers)
        is_sent = size + CLIENT_OVERHEAD_BYTES <= self.client_bytes
        if not is_sent or batch_size(send.key, send.value, headers) > self.topic_bytes:
            return (
                f"a record of {size_of(send)} bytes exceeds the limit of "
                f"{min(self.client_bytes, self.topic_bytes)} bytes; write smaller values, or raise "
                f"systems.<system>.producer.max.request.size and the {_SIZES}"
            )
        if self.is_compacted and send.key is None:
            return "a record has no key, and the topic is compacted: give it a key"
        if send.timestamp_ms is None or self.is_stamped:
            return None
        if not -self.before_ms <= send.timestamp_ms - now_ms <= self.after_ms:
            return (
                f"a record has timestamp {send.timestamp_ms}, and the topic takes none that is "
                f"more than {self.before_ms} ms before or {self.after_ms} ms after the broker's "
                "clock: give ms since 1970, or change the topic's message.timestamp.before.max.ms "
                "or message.timestamp.after.max.ms"
            )
        return None


def topics(content: TransactionContent) -> set[str]:
    """Return every topic that the transaction sends outputs or changes to."""
    return {send.topic for _, send in _named(content)}


def story(content: TransactionContent, rules: Mapping[str, TopicRules], now_ms: int) -> str | None:
    """Return the largest record that its topic refuses, and why; None where none is refused."""
    largest, found = -1, None
    for what, send in _named(content):
        size = size_of(send)
        why = rules[send.topic].refusal(send, now_ms) if size > largest else None
        if why is not None:
            largest, found = size, f"{what}: {why}"
    return found or _batches(content, rules)


def size_of(send: Send) -> int:
    """Return the bytes of key, value and headers."""
    return record_size(send.key, send.value, send.headers or ())


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return the bytes of key, value and headers; null has none."""
    size = len(key or b"") + len(value or b"")
    return size + sum(len(name.encode()) + len(data or b"") for name, data in headers)


def wire_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return the bytes of key, value, and headers with their lengths, as records have them."""
    # In one pass, without generators: each record that a task sends with headers comes here.
    size = len(key or b"") + len(value or b"")
    for name, data in headers:
        of_name, of_data = len(name.encode()), len(data or b"")
        size += of_name + (1 if of_name < _SHORT else _varint(of_name))
        size += of_data + (1 if of_data < _SHORT else _varint(of_data))
    return size


def batch_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return the bytes of a batch with only that record."""
    body = 3 + wire_size(key, value, headers) + _varint(len(headers))
    body += _varint(len(key or b"")) + _varint(len(value or b""))
    return _BATCH_OVERHEAD_BYTES + _varint(body) + body


def _batches(content: TransactionContent, rules: Mapping[str, TopicRules]) -> str | None:
    for what, send in _named(content):
        rule = rules[send.topic]
        if rule.topic_bytes < min(rule.batch_bytes, rule.client_bytes):
            return (
                f"{what}: the topic takes batches of {rule.topic_bytes} bytes, and the client "
                f"makes some of up to {min(rule.batch_bytes, rule.client_bytes)}: set "
                f"systems.<system>.producer.{BATCH_SIZE}={rule.topic_bytes}, or raise the {_SIZES}"
            )
    return None


def _named(content: TransactionContent) -> Iterator[tuple[str, Send]]:
    for send in content.outputs:
        yield f"output stream {send.topic}", send
    for change in content.changes:
        topic = change.changelog.stream
        store, task = change.store_id.store, change.store_id.task_name
        what = f"store {store} of task {task!r} (changelog {topic})"
        for key, value in change.entries.items():
            yield what, Send(topic, key, value, change.partition)


def _varint(length: int) -> int:
    return 1 + bisect_right(_VARINT, length)


def _number(topic: Mapping[str, str], name: str, default: int) -> int:
    text = topic.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default
