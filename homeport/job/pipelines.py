"""Rows that a pipeline makes of the records of inputs, in PySpark or in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeport.job.handles import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FrameFunction = Callable[..., "DataFrame"]
_MEMORY_MB = 1536
"""Of a container, as Spark's JVM has its share of it."""


@dataclass(frozen=True)
class Rows:
    """The rows of the job's pipeline; ``job.each`` and ``job.batch`` take it as they take an input.

    A call of it calls the pipeline's function.

    ``frames``: the names of the frames that the function gets, in order. ``function``: None for
    SQL, whose ``text`` names its tables. ``output``: where the rows leave; None: functions get
    them. ``unordered``: whether they may be without a place in the input.
    """

    frames: tuple[str, ...] = ()
    function: FrameFunction | None = None
    text: str = ""
    output: Output[Any, Any] | None = None
    unordered: bool = False

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", "the rows of job.sql"))

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """Return the frame that the function makes of ``frames``."""
        if self.function is None:
            raise TypeError("the pipeline is SQL, which is not called")
        return self.function(*frames)

    def of_frames(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Return the frame that the function makes of its frames by name."""
        return self(*(frames[name] for name in self.frames))

    def keys(self) -> dict[str, object]:
        """Return its keys, without that of a function."""
        made: dict[str, object] = {"cluster-manager.container.memory.mb": _MEMORY_MB}
        if self.function is None:
            made["task.pipeline.sql"] = self.text
        if self.output is not None:
            made["task.pipeline.output"] = str(self.output)
        if self.unordered:
            made["task.pipeline.unordered"] = True
        return made
