"""What goes wrong in a pipeline, for a container's end and for ``run-job``, in one line.

PURE. Spark's own messages have many lines; the first names a stage and a task. The memory
of the JVM has an end with one line too: the JVM leaves at its first OutOfMemoryError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from homeport.config.errors import ConfigError, HomeportError, in_one_line

OUT_OF_MEMORY_CODES = frozenset({3, 52})
"""Of a JVM that leaves at an OutOfMemoryError by its flag, and of one that Spark ends for it."""
_MEMORY_KEYS = "task.spark.driver.memory.mb or cluster-manager.container.memory.mb"
_LOST = re.compile(
    r"^(?:Py4JError|Py4JNetworkError|EOFError|Connection\w*|BrokenPipeError)\b|"
    r"Answer from Java side is empty|Connection refused"
)
"""Of a JVM that has gone; ``Py4JJavaError`` is what one that is there has answered."""
_RESULT = re.compile(r"bigger than spark\.driver\.maxResultSize \(?(?P<limit>[\d.]+ \w+)")
_WORKER = re.compile(r"Python worker (?:exited unexpectedly|failed to connect back)")
_TRACE = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Named:
    """How the configuration names the pipeline; ``remedy``: what to do where Spark refuses it."""

    key: str
    value: str
    remedy: str = "correct it"

    def fault(self, rule: str, remedy: str) -> ConfigError:
        """Return the error of a pipeline that breaks ``rule``."""
        return ConfigError(self.key, self.value, rule, remedy)

    @contextmanager
    def in_one_line(self) -> Iterator[None]:
        """Raise what Spark or the job's own code raises as a ConfigError.

        A traceback of the job's own code is its cause, and Java's is left out.
        """
        try:
            yield
        except HomeportError:
            raise
        except Exception as error:  # code of the job, Spark and py4j may raise anything
            reason = sparks_reason(error)
            if reason is not None:
                raise self.fault(reason, self.remedy) from None
            if type(error).__module__.startswith("py4j."):
                raise  # the JVM is gone, which is no fault of the pipeline's
            raise self.fault(
                f"the pipeline has failed: {in_one_line(error)}", self.remedy
            ) from error
        except BaseException as error:  # code of the job may raise anything
            # What would end a process, as SystemExit does, is a failure like any other.
            raise self.fault(
                f"the pipeline has failed: {in_one_line(error)}",
                "let it return the frame, or raise an Exception",
            ) from error


def sparks_reason(error: BaseException) -> str | None:
    """Return the first line of Spark's message; of an error in a worker's Python the error itself.

    None where it is none of Spark's.
    """
    java = getattr(error, "java_exception", None)
    if java is not None:
        # Of its causes, the last one that says something.
        text = str(java.toString())
        while (java := java.getCause()) is not None:
            text = str(java.toString()) if java.getMessage() else text
    elif type(error).__module__.startswith("pyspark.errors."):
        text = getattr(error, "_desc", None) or str(error)
    else:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if _TRACE in text:
        frames = text.partition(_TRACE)[2].splitlines()
        # The error stands where the lines of the trace, which are indented, are over.
        lines = [line for line in frames if line and not line[0].isspace()] or lines
    return lines[0].rstrip(";") if lines else type(error).__name__


class PipelineFailedError(HomeportError):
    """The job's pipeline has failed over some rows; the container fails with it as the cause."""


def is_lost_jvm(error: BaseException) -> bool:
    """Return whether the JVM may not be there any more."""
    return _LOST.search(f"{type(error).__name__}: {error}") is not None


def failure(
    pipeline: str, rows: str, error: BaseException, exit_code: int | None, reason: str
) -> str:
    """Return the line for the container's end.

    Args:
        pipeline: key and value that name it.
        rows: what it ran over.
        error: what Spark has raised.
        exit_code: of the JVM, where it has ended.
        reason: the cause in ``error`` and what to do, for one that has no line of its own here.
    """
    said = str(error)
    if exit_code in OUT_OF_MEMORY_CODES:
        return (
            f"{pipeline}: Spark's JVM ran out of memory over {rows}: the pipeline makes too much "
            f"of a batch, or keeps it; raise {_MEMORY_KEYS}, or lower task.batch.max.bytes"
        )
    if exit_code is not None:
        what = f"Spark's JVM ended with code {exit_code}"
        return f"{pipeline}: {what} over {rows}; its words are above"
    result = _RESULT.search(said)
    if result is not None:
        return (
            f"{pipeline}: its rows are larger than {result['limit']} over {rows}: the pipeline "
            "multiplies rows; let it make fewer, lower task.batch.max.bytes, or raise "
            f"task.spark.conf.spark.driver.maxResultSize with {_MEMORY_KEYS}"
        )
    if _WORKER.search(said):
        return (
            f"{pipeline}: a Python worker of Spark's died over {rows}: a function of the job ended "
            "its process, by a crash of native code, os._exit or a signal; its words are above"
        )
    return f"{pipeline}: failed over {rows}: {reason}"
