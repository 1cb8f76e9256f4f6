"""SparkPipeline: one micro-batch through the job's pipeline, in and out as Arrow tables."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from homeport.config.errors import HomeportError, in_one_line
from homeport.container.adjunct.frames import NO_FRAMES, EntryColumns, StoreFrame, StoreFrames
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.carried import with_columns_of_input
from homeport.container.spark.faults import (
    Named,
    PipelineFailedError,
    failure,
    is_lost_jvm,
    sparks_reason,
)
from homeport.container.spark.inputs import (
    AS_THEY_COME,
    ORDER_COLUMNS,
    Given,
    Rows,
    SplitRows,
    Takes,
    Wanted,
    parts,
    sorted_rows,
    whole_schema,
    with_task,
)
from homeport.container.spark.standing import FramesOfEachPlan, frame_of
from homeport.container.spark.work import LazyFrames

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from homeport.container.spark.plan_once import PlanOnce, Schemas
    from homeport.container.spark.work import Frames

_BATCHES_PER_COLLECTION = 10
_LONGEST_REASON = 400
"""In characters: a reason may contain a whole plan."""
_EXERCISE = "(exercise)"
"""The name of its frame, which no stream can have: its plan differs from the pipeline's own."""
_MADE_UP = {
    "task": "",
    "key": b"key",
    "value": b"value",
    "system": "",
    "stream": "",
    "partition": 0,
    "timestamp": 0,
}


