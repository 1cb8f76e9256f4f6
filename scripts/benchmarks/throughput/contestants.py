"""What takes part in which piece of work, and how it is run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from benchmarks.report import BenchmarkError
from benchmarks.throughput.peers import python_of, spark_jars

_LIMIT_S = 1800


@dataclass(frozen=True, slots=True)
class Input:
    """The topic that all read, and what is right. ``kept``: records that pass the filter."""

    servers: str
    topic: str
    records: int
    kept: int


Command = Callable[[Input, str], list[str]]
_RECORDS: Callable[[Input], object] = attrgetter("records")


def _own() -> str:
    return sys.executable


@dataclass(frozen=True, slots=True)
class Contestant:
    """``name``: as ``--contestants`` has it. ``command``: of one run, from its own name."""

    name: str
    title: str
    command: Command


def _program(name: str, python: Callable[[], str], *rest: Callable[[Input], object]) -> Command:
    """Return the command of one of our programs, with SERVERS NAME INPUT and the rest."""
    return lambda given, run_name: [
        *(python(), "-m", f"benchmarks.throughput.{name}", given.servers, run_name, given.topic),
        *(str(value(given)) for value in rest),
    ]


def _ours(kind: str) -> Command:
    return _program("job", _own, _RECORDS, lambda _: kind)


def _quix(kind: str, outputs: Callable[[Input], object]) -> Command:
    return _program("quix_job", partial(python_of, "quix"), outputs, lambda _: kind)


def _faust(kind: str) -> Command:
    return _program("faust_job", partial(python_of, "faust"), _RECORDS, lambda _: kind)


OUTPUT = (
    Contestant("ours", "StreamTask", _ours("stream")),
    Contestant("ours", "function under @job.each", _ours("each")),
    Contestant("quix", "Quix Streams", _quix("output", _RECORDS)),
    Contestant("faust", "Faust", _faust("output")),
    Contestant("bytewax", "Bytewax", _program("bytewax_job", partial(python_of, "bytewax"))),
)
COUNT = (
    Contestant("ours", "typed pipeline + BatchTask", _ours("typed")),
    Contestant("ours", "from_json pipeline + BatchTask", _ours("pipeline")),
    Contestant("ours", "BatchTask alone", _ours("batch")),
    Contestant("quix", "Quix Streams", _quix("count", attrgetter("kept"))),
    Contestant(
        "spark", "Spark Structured Streaming", _program("spark_job", _own, lambda _: spark_jars())
    ),
    Contestant("faust", "Faust", _faust("count")),
)
FRONT = (
    Contestant("ours", "function under @job.each", _ours("each")),
    Contestant("class", "StreamTask", _ours("stream")),
    Contestant("ours", "function under @job.batch", _ours("tables")),
    Contestant("class", "BatchTask", _ours("batch-sends")),
)
"""A function, and the class that does the same; and again."""


@dataclass(frozen=True, slots=True)
class Took:
    """One run of one that is warm, to its last commit. Seconds; of all its processes.

    Of ours from the start of its loop, of Spark from that of its query, of the others,
    whose start cannot be had apart, from their first record.
    """

    s: float
    cpu_s: float


def run(contestant: Contestant, given: Input, name: str) -> Took:
    """One run under this name, which its topics have.

    BenchmarkError: it failed, or took half an hour.
    """
    command = contestant.command(given, name)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"{contestant.title}: not done after {_LIMIT_S} s") from None
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        raise BenchmarkError(f"{contestant.title} ended with exit code {done.returncode}")
    return Took(**json.loads(done.stdout.splitlines()[-1]))
