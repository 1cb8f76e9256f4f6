"""Faults of a pipeline in one line, for a container's end and for ``run-job``.

PURE. Spark's own messages have many lines; the first names a stage and a task. A JVM out of memory
has one line, too: it exits at its first OutOfMemoryError.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from homeport.config.errors import ConfigError, HomeportError, in_one_line

OUT_OF_MEMORY_CODES = frozenset({3, 52})
"""The exit codes of a JVM at an OutOfMemoryError: by its own flag, and by Spark."""
_MEMORY_KEYS = "task.spark.driver.memory.mb or cluster-manager.container.memory.mb"
_LOST = re.compile(
    r"^(?:Py4JError|Py4JNetworkError|EOFError|Connection\w*|BrokenPipeError)\b|"
    r"Answer from Java side is empty|Connection refused"
)
"""Errors of a JVM that has gone; ``Py4JJavaError`` is the answer of a JVM that runs."""
_RESULT = re.compile(r"bigger than spark\.driver\.maxResultSize \(?(?P<limit>[\d.]+ \w+)")
_WORKER = re.compile(r"Python worker (?:exited unexpectedly|failed to connect back)")
_TRACE = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Named:
    """The pipeline's configuration, for messages; ``remedy``: what to do if Spark refuses it."""

    key: str
    value: str
    remedy: str = "correct it"

    def fault(self, rule: str, remedy: str) -> ConfigError:
        """Return the error of a pipeline that breaks ``rule``."""
        return ConfigError(self.key, self.value, rule, remedy)

    @contextmanager
    def in_one_line(self) -> Iterator[None]:
        """Raise a ConfigError for each exception of Spark or of the job's own code.

        An exception of the job's own code is its cause; Java's traceback is left out.
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
            # SystemExit and the like fail the pipeline, as other exceptions do.
            raise self.fault(
                f"the pipeline has failed: {in_one_line(error)}",
                "let it return the frame, or raise an Exception",
            ) from error


def sparks_reason(error: BaseException) -> str | None:
    """Return the first line of Spark's message, or the error in a worker's Python.

    None: it is no error of Spark's.
    """
    java = getattr(error, "java_exception", None)
    if java is not None:
        # The last of its causes that has a message.
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
        # The error follows the indented lines of the trace.
        lines = [line for line in frames if line and not line[0].isspace()] or lines
    return lines[0].rstrip(";") if lines else type(error).__name__


class PipelineFailedError(HomeportError):
    """The job's pipeline has failed over some rows; it is the cause of the container's failure."""


def is_lost_jvm(error: BaseException) -> bool:
    """Return whether the JVM may have gone."""
    return _LOST.search(f"{type(error).__name__}: {error}") is not None


def failure(
    pipeline: str, rows: str, error: BaseException, exit_code: int | None, reason: str
) -> str:
    """Return the line for the container's end.

    ``pipeline``: its key and value. ``exit_code``: the JVM's, if it has ended. ``reason``: the
    cause in ``error`` and the remedy, for an error without a line of its own here.
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
