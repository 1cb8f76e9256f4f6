"""Section count: JSON is parsed, a tenth filtered out, the rest counted per key."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchmarks.report import Row
from benchmarks.throughput.check import Results
from benchmarks.throughput.contestants import COUNT, Contestant
from benchmarks.throughput.runs import outputs_of, quix_changelog
from benchmarks.throughput.runs import rows as measured
from benchmarks.throughput.work import Right

TITLE = "JSON records of 10,000 keys: parsed, a tenth filtered out, counted per key in a store"
_TIMES_QUIX = 4.0


def rows(runs: int, records: int, names: Collection[str]) -> Iterator[Row]:
    """The last count of every key is compared: as sent, of Quix Streams and Faust by changelog."""

    def check(results: Results, one: Contestant, name: str, right: Right) -> None:
        if one.name == "quix":
            results.require_state(one.title, quix_changelog(name), right.counts)
        elif one.name == "faust":
            results.require_last(one.title, f"{name}-counts-changelog", right.counts)
        else:
            results.require_last(one.title, outputs_of(name), right.counts)

    taking_part = [one for one in COUNT if one.name in names]
    return measured(taking_part, records, runs, check, _TIMES_QUIX)
