"""Section task: a job without a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.report import Row
from benchmarks.startup.runs import measured

TITLE = "A job without a pipeline, from run-job's start to the first committed output"
_LIMIT_S = 6.0


def rows(runs: int) -> Iterator[Row]:
    """In all, and step by step."""
    return measured("without a pipeline", (), runs, _LIMIT_S)
