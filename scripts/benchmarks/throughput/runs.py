"""All contestants of a piece of work in turns, each result checked; and their rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from operator import attrgetter
from statistics import median

from benchmarks.bed import broker
from benchmarks.commit import tasks
from benchmarks.commit.input_records import fill, make_run_topics
from benchmarks.commit.job import topic
from benchmarks.report import BenchmarkError, Row, at_least, failed, spread
from benchmarks.throughput.check import Results
from benchmarks.throughput.contestants import (
    COUNT,
    FRONT,
    OUTPUT,
    Command,
    Contestant,
    Input,
    Took,
    run_once,
)
from benchmarks.throughput.job import job_of
from benchmarks.throughput.work import PARTITIONS, Right, records
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.local_cluster.errors import ClusterError

KEYS = 10_000
OURS = "ours"
CLOCK, CPU = "by the clock", "by CPU"
_TARGETS = {
    ("quix", CLOCK): 4.0,
    ("quix", CPU): 4.0,
    ("spark", CLOCK): 1.0,
    ("faust", CLOCK): 1.0,
    ("bytewax", CLOCK): 1.0,
}
"""How many times the rate of another one the first of ours is to reach."""
_FRONT = 0.97
"""The part of a class's rate that a function must reach."""
_INPUT = "throughput"

Check = Callable[[Results, Contestant, str, Right], None]
"""Of the results of one run, which has this name."""
Found = dict[str, list[Took]]
"""The runs of each contestant, by its title; of one that has none, nothing."""
Ratios = Callable[[Sequence[Contestant], Found], Iterator[Row]]


class _Race:
    """Runs on one broker, each with topics of its own, and the judgement of their results."""

    def __init__(self, servers: str, total: int, check: Check) -> None:
        self._servers, self._total, self._check = servers, total, check
        self._system = job_of(servers, _INPUT, _INPUT, "batch").transaction_system
        self._results = Results(self._system)
        self._numbers = itertools.count(1)
        self._inputs: dict[int, Input] = {}

    def took(self, one: Contestant, command: Command) -> Took:
        """Let it run once, or twice.

        BenchmarkError: it failed, or its result is wrong.
        """
        took = self._run(one, command, 1)
        if one.times == 1:
            return took
        return took.without_start(self._run(one, command, one.times), one.times)

    def _run(self, one: Contestant, command: Command, times: int) -> Took:
        given = self._input(times)
        name = f"{one.name}{next(self._numbers)}"
        _make_topics(self._servers, name)
        took = run_once(command(given, name))
        self._check(self._results, one, name, given.right)
        return took

    def _input(self, times: int) -> Input:
        """Return the topic with so many times the records, which is filled first."""
        if times not in self._inputs:
            topic, total = (_INPUT if times == 1 else f"{_INPUT}{times}"), times * self._total
            TopicAdmin(self._system).create(topic, PARTITIONS, 1, {})
            right = Right()
            fill(self._servers, topic, right.noted(records(total, KEYS)))
            self._inputs[times] = Input(self._servers, topic, total, right)
        return self._inputs[times]

    def close(self) -> None:
        """Nothing is read any more."""
        self._results.close()


def _compared(
    contestants: Sequence[Contestant], total: int, runs: int, check: Check, ratios: Ratios
) -> Iterator[Row]:
    """Yield rates, CPU and ratios of ``total`` records.

    BenchmarkError: none takes part.
    """
    if not contestants:
        raise BenchmarkError("none of --contestants takes part in this section")
    ready: dict[Contestant, Command] = {}
    for one in contestants:
        try:
            ready[one] = one.prepare()
        except (BenchmarkError, ClusterError) as error:
            yield failed(one.title, error)
    found: Found = {}
    with broker() as started, closing(_Race(started.bootstrap_servers, total, check)) as race:
        yield from _in_turns(ready, runs, race.took, found)
    yield from _measured(found, total)
    yield from ratios(contestants, found)


