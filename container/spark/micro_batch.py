"""SparkPipeline: one micro-batch through the job's pipeline, in and out as Arrow tables."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

import pyarrow as pa

from homeport.config.errors import ConfigError, in_one_line
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.table_order import ORDER_COLUMNS, sorted_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from homeport.container.classes import Pipeline

_LOG = logging.getLogger(__name__)

_BATCHES_PER_COLLECTION = 10
_KEY = "task.pipeline.class"
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
    """Runs the pipeline function over one table at a time.

    Args:
        name: the configured ``module:function``, for messages.
        unordered: whether the pipeline may drop what gives its rows an order.
    """

    def __init__(
        self, session: SparkSession, function: Pipeline, name: str, *, unordered: bool
    ) -> None:
        self._session = session
        self._function = function
        self._name = name
        self._unordered = unordered
        self._batches = 0

    def warm_up(self) -> None:
        """The JVM has met the pipeline once, and its columns are known to be right.

        No user's rows are at stake: it runs over no rows at all.
        """
        self.run(BATCH_SCHEMA.empty_table())

    def exercise(self) -> None:
        """The JVM has taken rows in, worked on them and given them out.

        Over no rows it plans next to nothing. These are made up, so no function of the job's own
        sees them.
        """
        table = pa.Table.from_pylist([_MADE_UP | {"offset": n} for n in range(1000)], BATCH_SCHEMA)
        frame = self._session.createDataFrame(table)
        text = "upper(decode(value, 'UTF-8')) AS text"
        frame.where("offset >= 0").selectExpr("task", "offset", "key", text).toArrow()

    def run(self, table: pa.Table) -> pa.Table:
        """The pipeline's rows, sorted by task, stream, partition, offset unless it is unordered.

        Raises:
            ConfigError: what the pipeline returned is not a frame, or lacks a column.
        """
        result = self._called(self._session.createDataFrame(table))
        rows = getattr(result, "toArrow", None)
        if rows is None:
            raise ConfigError(
                _KEY,
                self._name,
                f"the pipeline must return a DataFrame, not {type(result).__name__}",
                "return the frame",
            )
        self._check_columns(result.columns)
        out: pa.Table = rows()
        self._tidy_up()
        return sorted_rows(out, unordered=self._unordered)

    def _called(self, frame: DataFrame) -> DataFrame:
        try:
            return self._function(frame)
        except Exception:
            raise
        except BaseException as error:
            # What would end a process, as SystemExit does, is a failure like any other.
            raise ConfigError(
                _KEY,
                self._name,
                f"the pipeline has failed: {in_one_line(error)}",
                "let it return the frame, or raise an Exception",
            ) from error

    def _check_columns(self, columns: list[str]) -> None:
        if "task" not in columns:
            raise ConfigError(
                _KEY,
                self._name,
                f"the pipeline must keep the column 'task', its rows have {', '.join(columns)}",
                "select 'task' too: it says whose rows they are",
            )
        missing = [name for name in ORDER_COLUMNS if name not in columns]
        if missing and not self._unordered:
            raise ConfigError(
                _KEY,
                self._name,
                f"the pipeline drops {', '.join(missing)}, so its rows have no order",
                "select them too, or set task.pipeline.unordered=true",
            )

    def _tidy_up(self) -> None:
        # Frames hold JVM objects through Python cycles; left to the collector's own pace they fill
        # the JVM's heap. It may never be switched off for the same reason.
        self._batches += 1
        if self._batches % _BATCHES_PER_COLLECTION == 0:
            gc.collect()
