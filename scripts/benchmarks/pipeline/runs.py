"""Pipelines in a Spark of their own, over the same batch again and again; CPU of all processes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.bed import scratch
from benchmarks.cpu_time import cpu_s, pids_below, tree_cpu_s
from benchmarks.processes import resident_mb
from benchmarks.report import BenchmarkError, Row, Spent, figure
from homeport import BATCH_SCHEMA
from homeport.container.adjunct.frames import EntryColumns, StoreFrame
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL, AS_THEY_COME, Given
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.prepared import set_up_workers
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

    def rows(self, what: str, unit: str) -> Iterator[Row]:
        """Yield both times in ms."""
        yield figure(f"{what}: by the clock", self.clock_s * 1e3, unit)
        yield figure(f"{what}: CPU", self.cpu_s * 1e3, unit)


def planned_once(session: SparkSession, *, natively: bool = True) -> PlanOnce:
    """As a container's pipeline has it; for one pipeline. ``natively``: as of ``PlanOnce``.

    BenchmarkError: its classes are not there, and each batch would be planned.
    """
    made = PlanOnce.connect(session, natively=natively)
    if made is None:
        raise BenchmarkError(
            "the Java classes for Spark are not there; scripts/setup.sh makes them"
        )
    return made


def pipeline_of(
    session: SparkSession,
    work: Callable[[Frames], DataFrame],
    plan_once: PlanOnce | None,
    *,
    given: Given = AS_THEY_COME,
    leaving: Callable[[DataFrame], DataFrame] | None = None,
) -> SparkPipeline:
    """Return a pipeline whose rows are in order; None: Spark plans each batch."""
    named = Named("bench", "pipeline")
    return SparkPipeline(
        session, work, named, given=given, unordered=False, leaving=leaving, plan_once=plan_once
    )


def parsed(frame: DataFrame, *columns: str) -> DataFrame:
    """Return the places, ``columns`` (expressions with names) and the fields of the JSON."""
    fields = "from_json(CAST(value AS STRING), 'item STRING, price INT, shop STRING') AS f"
    names = [column.rpartition(" ")[2] for column in columns]
    return frame.selectExpr(*PLACES, *columns, fields).select(*PLACES, *names, "f.*")


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
        once = planned_once(self._session) if plans_once else None
        pipeline = pipeline_of(
            self._session, lambda frames: function(frames[ALL]), once, leaving=leaving
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
        given = Given(stores={columns.name: columns})
        pipeline = pipeline_of(self._session, work, planned_once(self._session), given=given)
        pipeline.warm_up()

        def once() -> None:
            pipeline.run(self._batch, {columns.name: next(stores)})

        return self._measured(once, ROWS)

    def _measured(self, once: Callable[[], None], rows: int) -> Found:
        rounds = min(_MEASURED * ROWS // rows, _MEASURED_AT_MOST)
        for _ in range(max(rounds, _WARM)):
            once()
        spent = Spent(tree_cpu_s)
        for _ in range(rounds):
            once()
        clock_s, cpu_s = spent.so_far()
        workers = sum(map(resident_mb, pids_below(self._pid)))
        return Found(clock_s / rounds, cpu_s / rounds, workers)


@contextmanager
def _spark(
    prepare: Callable[[SparkSession], SparkPipeline], heap_mb: int, rows: int
) -> Iterator[LocalSpark]:
    """Run a Spark of one core inside the block, for batches of ``rows``."""
    with scratch() as folder:
        settings = SparkSettings("bench", 1, heap_mb, folder / "spark", {}, rows)
        spark = LocalSpark(settings, prepare)
        try:
            spark.pipeline(lambda: None)
            yield spark
        finally:
            spark.stop()


@contextmanager
def one_spark() -> Iterator[OneSpark]:
    """It runs inside of the block."""
    sessions: list[SparkSession] = []

    def prepare(session: SparkSession) -> SparkPipeline:
        sessions.append(session)
        set_up_workers(session)
        nothing = Named("bench", "nothing")
        return SparkPipeline(session, lambda frames: frames[ALL], nothing, unordered=True)

    with _spark(prepare, _HEAP_MB, ROWS) as spark:
        yield OneSpark(sessions[0], spark.pid)


@dataclass
class Way:
    """One way from bytes to the pipeline's rows, and the CPU seconds that it took.

    ``decode``: what Python does with a batch before Spark, if anything.
    """

    what: str
    pipeline: SparkPipeline
    decode: Callable[[pa.Table], pa.Table] | None
    decoding_s: float = 0.0
    python_s: float = 0.0
    jvm_s: float = 0.0
    kept: int = 0

    def run(self, table: pa.Table, jvm: int) -> None:
        """``table`` has gone through."""
        own, java = time.process_time(), cpu_s(jvm)
        rows = table if self.decode is None else self.decode(table)
        self.decoding_s += time.process_time() - own
        self.kept += self.pipeline.run(rows).num_rows
        self.python_s += time.process_time() - own
        self.jvm_s += cpu_s(jvm) - java

    def rows(self, scale: float, unit: str) -> Iterator[Row]:
        """Yield the CPU of this process and of Spark's JVM, times ``scale``."""
        total_s = self.python_s + self.jvm_s
        yield figure(f"{self.what}: CPU of both processes", total_s * scale, unit)
        yield figure("  of it Spark's JVM", self.jvm_s * scale, unit)
        if self.decode is not None:
            yield figure("  of it decoding", self.decoding_s * scale, unit)


def in_turns(
    prepare: Callable[[SparkSession], Sequence[Way]],
    before: Sequence[pa.Table],
    tables: Sequence[pa.Table],
) -> list[Way]:
    """Run all tables through each way in turns, in one Spark; those ``before`` do not count.

    BenchmarkError: the ways kept different numbers of rows.
    """
    made: list[Way] = []

    def start(session: SparkSession) -> SparkPipeline:
        made.extend(prepare(session))
        for way in made:
            way.pipeline.warm_up()
        return made[0].pipeline

    with _spark(start, 2 * _HEAP_MB, tables[0].num_rows) as spark:
        for table, way in product(before, made):
            way.run(table, spark.pid)
        ways = [Way(way.what, way.pipeline, way.decode) for way in made]
        for table, way in product(tables, ways):
            way.run(table, spark.pid)
    if len({way.kept for way in ways}) > 1:
        kept = " and ".join(str(way.kept) for way in ways)
        raise BenchmarkError(f"the ways kept {kept} rows of the same records")
    return ways


def ratio(what: str, more: Way, less: Way) -> Row:
    """Return how many times the CPU of ``less`` the other one took."""
    times = (more.python_s + more.jvm_s) / (less.python_s + less.jvm_s)
    return figure(what, times, "times")