def _in_turns(
    ready: Mapping[Contestant, Command],
    runs: int,
    took: Callable[[Contestant, Command], Took],
    found: Found,
) -> Iterator[Row]:
    """Yield a row for each run as soon as it is done, and add it to ``found``.

    A contestant that fails has a row with the reason, and does not run again.
    """
    out: set[str] = set()
    for number, (one, command) in itertools.product(range(1, runs + 1), ready.items()):
        if one.title in out:
            continue
        what = f"{one.title}, run {number}"
        try:
            run = took(one, command)
        except BenchmarkError as error:
            out.add(one.title)
            yield failed(what, error)
        else:
            found.setdefault(one.title, []).append(run)
            yield Row(what, f"{run.s:.2f} s, CPU {run.cpu_s:.2f} s")


def _make_topics(servers: str, name: str) -> None:
    job = job_of(servers, name, name, "batch")
    make_run_topics(job, outputs_of(name), changelog=topic(name, tasks.STORE))


def outputs_of(name: str) -> str:
    """The topic with the outputs of the run ``name``."""
    return topic(name, tasks.OUTPUT)


def quix_changelog(name: str) -> str:
    """The topic with the state of the run ``name`` of Quix Streams."""
    return f"changelog__{name}--{_INPUT}--default"


def _measured(found: Found, total: int) -> Iterator[Row]:
    for title, took in found.items():
        yield spread(title, [total / one.s for one in took], "/s")
    for title, took in found.items():
        per_million = [one.cpu_s * 1e6 / total for one in took]
        yield spread(f"{title}: CPU of a million", per_million, "s")


def _ratios(contestants: Sequence[Contestant], found: Found) -> Iterator[Row]:
    ours = [one for one in contestants if one.name == OURS]
    others = [one for one in contestants if one.name != OURS]
    for own, other in itertools.product(ours, others):
        for how, times in _times(own, other, found):
            limit = _TARGETS.get((other.name, how)) if own == ours[0] else None
            yield at_least(f"{own.title} against {other.title}, {how}", times, limit, "times")


def _pairs(contestants: Sequence[Contestant], found: Found) -> Iterator[Row]:
    """Yield the rate of each contestant against that of the next one."""
    for own, other in zip(contestants[::2], contestants[1::2], strict=True):
        for how, times in _times(own, other, found):
            yield at_least(f"{own.title} against {other.title}, {how}", times, _FRONT, "times")


def _times(own: Contestant, other: Contestant, found: Found) -> Iterator[tuple[str, float]]:
    """Yield how many times as fast ``own`` is; nothing where one of both has no run."""
    if own.title in found and other.title in found:
        for how, taken in ((CLOCK, attrgetter("s")), (CPU, attrgetter("cpu_s"))):
            mine, theirs = (median(map(taken, found[one.title])) for one in (own, other))
            yield how, theirs / mine


def output(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Compare every output of every run; of Flink, which leaves out what adds 0, the last ones."""

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        if one.name == "flink":
            last = {key: sums[-1] for key, sums in right.sums.items()}
            results.require_last(outputs_of(name), last)
        else:
            results.require_all(outputs_of(name), right.sums)

    return _compared([one for one in OUTPUT if one.name in names], records, runs, check, _ratios)


def count(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Compare the last count of every key: as sent, of Quix Streams and Faust by changelog."""

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        if one.name == "quix":
            results.require_state(quix_changelog(name), right.counts)
        elif one.name == "faust":
            results.require_last(f"{name}-counts-changelog", right.counts)
        else:
            results.require_last(outputs_of(name), right.counts)

    return _compared([one for one in COUNT if one.name in names], records, runs, check, _ratios)


def front(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Compare functions of a job in Python with classes."""
    del names  # each of ours, with its class

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        if one in FRONT[:2]:
            results.require_all(outputs_of(name), right.sums)
        else:
            results.require_last(outputs_of(name), right.counts)

    return _compared(FRONT, records, runs, check, _pairs)


SECTIONS = {
    "output": (
        "JSON records of 10,000 keys: a sum per key in a store, sent for each record, exactly-once",
        output,
    ),
    "count": (
        "JSON records of 10,000 keys: parsed, a tenth filtered out, counted per key in a store",
        count,
    ),
    "front": ("the same work by functions of a job in Python, and by classes", front),
}
