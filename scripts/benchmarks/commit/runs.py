"""Runs of scripts/bench commit: a broker, an input, and a container's data path on them."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.bed import broker
from benchmarks.processes import child, result_of
from benchmarks.report import BenchmarkError, Row, at_least, at_most, figure, table

_RECORDS, _KEYS, _DISTINCT = 1_000_000, 10_000, 1_000_000
_ROUNDS, _MODE_ROUNDS = 3, 5
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over ``records`` of the input. Units: seconds, MB."""

    records: int
    s: float
    cpu_s: float
    transactions: int
    peak_mb: float
    state_mb: float

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.s

    @property
    def rate_per_core(self) -> float:
        """Records per second of CPU, of all threads of the container together."""
        return self.records / self.cpu_s


def passes(
    servers: str, kind: str, records: int, keys: int, *, count: int = 1, exactly_once: bool = True
) -> Iterator[Pass]:
    """``count`` passes, each over as much of new input; state and container stay.

    BenchmarkError: the container ended before.
    """
    name = f"commit{next(_NUMBERS)}"
    result_of("commit.input_records.make_topics", servers, name)
    mode = str(exactly_once).lower()
    command = [sys.executable, "-m", "benchmarks.commit.job", servers, name, kind, mode, "64"]
    with child(command) as (process, given, lines):
        for number in range(1, count + 1):
            result_of("commit.input_records.fill_input", servers, name, kind, records, keys, number)
            given.write(f"{number * records}\n")
            given.flush()
            line = lines.readline()
            if not line:
                raise BenchmarkError("benchmarks.commit.job ended before it was done")
            yield Pass(records, **json.loads(line))
        given.close()
        process.wait()


def rows_of(found: Pass, what: str, least: float) -> Iterator[Row]:
    """The rate beside its target, and where it comes from."""
    yield at_least(f"{what}, per core (CPU of all its threads)", found.rate_per_core, least, "/s")
    yield figure(f"{what}, by the clock", found.rate, "/s")
    yield from table(
        asdict(found),
        ("CPU of the container", "cpu_s", "s", None),
        ("time", "s", "s", None),
        ("transactions", "transactions", "", None),
        ("memory of the container at most", "peak_mb", "MB", None),
        ("state on the disk", "state_mb", "MB", None),
    )


def hot() -> Iterator[Row]:
    """Records per second of the whole path, from the fetch to the stores' commit."""
    with broker() as started:
        servers = started.bootstrap_servers
        found = [next(passes(servers, "hot", _RECORDS, _KEYS)) for _ in range(_ROUNDS)]
    yield from rows_of(sorted(found, key=lambda one: one.cpu_s)[_ROUNDS // 2], "records", 200_000)


def distinct() -> Iterator[Row]:
    """The first pass finds an empty store; the second reads every key that the first has left."""
    with broker() as started:
        servers = started.bootstrap_servers
        first, second = passes(servers, "distinct", _DISTINCT, _DISTINCT, count=2)
    yield from rows_of(second, "keys", 50_000)
    yield figure("keys into an empty store, per core", first.rate_per_core, "/s")
    yield figure("keys into an empty store, by the clock", first.rate, "/s")


def modes() -> Iterator[Row]:
    """Both have changelog and checkpoints in transactions; outputs are part of them, or not."""
    found: dict[bool, list[Pass]] = {True: [], False: []}
    with broker() as started:
        servers = started.bootstrap_servers
        for _ in range(_MODE_ROUNDS):
            for mode, done in found.items():
                done.append(next(passes(servers, "hot", _RECORDS, _KEYS, exactly_once=mode)))
    cpu_s = {mode: median(p.cpu_s for p in done) for mode, done in found.items()}
    time_s = {mode: median(p.s for p in done) for mode, done in found.items()}
    loss = 100 * (1 - cpu_s[False] / cpu_s[True])
    yield at_most("exactly-once below at-least-once, by CPU", loss, 10, "%")
    yield figure("the same, by the clock", 100 * (1 - time_s[False] / time_s[True]), "%")
    yield figure("exactly-once, per core", _RECORDS / cpu_s[True], "/s")
    yield figure("at-least-once, per core", _RECORDS / cpu_s[False], "/s")


SECTIONS = {
    "hot": (
        "Sum and count per key: 1,000,000 JSON records of 10,000 keys, median of 3 by CPU",
        hot,
    ),
    "distinct": (
        "Read-modify-write of 1,000,000 distinct keys in random order, RocksDB's cache 32 MB",
        distinct,
    ),
    "modes": (
        "task.exactly.once=true against false, task.transaction.ms=1000 (medians of 5, in turns)",
        modes,
    ),
}
