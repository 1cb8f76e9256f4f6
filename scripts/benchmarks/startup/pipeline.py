"""Section pipeline: a job with a pipeline in Spark."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.failover.runs import PIPELINE
from benchmarks.report import Row
from benchmarks.startup.runs import measured

TITLE = "A job with a pipeline, from run-job's start to the first committed output"
_LIMIT_S = 9.0


def rows(runs: int) -> Iterator[Row]:
    """In all, and step by step."""
    return measured("with a pipeline", PIPELINE, runs, _LIMIT_S)
