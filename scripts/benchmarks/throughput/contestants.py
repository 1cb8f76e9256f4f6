"""What takes part in which piece of work, and how it is run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from benchmarks.report import BenchmarkError
from benchmarks.throughput.peers import jars_of, java_of, python_of
from benchmarks.throughput.work import LIMIT, Right

_LIMIT_S = 1800
_TIMES = 4


@dataclass(frozen=True, slots=True)
class Input:
    """A topic that all read, and what is right of its records."""

    servers: str
    topic: str
    records: int
    right: Right


Command = Callable[[Input, str], list[str]]
"""Of one run, from its input and its own name, which its topics have."""
_Argument = Callable[[Input], object]
_RECORDS: _Argument = attrgetter("records")


def _kept(given: Input) -> int:
    return sum(given.right.counts.values())


@dataclass(frozen=True, slots=True)
class Contestant:
    """``name``: as ``--contestants`` has it. ``prepare``: fetch what its runs need.

    ``times``: where what it prints has its start in it, it runs over the records, and over so many
    times as many; what counts is the difference.

    BenchmarkError, ClusterError: it cannot be had.
    """

    name: str
    title: str
    prepare: Callable[[], Command]
    times: int = 1


def _program(
    module: str, *rest: _Argument, python: Callable[[], str] = lambda: sys.executable
) -> Callable[[], Command]:
    """Prepare one of our programs, with SERVERS NAME INPUT and the rest as its arguments."""
    return lambda: _command([python(), "-m", f"benchmarks.throughput.{module}"], *rest)


def _command(program: Sequence[str], *rest: _Argument) -> Command:
    return lambda given, run_name: [
        *(*program, given.servers, run_name, given.topic),
        *(str(value(given)) for value in rest),
    ]


def _ours(kind: str) -> Callable[[], Command]:
    return _program("job", _RECORDS, lambda _: kind)


def _peer(name: str, *rest: _Argument) -> Callable[[], Command]:
    return _program(f"{name}_job", *rest, python=partial(python_of, name))


def _spark() -> Command:
    jars = jars_of("spark-kafka")
    return _program("spark_job", lambda _: jars)()


def _kafka_streams(kind: str) -> Contestant:
    def prepare() -> Command:
        program = java_of("KafkaStreamsJob", "kafka-streams")
        return _command(program, lambda _: LIMIT, _RECORDS, lambda _: kind)

    return Contestant("kafka-streams", "Kafka Streams", prepare, _TIMES)


def _flink(kind: str) -> Contestant:
    def prepare() -> Command:
        jars = jars_of("flink-kafka")
        return _peer("flink", lambda _: jars, lambda _: kind)()

    return Contestant("flink", "Flink SQL", prepare, _TIMES)


OUTPUT = (
    Contestant("ours", "StreamTask", _ours("stream")),
    Contestant("ours", "function under @job.each", _ours("each")),
    Contestant("quix", "Quix Streams", _peer("quix", _RECORDS, lambda _: "output")),
    Contestant("faust", "Faust", _peer("faust", _RECORDS, lambda _: "output")),
    _kafka_streams("output"),
    _flink("output"),
    Contestant("bytewax", "Bytewax", _peer("bytewax", lambda _: "output")),
)
COUNT = (
    Contestant("ours", "typed pipeline + BatchTask", _ours("typed")),
    Contestant("ours", "from_json pipeline + BatchTask", _ours("pipeline")),
    Contestant("ours", "typed BatchTask alone", _ours("typed-batch")),
    Contestant("ours", "BatchTask alone", _ours("batch")),
    Contestant("quix", "Quix Streams", _peer("quix", _kept, lambda _: "count")),
    Contestant("spark", "Spark Structured Streaming", _spark),
    _kafka_streams("count"),
    _flink("count"),
    Contestant("bytewax", "Bytewax", _peer("bytewax", lambda _: "count")),
    Contestant("faust", "Faust", _peer("faust", _RECORDS, lambda _: "count")),
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

    Of ours from the start of its loop, of Spark from that of its query, of those with ``times``
    by the difference of two runs, of the others from their first record.
    """

    s: float
    cpu_s: float

    def without_start(self, longer: Took, times: int) -> Took:
        """Return what this one takes of that: ``longer`` has so many times its records.

        BenchmarkError: it was not longer.
        """
        more = longer.s - self.s, longer.cpu_s - self.cpu_s
        if min(more) <= 0:
            raise BenchmarkError("too few records: its start outweighs them")
        return Took(*(value / (times - 1) for value in more))


def run_once(command: Sequence[str]) -> Took:
    """Run one contestant.

    BenchmarkError: it failed, or took half an hour.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"not done after {_LIMIT_S} s") from None
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        raise BenchmarkError(f"ended with exit code {done.returncode}")
    return Took(**json.loads(done.stdout.splitlines()[-1]))
