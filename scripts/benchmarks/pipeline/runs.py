"""Pipelines in a Spark of their own, over the same batch again and again; CPU of all processes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.processes import pids_below, resident_mb, tree_cpu_s
from benchmarks.report import BenchmarkError
from homeport.container.adjunct.frames import EntryColumns, StoreFrame
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL, Given
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.session import LocalSpark, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from homeport.container.spark.work import Frames

ROWS = 100_000
PLACES = ("task", "stream", "partition", "offset")
_WARM, _MEASURED, _MEASURED_AT_MOST = 6, 6, 40
"""Rounds: of the whole batch; of small ones more are measured, as Linux counts CPU in 10 ms."""
_HEAP_MB = 1024


@dataclass(frozen=True, slots=True)
class Found:
    """Of one batch, the mean: seconds by the clock, and CPU seconds of this process and Spark's.

    ``workers_mb``: resident memory of the processes below the JVM together.
    """

    clock_s: float
    cpu_s: float
    workers_mb: float


def planned_once(session: SparkSession) -> PlanOnce:
    """As a container's pipeline has it; for one pipeline.

    Raises:
        BenchmarkError: its classes are not there, and each batch would be planned.
    """
    made = PlanOnce.connect(session)
    if made is None:
        raise BenchmarkError(
            "the Java classes for Spark are not there; scripts/setup.sh makes them"
        )
    return made


class OneSpark:
    """A Spark with one core, and a batch of ``ROWS`` records of JSON."""

    def __init__(self, session: SparkSession, pid: int) -> None:
        """``pid``: of its JVM."""
        self._session = session
        self._pid = pid
        rows = [
            {
                "task": "Partition 0",
                "key": b"k%d" % (n % 10_000),
                "value": json.dumps({"item": f"i{n}", "price": n % 97, "shop": "north"}).encode(),
                "system": "kafka",
                "stream": "orders",
                "partition": 0,
                "offset": n,
                "timestamp": n,
            }
            for n in range(ROWS)
        ]
        self._batch = pa.Table.from_pylist(rows, BATCH_SCHEMA)

    def measure(
        self,
        function: Callable[[DataFrame], DataFrame],
        then: Callable[[pa.Table], None] = lambda _table: None,
        leaving: Callable[[DataFrame], DataFrame] | None = None,
        *,
        rows: int = ROWS,
        plans_once: bool = True,
    ) -> Found:
        """What ``function``, and ``then`` on what it has made, cost once all is compiled.

        ``rows``: of a batch. ``plans_once``: each batch has the plan of the first.
        """
        pipeline = SparkPipeline(
            self._session,
            lambda frames: function(frames[ALL]),
            Named("bench", function.__name__),
            unordered=False,
            leaving=leaving,
            plan_once=planned_once(self._session) if plans_once else None,
        )
        batch = self._batch.slice(0, rows)
        return self._measured(lambda: then(pipeline.run(batch)), rows)

    def measure_join(
        self,
        work: Callable[[Frames], DataFrame],
        columns: EntryColumns,
        stores: Iterator[StoreFrame],
    ) -> Found:
        """What ``work`` costs, of whose frames one is of an adjunct store, all batches by one plan.

        ``stores``: the store's rows of each batch, which are new ones where their number is.
        """
        pipeline = SparkPipeline(
            self._session,
            work,
            Named("bench", "join"),
            given=Given(stores={columns.name: columns}),
            unordered=False,
            plan_once=planned_once(self._session),
        )
        pipeline.warm_up()

        def once() -> None:
            pipeline.run(self._batch, {columns.name: next(stores)})

        return self._measured(once, ROWS)

    def _measured(self, once: Callable[[], None], rows: int) -> Found:
        rounds = min(_MEASURED * ROWS // rows, _MEASURED_AT_MOST)
        for _ in range(max(rounds, _WARM)):
            once()
        began, cpu = time.monotonic(), self._cpu_s()
        for _ in range(rounds):
            once()
        clock = time.monotonic() - began
        workers = sum(map(resident_mb, pids_below(self._pid)))
        return Found(clock / rounds, (self._cpu_s() - cpu) / rounds, workers)

    def _cpu_s(self) -> float:
        return tree_cpu_s(os.getpid())


@contextmanager
def one_spark() -> Iterator[OneSpark]:
    """It runs inside of the block."""
    folder = Path(tempfile.mkdtemp(prefix="homeport-bench-"))
    sessions: list[SparkSession] = []

    def prepare(session: SparkSession) -> SparkPipeline:
        sessions.append(session)
        nothing = Named("bench", "nothing")
        return SparkPipeline(session, lambda frames: frames[ALL], nothing, unordered=True)

    spark = LocalSpark(SparkSettings("bench", 1, _HEAP_MB, folder, {}, ROWS), prepare)
    try:
        spark.pipeline(lambda: None)
        yield OneSpark(sessions[0], spark.pid)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
