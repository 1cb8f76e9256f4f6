"""Section output: a running sum per key, sent on for each record."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchmarks.report import Row
from benchmarks.throughput.check import Results
from benchmarks.throughput.contestants import OUTPUT, Contestant
from benchmarks.throughput.runs import outputs_of
from benchmarks.throughput.runs import rows as measured
from benchmarks.throughput.work import Right

TITLE = "JSON records of 10,000 keys: a sum per key in a store, sent for each record, exactly-once"
_TIMES_QUIX = 4.0


def rows(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """Every output of every run is compared."""

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        results.require_all(one.title, outputs_of(name), right.sums)

    taking_part = [one for one in OUTPUT if one.name in names]
    return measured(taking_part, records, runs, check, _TIMES_QUIX)
