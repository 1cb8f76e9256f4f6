"""What Spark, a worker or the job's own code raises, as one line."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkTypeError

from homeport.config.errors import ConfigError
from homeport.container.spark.faults import Named, sparks_reason

NAMED = Named("task.pipeline.sql", "SELECT", "correct the statement")


class _Java:
    """An exception of the JVM, as py4j shows it."""

    def __init__(self, name: str, message: str | None, cause: _Java | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        """Class and message."""
        return self._name if self._message is None else f"{self._name}: {self._message}"

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        """The message alone."""
        return self._message

    def getCause(self) -> _Java | None:  # noqa: N802 - Java's name
        """What it came of."""
        return self._cause


class _JavaError(Exception):
    def __init__(self, java: _Java) -> None:
        super().__init__("a long text")
        self.java_exception = java


def _of_spark(text: str) -> Exception:
    return AnalysisException(text)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (_of_spark("\n[CODE] No such column. SQLSTATE: 1; line 1 pos 7;\n'Project\n"),
         "[CODE] No such column. SQLSTATE: 1; line 1 pos 7"),
        (_of_spark("it: Traceback (most recent call last):\n  File\nZeroDivisionError: a\n\tat"),
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
    refused = _raised(_of_spark("[CODE] no"))
    assert str(refused) == "task.pipeline.sql = 'SELECT': [CODE] no; correct the statement"
    assert refused.__cause__ is None
    own = _raised(ValueError("b\nc"))
    assert "the pipeline has failed: ValueError: b c; correct the statement" in str(own)
    assert isinstance(own.__cause__, ValueError)
    assert "SystemExit: 3; let it return" in str(_raised(SystemExit(3)))
    ours = ConfigError("k", None, "rule", "remedy")
    assert _raised(ours) is ours
