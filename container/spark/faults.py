"""What goes wrong in a pipeline, as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from homeport.config.errors import ConfigError, HomeportError, in_one_line

_TRACE = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Named:
    """How the configuration names the pipeline; ``remedy``: what to do where Spark refuses it."""

    key: str
    value: str
    remedy: str = "correct it"

    def fault(self, rule: str, remedy: str) -> ConfigError:
        """The line that has the pipeline break ``rule``."""
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
    """The first line of what Spark says; of an error in a worker's Python the error itself.

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
