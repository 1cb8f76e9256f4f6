"""What a pipeline's failure at its rows says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException

from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.faults import Named, PipelineFailedError
from homeport.container.spark.micro_batch import SparkPipeline

RAISED = (
    "\n  An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
    '  File "/p/user_job.py", line 39, in raised\nValueError: poison\n'
)


class _Frame:
    """Stands for a frame whose rows cannot be made."""

    columns = BATCH_SCHEMA.names

    def __init__(self, error: Exception) -> None:
        self._error = error

    def createDataFrame(self, table: pa.Table) -> _Frame:  # noqa: ARG002, N802 - pyspark's
        """Itself."""
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802 - pyspark's
        """Raises."""
        raise self._error


def _line(error: Exception) -> str:
    session: Any = _Frame(error)
    named = Named("task.pipeline.class", "m:f", "correct the function")
    pipeline = SparkPipeline(session, lambda _: session, named, unordered=False)
    with pytest.raises(PipelineFailedError) as caught:
        pipeline.run(BATCH_SCHEMA.empty_table())
    assert caught.value.__cause__ is error
    return str(caught.value)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PythonException(RAISED), "ValueError: poison"),
        (PythonException("[CAST] first\nsecond"), "[CAST] first"),
        (ValueError("a\nb"), "ValueError: a b"),
        (ValueError(), "ValueError"),
    ],
)
def test_it_has_key_value_reason_and_remedy(error: Exception, reason: str) -> None:
    """In one line; the worker's traceback stays in the log."""
    line = "task.pipeline.class = 'm:f': failed over 0 rows (0 KB): "
    assert _line(error) == f"{line}{reason}; correct the function"


def test_a_long_reason_is_cut() -> None:
    """It may hold a whole plan."""
    assert len(_line(ValueError("x" * 10_000))) < 600