class SparkPipeline:
    """Runs the pipeline over one table at a time.

    ``work``: makes the pipeline's frame of its input frames, which are ``given``. ``unordered``:
    whether it may drop the columns that order its rows. ``leaving``: makes the rows that leave;
    None: a task gets the pipeline's rows. ``ended``: returns the JVM's exit code, after a short
    wait for it; None: it runs. ``plan_once``: runs ``work`` by a plan that lasts; None: Spark plans
    each batch.
    """

    def __init__(
        self,
        session: SparkSession,
        work: Callable[[Frames], DataFrame],
        named: Named,
        *,
        given: Given = AS_THEY_COME,
        unordered: bool,
        leaving: Callable[[DataFrame], DataFrame] | None = None,
        ended: Callable[[], int | None] = lambda: None,
        plan_once: PlanOnce | None = None,
    ) -> None:
        self._session = session
        self._ended = ended
        self._plan_once = plan_once
        self._work = work
        self._named = named
        self._given = given
        self._schemas = given.schemas()
        self._unordered = unordered
        self._leaving = leaving
        self._batches = 0
        self._columns = {n: c for n, c in given.stores.items() if isinstance(c, EntryColumns)}
        self._without_rows = {
            name: StoreFrame(0, own.schema.empty_table()) for name, own in self._columns.items()
        }
        self._asked: set[str] = set()
        self._has_begun = False
        self._standing = FramesOfEachPlan(session)

    def warm_up(self) -> None:
        """Run the pipeline over no rows, so that the JVM knows it, and check its columns."""
        self.run(SplitRows({}))
        self._has_begun = True

    @property
    def takes(self) -> Takes:
        """Return the frames that it gets."""
        return self._given.takes

    def wanted(self, rows: int) -> Wanted | None:
        """Return the fields of values that it reads of ``rows`` rows; None: perhaps all.

        The next batch may lack the other fields.
        """
        # A row may be in the frame of its stream, and in that of all.
        once, most = self._plan_once, rows * len(self._schemas)
        reads = None if once is None else once.reads(self._schemas, most)
        if reads is None:
            return None
        return {
            stream: reads[name].get("value", frozenset())
            for name, stream in self._given.takes.items()
        }

    def exercise(self) -> None:
        """Let the JVM read rows, work on them and return them.

        Over no rows it plans next to nothing. These rows are made up: no function of the job's own
        sees them. After ``warm_up`` they take the same way as the pipeline's batches.
        """
        table = pa.Table.from_pylist([_MADE_UP | {"offset": n} for n in range(1000)], BATCH_SCHEMA)
        once = self._plan_once
        lasts = once is not None and once.has_plans
        self._rows({_EXERCISE: table}, _exercise, once if lasts else None)

    @property
    def stores(self) -> dict[str, EntryColumns]:
        """Return {adjunct store that it has asked for: how its entries become rows}."""
        return {n: c for n, c in self._columns.items() if n in self._asked}

    def run(self, given: Rows, stores: StoreFrames = NO_FRAMES) -> pa.Table:
        """Return the pipeline's rows, by task, stream, partition, offset unless it is unordered.

        ``given``: its values may lack fields that the pipeline does not read (``wanted``).
        ``stores``: the rows of stores that it has asked for; other stores have no rows.

        Raises:
            ConfigError: the pipeline returned no frame, or one without a required column.
            PipelineFailedError: it has failed over these rows.
        """
        try:
            tables = parts(given, self._given)
            schemas = {n: whole_schema(t.schema, self._schemas[n]) for n, t in tables.items()}
            held = {**self._without_rows, **stores}
            rows = self._rows(tables, self._planned, self._plan_once, schemas, held)
        except HomeportError:
            raise
        except Exception as error:  # Spark's, py4j's, or of a socket: ``_story`` distinguishes
            raise PipelineFailedError(self._story(error, given)) from error
        if self._leaving is not None:
            rows = with_task(rows, given)
        return sorted_rows(rows, unordered=self._unordered)

    def _story(self, error: Exception, given: Rows) -> str:
        reason = sparks_reason(error) or in_one_line(error)
        return failure(
            f"{self._named.key} = {self._named.value!r}",
            _input_of(given),
            error,
            self._ended() if is_lost_jvm(error) else None,
            f"{reason[:_LONGEST_REASON]}; {self._named.remedy}",
        )

    def _rows(
        self,
        tables: dict[str, pa.Table],
        function: Callable[[Frames], DataFrame],
        once: PlanOnce | None,
        schemas: Schemas | None = None,
        stores: StoreFrames = NO_FRAMES,
    ) -> pa.Table:
        if once is not None:
            found = once.run(tables, function, schemas, stores)
            if found is not None:
                return found
        frames = {name: frame_of(self._session, part) for name, part in tables.items()}
        made = {name: partial(self._standing.of, name, held) for name, held in stores.items()}
        rows: pa.Table = function(LazyFrames(frames, made)).toArrow()
        # Frames keep JVM objects alive through Python cycles. At the collector's own pace these
        # would fill the JVM's heap. For the same reason it may never be switched off.
        self._batches += 1
        if self._batches % _BATCHES_PER_COLLECTION == 0:
            gc.collect()
        return rows

    def _planned(self, frames: Frames) -> DataFrame:
        makers = {name: partial(self._asked_for, name, frames) for name in self._given.stores}
        with self._named.in_one_line():
            return self._checked(self._work(LazyFrames(frames, makers)))

    def _asked_for(self, name: str, frames: Frames) -> DataFrame:
        reason = self._given.stores[name]
        if isinstance(reason, HomeportError):
            raise reason
        if name not in self._asked and self._has_begun:
            raise self._named.fault(
                f"it asks for the adjunct store {name} here, and did not do so at the start",
                "ask for the same frames whenever it is called",
            )
        self._asked.add(name)
        return frames[name]

    def _checked(self, result: DataFrame) -> DataFrame:
        if getattr(result, "toArrow", None) is None:
            raise self._named.fault(
                f"the pipeline must return a DataFrame, not {type(result).__name__}",
                "return the frame",
            )
        needed = () if self._unordered and self._leaving else ("task",)
        needed = needed if self._unordered else (*needed, *ORDER_COLUMNS)
        missing = [name for name in needed if name not in result.columns]
        if missing:
            result = with_columns_of_input(result, missing)
        columns = result.columns
        if "task" not in columns and self._leaving is None:
            raise self._named.fault(
                f"the pipeline must keep the column 'task', its rows have {', '.join(columns)}",
                "select 'task' too: it says whose rows they are",
            )
        dropped = [name for name in ORDER_COLUMNS if name not in columns]
        if dropped and not self._unordered:
            raise self._named.fault(
                f"the pipeline drops {', '.join(dropped)}, so its rows have no order",
                "select them too, or set task.pipeline.unordered=true",
            )
        return result if self._leaving is None else self._leaving(result)


def _exercise(frames: Frames) -> DataFrame:
    text = "upper(decode(value, 'UTF-8')) AS text"
    return frames[_EXERCISE].where("offset >= 0").selectExpr("task", "offset", "key", text)


def _input_of(given: Rows) -> str:
    """Return the number of rows that the pipeline ran over, and the place of the first one."""
    found = f"{given.num_rows} rows ({given.nbytes // 1024} KB)"
    table = given.first if isinstance(given, SplitRows) else given
    if table is None or table.num_rows == 0 or "offset" not in table.column_names:
        return found
    first = table.slice(0, 1).to_pylist()[0]
    place = f"{first['system']}.{first['stream']} partition {first['partition']}"
    return f"{found} from {place} offset {first['offset']} on"
