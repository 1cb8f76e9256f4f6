"""What a type checker makes of the public names: types of stores, forms of tasks, wrong names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CODE = """
from homeport import BatchTask, IncomingMessage, KeyValueStore, StreamTask, TaskContext
from homeport import MessageCollector, ReadableStore, TaskCoordinator, Timer
from homeport.windows import Aggregate, Tumbling, Windows
import pyarrow as pa


class Whole(StreamTask):
    def init(self, context: TaskContext) -> None:
        self.totals: KeyValueStore[str, float] = context.store("totals")
        self.any: KeyValueStore = context.store("any")
        self.read: ReadableStore[int, str] = context.store("read")
        count = Aggregate(init=int, add=lambda total, _: total + 1)
        self.windows = Windows(context, "w", Tumbling(1000), count)

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        reveal_type(self.totals.get("a"))
        reveal_type(self.totals.get("a", 0))
        reveal_type(self.totals.get("a", None))
        reveal_type(self.any.get(7, "x"))
        reveal_type(next(self.totals.range("a", "b")))
        self.totals.put(1, 2.0)  # wrong: key
        self.totals.put("a", "b")  # wrong: value
        self.read.put(1, "x")  # wrong: read
        context.send("out", b"x", b"k", timestamp=1)
        context.metrics.counter("n", country="de").inc()
        context.metrics.counter("n", country=7)  # wrong: label
        self.windows.add(message, context)
        context.commit()

    def window(self, context: TaskContext) -> None:
        context.shutdown()


class Former(StreamTask):
    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None: ...
    def on_timer(
        self, timer: Timer, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None: ...


class Coroutine(StreamTask):
    async def process(self, message: IncomingMessage, context: TaskContext) -> None: ...
    async def close(self) -> None: ...


class Batch(BatchTask):
    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None: ...


class OtherBatch(BatchTask):
    def process_batch(self, table: pa.Table, context: TaskContext) -> None: ...


class Wrong(StreamTask):
    def process(self, message: int, context: TaskContext) -> None: ...  # wrong: message


from homeport import StreamTusk  # wrong: name
"""
ROOT = Path(__file__).resolve().parents[2]
REVEALED = ["float | None", "float", "float | None", "Any", "tuple[str, float]"]


def test_a_type_checker_follows_the_public_names(tmp_path: Path) -> None:
    """By mypy's strict rules: an error in each line that is wrong, and in no other."""
    path = tmp_path / "own_job.py"
    path.write_text(CODE, encoding="utf-8")
    checked = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "build" / "ns")}
    done = subprocess.run(
        [*checked, str(path)], capture_output=True, text=True, check=False, env=environment
    )
    found = re.findall(r"own_job\.py:(\d+): (\w+): (.*)", done.stdout)
    lines = CODE.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if "# wrong" in line]
    ignored = ("pyarrow", "Skipping")  # it has no types
    errors = {
        int(number)
        for number, kind, text in found
        if kind == "error" and not any(word in text for word in ignored)
    }
    assert sorted(errors) == wrong, done.stdout
    shown = [text for _, kind, text in found if kind == "note" and "Revealed" in text]
    assert shown == [f'Revealed type is "{one}"' for one in REVEALED], done.stdout
