"""Functions of a pipeline in Python, beside Spark's own: over pandas, over Arrow, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.pipeline.runs import PLACES, ROWS, one_spark
from benchmarks.report import Row, figure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TITLE = f"a text in upper case for each of {ROWS:,} records a batch; one core, all compiled"


def rows() -> Iterator[Row]:
    """Each way: rows a second by the clock, CPU of all processes, memory of the workers."""
    with one_spark() as spark:
        for name, function in (
            ("Spark's own", _own),
            ("Arrow", _over_arrow),
            ("pandas", _over_pandas),
            ("row by row", _row_by_row),
        ):
            found = spark.measure(function)
            yield figure(f"{name}: rows by the clock", ROWS / found.clock_s, "rows/s")
            yield figure(f"{name}: CPU of a row, all processes", found.cpu_s / ROWS * 1e6, "us")
            yield figure(f"{name}: memory of the workers", found.workers_mb, "MB")


def _own(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(*PLACES, "upper(CAST(value AS STRING)) AS text")


def _over_arrow(frame: DataFrame) -> DataFrame:
    import pyarrow.compute as pc  # noqa: PLC0415 - goes to the workers with the function
    from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf  # noqa: PLC0415 - only where there is a Spark

    def upper(values: Any) -> Any:  # noqa: ANN401 - an Arrow array
        return pc.utf8_upper(values.cast("string"))

    return _with(frame, arrow_udf(upper, "string", ArrowUDFType.SCALAR))


def _over_pandas(frame: DataFrame) -> DataFrame:
    from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf  # noqa: PLC0415 - as above

    def upper(values: Any) -> Any:  # noqa: ANN401 - a series of pandas
        return values.map(lambda value: value.decode().upper())

    return _with(frame, pandas_udf(upper, "string", PandasUDFType.SCALAR))


def _row_by_row(frame: DataFrame) -> DataFrame:
    from pyspark.sql.functions import udf  # noqa: PLC0415 - as above

    return _with(frame, udf(lambda value: value.decode().upper(), "string"))


def _with(frame: DataFrame, function: Any) -> DataFrame:  # noqa: ANN401 - any function of Spark's
    return frame.select(*PLACES, function("value").alias("text"))


SECTIONS = {"functions": (_TITLE, rows)}
