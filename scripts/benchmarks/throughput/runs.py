"""All contestants of a piece of work in turns, each result checked; and their rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from statistics import median

from benchmarks.bed import broker
from benchmarks.commit import tasks
from benchmarks.commit.input_records import fill, make_run_topics
from benchmarks.commit.job import topic
from benchmarks.report import BenchmarkError, Row, at_least, spread
from benchmarks.throughput.check import Results
from benchmarks.throughput.contestants import COUNT, FRONT, OUTPUT, Contestant, Input, Took, run
from benchmarks.throughput.job import job_of
from benchmarks.throughput.work import PARTITIONS, Right, records
from homeport.job_coordinator.kafka.topics import TopicAdmin

KEYS = 10_000
OURS = "ours"
_TIMES_QUIX = 4.0
"""How many times Quix Streams the first of ours is to reach; of others, once."""
_FRONT = 0.97
"""The part of a class's rate that a function must reach."""
_INPUT = "throughput"

Check = Callable[[Results, Contestant, str, Right], None]
"""Of the results of one run, which has this name."""
Ratios = Callable[[Sequence[Contestant], dict[str, list[Took]]], Iterator[Row]]


def _compared(
    contestants: Sequence[Contestant], total: int, runs: int, check: Check, ratios: Ratios
) -> Iterator[Row]:
    """Rates, CPU and ratios of ``total`` records.

    BenchmarkError: a contestant failed, or its result is wrong.
    """
    if not contestants:
        raise BenchmarkError("none of --contestants takes part in this section")
    with broker() as started:
        servers = started.bootstrap_servers
        system = job_of(servers, _INPUT, _INPUT, "batch").transaction_system
        TopicAdmin(system).create(_INPUT, PARTITIONS, 1, {})
        right = Right()
        fill(servers, _INPUT, right.noted(records(total, KEYS)))
        given = Input(servers, _INPUT, total, sum(right.counts.values()))
        results = Results(system)
        found: dict[str, list[Took]] = {one.title: [] for one in contestants}
        numbers = itertools.count(1)
        for one in list(contestants) * runs:
            name = f"{one.name}{next(numbers)}"
            _make_topics(servers, name)
            found[one.title].append(run(one, given, name))
            check(results, one, name, right)
        results.close()
    yield from _measured(found, total)
    yield from ratios(contestants, found)


def _make_topics(servers: str, name: str) -> None:
    job = job_of(servers, name, name, "batch")
    make_run_topics(job, outputs_of(name), changelog=topic(name, tasks.STORE))


def outputs_of(name: str) -> str:
    """The topic with the outputs of the run ``name``."""
    return topic(name, tasks.OUTPUT)


def quix_changelog(name: str) -> str:
    """The topic with the state of the run ``name`` of Quix Streams."""
    return f"changelog__{name}--{_INPUT}--default"


def _measured(found: dict[str, list[Took]], total: int) -> Iterator[Row]:
    for title, took in found.items():
        yield spread(title, [total / one.s for one in took], "/s")
    for title, took in found.items():
        per_million = [one.cpu_s * 1e6 / total for one in took]
        yield spread(f"{title}: CPU of a million", per_million, "s")


def _ratios(contestants: Sequence[Contestant], found: dict[str, list[Took]]) -> Iterator[Row]:
    ours = [one for one in contestants if one.name == OURS]
    others = [one for one in contestants if one.name != OURS]
    for own, other in itertools.product(ours, others):
        mine, theirs = found[own.title], found[other.title]
        what = f"{own.title} against {other.title}"
        clock = median(one.s for one in theirs) / median(one.s for one in mine)
        cpu = median(one.cpu_s for one in theirs) / median(one.cpu_s for one in mine)
        is_quix = other.name == "quix"
        limit = None if own != ours[0] else _TIMES_QUIX if is_quix else 1.0
        yield at_least(f"{what}, by the clock", clock, limit, "times")
        yield at_least(f"{what}, by CPU", cpu, limit if is_quix else None, "times")


def _pairs(contestants: Sequence[Contestant], found: dict[str, list[Took]]) -> Iterator[Row]:
    """Yield the rate of each contestant against that of the next one, by CPU and by the clock."""
    for own, other in zip(contestants[::2], contestants[1::2], strict=True):
        mine, theirs = found[own.title], found[other.title]
        what = f"{own.title} against {other.title}"
        cpu = median(one.cpu_s for one in theirs) / median(one.cpu_s for one in mine)
        clock = median(one.s for one in theirs) / median(one.s for one in mine)
        yield at_least(f"{what}, by CPU", cpu, _FRONT, "times")
        yield at_least(f"{what}, by the clock", clock, _FRONT, "times")


def output(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Compare every output of every run."""

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        results.require_all(one.title, outputs_of(name), right.sums)

    return _compared([one for one in OUTPUT if one.name in names], records, runs, check, _ratios)


def count(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Compare the last count of every key: as sent, of Quix Streams and Faust by changelog."""

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        if one.name == "quix":
            results.require_state(one.title, quix_changelog(name), right.counts)
        elif one.name == "faust":
            results.require_last(one.title, f"{name}-counts-changelog", right.counts)
        else:
            results.require_last(one.title, outputs_of(name), right.counts)

    return _compared([one for one in COUNT if one.name in names], records, runs, check, _ratios)


def front(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Compare functions of a job in Python with classes."""
    del names  # each of ours, with its class

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        if one in FRONT[:2]:
            results.require_all(one.title, outputs_of(name), right.sums)
        else:
            results.require_last(one.title, outputs_of(name), right.counts)

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
