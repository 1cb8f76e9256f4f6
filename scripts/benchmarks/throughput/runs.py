"""All contestants of a piece of work in turns, each result checked; and their rows."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence

from benchmarks.commit.input_records import fill
from benchmarks.commit.job import topic
from benchmarks.commit.runs import broker
from benchmarks.commit.tasks import OUTPUT, STORE
from benchmarks.report import BenchmarkError, Row, at_least, figure, spread
from benchmarks.throughput.check import Results
from benchmarks.throughput.contestants import Contestant, Input, Took, run
from benchmarks.throughput.job import job_of
from benchmarks.throughput.work import PARTITIONS, Right, records
from homeport.job_coordinator.kafka.topics import TopicAdmin

KEYS = 10_000
OURS = "ours"
_INPUT = "throughput"
_COMPACT = {"cleanup.policy": "compact"}

Check = Callable[[Results, Contestant, str, Right], None]
"""Of the results of one run, which has this name."""


def rows(
    contestants: Sequence[Contestant], count: int, runs: int, check: Check, least: float
) -> Iterator[Row]:
    """Rates, CPU and ratios of ``count`` records.

    ``least``: how many times Quix Streams the first of ours is to reach; of others, once.

    Raises:
        BenchmarkError: a contestant failed, or its result is wrong.
    """
    if not contestants:
        raise BenchmarkError("none of --contestants takes part in this section")
    with broker() as servers:
        system = job_of(servers, _INPUT, _INPUT, "batch").transaction_system
        TopicAdmin(system).create(_INPUT, PARTITIONS, 1, {})
        right = Right()
        fill(servers, _INPUT, right.noted(records(count, KEYS)))
        given = Input(servers, _INPUT, count, sum(right.counts.values()))
        results = Results(system)
        found: dict[str, list[Took]] = {one.title: [] for one in contestants}
        numbers = itertools.count(1)
        for one in list(contestants) * runs:
            name = f"{one.name}{next(numbers)}"
            _make_topics(servers, name)
            found[one.title].append(run(one, given, name))
            check(results, one, name, right)
        results.close()
    yield from _measured(found, count)
    yield from _ratios(contestants, found, least)


def _make_topics(servers: str, name: str) -> None:
    """Outputs, changelog and checkpoints of the run are there, and empty."""
    job = job_of(servers, name, name, "batch")
    admin = TopicAdmin(job.transaction_system)
    admin.create(outputs_of(name), PARTITIONS, 1, {})
    admin.create(topic(name, STORE), PARTITIONS, 1, _COMPACT)
    admin.create(job.task.checkpoint_topic, 1, 1, _COMPACT)


def outputs_of(name: str) -> str:
    """The topic with the outputs of the run ``name``."""
    return topic(name, OUTPUT)


def quix_changelog(name: str) -> str:
    """The topic with the state of the run ``name`` of Quix Streams."""
    return f"changelog__{name}--{_INPUT}--default"


def _measured(found: dict[str, list[Took]], count: int) -> Iterator[Row]:
    for title, took in found.items():
        yield spread(title, [count / one.s for one in took], "/s")
    for title, took in found.items():
        per_million = [one.cpu_s * 1e6 / count for one in took]
        yield spread(f"{title}: CPU of a million", per_million, "s")


def _ratios(
    contestants: Sequence[Contestant], found: dict[str, list[Took]], least: float
) -> Iterator[Row]:
    ours = [one for one in contestants if one.name == OURS]
    others = [one for one in contestants if one.name != OURS]
    for own, other in itertools.product(ours, others):
        mine, theirs = found[own.title], found[other.title]
        what = f"{own.title} against {other.title}"
        clock = _median_s(theirs) / _median_s(mine)
        cpu = _median_cpu_s(theirs) / _median_cpu_s(mine)
        if own != ours[0]:
            yield figure(f"{what}, by the clock", clock, "times")
            yield figure(f"{what}, by CPU", cpu, "times")
            continue
        limit = least if other.name == "quix" else 1.0
        yield at_least(f"{what}, by the clock", clock, limit, "times")
        if other.name == "quix":
            yield at_least(f"{what}, by CPU", cpu, limit, "times")
        else:
            yield figure(f"{what}, by CPU", cpu, "times")


def _median_s(took: Sequence[Took]) -> float:
    return statistics.median(one.s for one in took)


def _median_cpu_s(took: Sequence[Took]) -> float:
    return statistics.median(one.cpu_s for one in took)
