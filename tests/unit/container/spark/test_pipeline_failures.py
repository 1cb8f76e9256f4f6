"""What a failure of a pipeline is in one line."""

from __future__ import annotations

import pytest

from homeport.container.spark.faults import failure, is_lost_jvm

NAMED, ROWS = "task.pipeline.class = 'm:f'", "7 rows (3 KB) from kafka.in partition 0 offset 5 on"


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
    ("error", "exit_code", "said"),
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
    error: Exception, exit_code: int | None, said: str
) -> None:
    """Whatever Spark's own message looks like."""
    line = failure(NAMED, ROWS, error, exit_code, "the reason; a remedy")
    assert line.startswith(f"{NAMED}: {said}")
    assert ROWS in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "is_lost"),
    [
        ("Answer from Java side is empty", True),
        ("[Errno 111] Connection refused", True),
        ("ValueError: poison", False),
        ("Py4JError: in the text", False),
    ],
)
def test_a_jvm_that_does_not_answer_may_be_lost(text: str, *, is_lost: bool) -> None:
    """Only then its end is waited for."""
    assert is_lost_jvm(SparkError(text)) is is_lost


@pytest.mark.parametrize(
    ("name", "is_lost"),
    [("Py4JError", True), ("Py4JNetworkError", True), ("EOFError", True), ("Py4JJavaError", False)],
)
def test_errors_without_an_answer_are_known_by_name(name: str, *, is_lost: bool) -> None:
    """A JVM that dies in a call leaves any of the first three."""
    assert is_lost_jvm(type(name, (Exception,), {})("calling o84.getResult")) is is_lost
