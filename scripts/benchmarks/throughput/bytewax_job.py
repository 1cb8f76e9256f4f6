"""The work as a dataflow of Bytewax, in an environment of its own; prints JSON.

Its state is saved to SQLite each second, as Homeport commits by default. Its output to Kafka is
at-least-once, and outside of that.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream, StatefulBatchLogic
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import run_main

from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import Spent
from benchmarks.throughput.work import LIMIT

_SAVED = timedelta(seconds=1)
_Saved = tuple[int, datetime | None]


class _Count(StatefulBatchLogic[int, int, _Saved]):  # type: ignore[misc]  # not installed here
    """How many records of a key there are, sent a second after a change."""

    def __init__(self, saved: _Saved | None) -> None:
        self._count, self._due = saved or (0, None)

    def on_batch(self, values: Sequence[int]) -> tuple[list[int], bool]:
        self._count += len(values)
        self._due = self._due or datetime.now(UTC) + _SAVED
        return [], self.RETAIN

    def on_notify(self) -> tuple[list[int], bool]:
        self._due = None
        return [self._count], self.RETAIN

    def on_eof(self) -> tuple[list[int], bool]:
        return self.on_notify()

    def notify_at(self) -> datetime | None:
        return self._due

    def snapshot(self) -> _Saved:
        return self._count, self._due


def _counts(numbers: KeyedStream[int]) -> KeyedStream[int]:
    kept = op.filter("keep", numbers, lambda pair: pair[1] < LIMIT)
    return op.stateful_batch("count", kept, _Count)


def _sums(numbers: KeyedStream[int]) -> KeyedStream[int]:
    def add(total: int | None, n: int) -> tuple[int, int]:
        after = (total or 0) + n
        return after, after

    return op.stateful_map("add", numbers, add)


def main() -> None:
    """``SERVERS NAME INPUT KIND``: ends where the input does."""
    servers, name, given, kind = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="homeport-bench-"))
    init_db_dir(folder, 1)
    began: list[Spent] = []

    def number(message: KafkaSourceMessage) -> tuple[str, int]:
        if not began:
            began.append(Spent(tree_cpu_s))
        return message.key.decode(), json.loads(message.value)["n"]

    flow = Dataflow(name)
    read = kafka.input("read", flow, brokers=[servers], topics=[given], tail=False)
    numbers = op.map("number", read.oks, number)
    found = _counts(numbers) if kind == "count" else _sums(numbers)
    sent = op.map("sent", found, lambda pair: KafkaSinkMessage(pair[0].encode(), b"%d" % pair[1]))
    kafka.output("write", sent, brokers=[servers], topic=f"{name}-out")
    try:
        run_main(flow, epoch_interval=_SAVED, recovery_config=RecoveryConfig(str(folder)))
        print(json.dumps(began[0].found()), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
