"""A job that counts: what the tests of the TestRunner run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from homeport.container.api import (
    BatchTask,
    IncomingMessage,
    KeyValueStore,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
)
from homeport.testing import TestRunner


class Count(StreamTask):
    """Adds up ``n`` per key; sends each new sum, and at a window how many keys there are."""

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self.counts: KeyValueStore = context.store("counts")

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """One more; a key None counts as such, a value None deletes, "end" is a vote."""
        if message.value == "end":
            coordinator.shutdown()
            return
        if message.value == "poison":
            raise ValueError("poison found")
        key = message.key or "<none>"
        if message.value is None:
            self.counts.delete(key)
            return
        count = (self.counts.get(key) or 0) + message.value["n"]
        self.counts.put(key, count)
        collector.send("out", str(count).encode(), key.encode(), headers=dict(message.headers))

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:  # noqa: ARG002 - not used
        """Says how many keys there are."""
        collector.send("windows", str(len(list(self.counts.all()))).encode())

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:  # noqa: ARG002 - not used
        """Says so."""
        collector.send("windows", b"over")


class CountBatch(BatchTask):
    """Counts records per key; sends the changed sums at the end of a transaction."""

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self.counts: KeyValueStore = context.store("counts")
        self.changed: set[str] = set()

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - sends at the end
        """One more for each row."""
        for key in table.column("key").to_pylist():
            self.counts.put(key.decode(), (self.counts.get(key.decode()) or 0) + 1)
            self.changed.add(key.decode())

    def end_transaction(self, collector: MessageCollector) -> None:
        """Sends what has changed."""
        for key in sorted(self.changed):
            collector.send("out", str(self.counts.get(key)).encode(), key.encode())
        self.changed.clear()


def task_of(process: Callable[[IncomingMessage, MessageCollector], object]) -> type[StreamTask]:
    """Return a task that does this with each message."""

    class Made(StreamTask):
        def process(
            self, message: IncomingMessage, collector: MessageCollector, _: TaskCoordinator
        ) -> None:
            process(message, collector)

    return Made


def feed(runner: TestRunner, stream: str = "kafka.in", **record: Any) -> int:  # noqa: ANN401 - as of send
    """Send a record and process the input; return how many records there were."""
    runner.send(stream, **record)
    return runner.run()


def config(factory: str = "in-memory", **more: Any) -> dict[str, str]:  # noqa: ANN401 - of keys
    """The keys of the counting job; of ``more``, ``__`` stands for a dot."""
    return {
        "task.inputs": "kafka.in",
        "systems.kafka.streams.in.samza.key.serde": "string",
        "systems.kafka.streams.in.samza.msg.serde": "json",
        "stores.counts.factory": factory,
        "stores.counts.changelog": "kafka.counts-changelog",
        "stores.counts.key.serde": "string",
        "stores.counts.msg.serde": "long",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }
