"""What Spark, a worker or the job's own code raises, as one line with what it means."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkTypeError, PythonException

from homeport.config.errors import ConfigError
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.faults import (
    Named,
    PipelineFailedError,
    failure,
    is_lost_jvm,
    sparks_reason,
)
from homeport.container.spark.micro_batch import SparkPipeline

NAMED = Named("task.pipeline.sql", "SELECT", "correct the statement")


class _Java:
    """An exception of the JVM, as py4j shows it."""

    def __init__(self, name: str, message: str | None, cause: _Java | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self._name if self._message is None else f"{self._name}: {self._message}"

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> _Java | None:  # noqa: N802 - Java's name
        return self._cause


class _JavaError(Exception):
    def __init__(self, java: _Java) -> None:
        super().__init__("a long text")
        self.java_exception = java


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AnalysisException("\n[CODE] No such column. SQLSTATE: 1; line 1 pos 7;\n'Project\n"),
         "[CODE] No such column. SQLSTATE: 1; line 1 pos 7"),
        (AnalysisException("a: Traceback (most recent call last):\n  F\nZeroDivisionError: a\n\ta"),
         "ZeroDivisionError: a"),
        (_JavaError(_Java("W", "failed:", _Java("Spark", "worker died.", _Java("EOF", None)))),
         "Spark: worker died."),
        (PySparkTypeError("no"), "no"),
        (ValueError("no"), None),
    ],
)  # fmt: skip
def test_the_reason_is_one_line(error: Exception, reason: str | None) -> None:
    """The first one of Spark's; in a trace of Python the error; of Java's the last that says it."""
    assert sparks_reason(error) == reason


def _raised(error: BaseException) -> Any:  # noqa: ANN401 - what pytest has caught
    with pytest.raises(ConfigError) as caught, NAMED.in_one_line():
        raise error
    return caught.value


def test_only_the_jobs_own_code_has_a_trace() -> None:
    """What Spark refuses needs none; an error of ours stays what it is."""
    refused = _raised(AnalysisException("[CODE] no"))
    assert str(refused) == "task.pipeline.sql = 'SELECT': [CODE] no; correct the statement"
    assert refused.__cause__ is None
    own = _raised(ValueError("b\nc"))
    assert "the pipeline has failed: ValueError: b c; correct the statement" in str(own)
    assert isinstance(own.__cause__, ValueError)
    assert "SystemExit: 3; let it return" in str(_raised(SystemExit(3)))
    ours = ConfigError("k", None, "rule", "remedy")
    assert _raised(ours) is ours
    gone = type("Py4JNetworkError", (Exception,), {"__module__": "py4j.protocol"})
    with pytest.raises(gone), NAMED.in_one_line():
        raise gone


PIPELINE, ROWS = (
    "task.pipeline.class = 'm:f'",
    "7 rows (3 KB) from kafka.in partition 0 offset 5 on",
)


class SparkError(Exception):
    """Stands for what pyspark raises."""


RESULT = SparkError(
    "Job aborted due to stage failure: Total size of serialized results of 3 tasks (96.0 MiB) is "
    "bigger than spark.driver.maxResultSize (64.0 MiB)"
)
WORKER = SparkError(
    "Job aborted due to stage failure: Lost task 0.0: org.apache.spark.SparkException: Python "
    "worker exited unexpectedly (crashed)\n\tat org.apache.spark.X\n"
)


@pytest.mark.parametrize(
    ("error", "exit_code", "expected"),
    [
        (SparkError("Answer from Java side is empty"), 3, "Spark's JVM ran out of memory over "),
        (SparkError("Answer from Java side is empty"), 52, "Spark's JVM ran out of memory over "),
        (SparkError("Connection refused"), -9, "Spark's JVM ended with code -9 over "),
        (RESULT, None, "its rows are larger than 64.0 MiB over "),
        (WORKER, None, "a Python worker of Spark's died over "),
        (SparkError("[CAST] first\nsecond"), None, f"failed over {ROWS}: the reason; a remedy"),
    ],
)
def test_a_failure_is_one_line_with_key_rows_and_cause(
    error: Exception, exit_code: int | None, expected: str
) -> None:
    """Whatever Spark's own message looks like."""
    line = failure(PIPELINE, ROWS, error, exit_code, "the reason; a remedy")
    assert line.startswith(f"{PIPELINE}: {expected}")
    assert ROWS in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "text", "is_lost"),
    [
        ("SparkError", "Answer from Java side is empty", True),
        ("SparkError", "[Errno 111] Connection refused", True),
        ("SparkError", "ValueError: poison", False),
        ("SparkError", "Py4JError: in the text", False),
        # A JVM that dies in a call leaves any of these without an answer.
        ("Py4JError", "calling o84.getResult", True),
        ("Py4JNetworkError", "calling o84.getResult", True),
        ("EOFError", "calling o84.getResult", True),
        ("Py4JJavaError", "calling o84.getResult", False),
    ],
)
def test_a_jvm_that_does_not_answer_may_be_lost(name: str, text: str, *, is_lost: bool) -> None:
    """Only then its end is waited for."""
    assert is_lost_jvm(type(name, (Exception,), {})(text)) is is_lost


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
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802 - pyspark's
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
