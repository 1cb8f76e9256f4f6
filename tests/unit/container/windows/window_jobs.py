"""Jobs with windows: what the tests of windows run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from homeport.container.api import (
    BatchTask,
    IncomingMessage,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
    Timer,
)
from homeport.container.windows import Aggregate, Late, Session, Tumbling, WindowResult, Windows

SUM = Aggregate(init=int, add=lambda total, value: total + value["n"], merge=lambda a, b: a + b)
KEPT: dict[str, Any] = {}
"""Arguments of the windows that the next container makes."""


def config(serde: str = "long", factory: str = "rocksdb", **more: str) -> dict[str, str]:
    """A job with one store of windows; of ``more``, ``__`` stands for a dot."""
    return {
        "task.inputs": "kafka.in",
        "systems.kafka.streams.in.samza.key.serde": "string",
        "systems.kafka.streams.in.samza.msg.serde": "json",
        "stores.windows.factory": factory,
        "stores.windows.changelog": "kafka.windows-changelog",
        "stores.windows.key.serde": "string",
        "stores.windows.msg.serde": serde,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def made(context: TaskContext, on_late: Any = None) -> Windows:  # noqa: ANN401 - as in Windows
    """The windows that ``KEPT`` says, else sums of ten milliseconds."""
    kept = {"span": Tumbling(10), "aggregate": SUM, **KEPT}
    if kept.pop("late", False):
        kept["on_late"] = on_late
    return Windows(context, "windows", kept.pop("span"), kept.pop("aggregate"), **kept)


def send_all(results: Iterable[WindowResult], collector: MessageCollector) -> None:
    """Each result is an output."""
    for result in results:
        row = [result.start_ms, result.end_ms, result.value, result.is_final]
        collector.send("out", json.dumps(row).encode(), result.key.encode())


class WindowTask(StreamTask):
    """Sends each result; a message with "advance" is one of the clock's."""

    def init(self, context: TaskContext) -> None:
        """Makes the windows."""
        self.windows = made(context, self.late)
        self.scheduler = context.scheduler

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """One more record."""
        del coordinator
        if "idle" in message.value:
            self.scheduler.schedule("idle", after_ms=message.value["idle"])
            return
        at = message.value.get("at")
        send_all(self.windows.add(message, collector, at_ms=at), collector)

    def on_timer(
        self, timer: Timer, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Closes what the partitions that are not idle let close."""
        del timer, coordinator
        send_all(self.windows.advance(), collector)

    def late(self, late: Late, collector: MessageCollector) -> None:
        """To a stream of its own."""
        collector.send("late", json.dumps([late.at_ms, late.value]).encode(), late.key.encode())


class WindowBatch(BatchTask):
    """The same over tables."""

    def init(self, context: TaskContext) -> None:
        """Makes the windows."""
        self.windows = made(context, self.late)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """All rows of a table."""
        values = [json.loads(value)["n"] for value in table.column("value").to_pylist()]
        table = table.append_column("n", pa.array(values, pa.int64()))
        send_all(
            self.windows.add_table(table, collector, [("n", "sum"), ("n", "count")]), collector
        )

    def late(self, late: Late, collector: MessageCollector) -> None:
        """To a stream of its own."""
        row = [late.at_ms, late.value["n"]]
        collector.send("late", json.dumps(row).encode(), late.key.encode())


SESSIONS = {"span": Session(10)}
