"""What takes part in which piece of work, and how it is run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Contestant:
    """``name``: as ``--contestants`` has it. ``command``: of one run, from its own name."""

    name: str
    title: str
    command: Callable[[Input, str], list[str]]


def _ours(kind: str) -> Callable[[Input, str], list[str]]:
    module = "benchmarks.throughput.job"
    return lambda given, name: [
        *(sys.executable, "-m", module, given.servers, name, given.topic),
        *(str(given.records), kind),
    ]


def _quix(kind: str) -> Callable[[Input, str], list[str]]:
    module = "benchmarks.throughput.quix_job"
    return lambda given, name: [
        *(python_of("quix"), "-m", module, given.servers, name, given.topic),
        *(str(given.records if kind == "output" else given.kept), kind),
    ]


def _faust(given: Input, name: str) -> list[str]:
    module = "benchmarks.throughput.faust_job"
    return [python_of("faust"), "-m", module, given.servers, name, given.topic, str(given.records)]


def _spark(given: Input, name: str) -> list[str]:
    module = "benchmarks.throughput.spark_job"
    jars = str(spark_jars())
    return [sys.executable, "-m", module, given.servers, name, given.topic, jars]


OUTPUT = (
    Contestant("ours", "StreamTask", _ours("stream")),
    Contestant("quix", "Quix Streams", _quix("output")),
)
COUNT = (
    Contestant("ours", "typed pipeline + BatchTask", _ours("typed")),
    Contestant("ours", "from_json pipeline + BatchTask", _ours("pipeline")),
    Contestant("ours", "BatchTask alone", _ours("batch")),
    Contestant("quix", "Quix Streams", _quix("count")),
    Contestant("spark", "Spark Structured Streaming", _spark),
    Contestant("faust", "Faust", _faust),
)


@dataclass(frozen=True, slots=True)
class Took:
    """One run of one that is warm, to its last commit. Seconds; of all its processes.

    Of ours from the start of its loop, of Spark from that of its query, of Quix Streams and Faust,
    whose start cannot be had apart, from their first record.
    """

    s: float
    cpu_s: float


def run(contestant: Contestant, given: Input, name: str) -> Took:
    """One run under this name, which its topics have.

    Raises:
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
