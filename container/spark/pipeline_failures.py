"""What an exception of Spark's means for the pipeline of a job, in one line.

PURE. Spark's own messages have many lines, of which the first names a stage and a task. The memory
of the JVM has an end with one line too: the JVM leaves at its first OutOfMemoryError.
"""

from __future__ import annotations

import re

from homeport.config.errors import HomeportError

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


class PipelineFailedError(HomeportError):
    """The job's pipeline has failed over some rows; the container fails with it as the cause."""


def is_lost_jvm(error: BaseException) -> bool:
    """Return whether the JVM may not be there any more."""
    return _LOST.search(f"{type(error).__name__}: {error}") is not None


def failure(
    pipeline: str, rows: str, error: BaseException, exit_code: int | None, reason: str
) -> str:
    """The line for the container's end.

    Args:
        pipeline: key and value that name it.
        rows: what it ran over.
        error: what Spark has raised.
        exit_code: of the JVM, where it has ended.
        reason: what ``error`` says and what to do, for one that has no line of its own here.
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
