"""Runs of scripts/bench commit: a broker, an input, and a container's data path on them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.processes import result_of
from benchmarks.report import BenchmarkError, Row, at_least, figure
from homeport.local_cluster.cluster import LocalCluster, remove_abandoned

_PREFIX = "bench-"
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


@contextmanager
def broker() -> Iterator[str]:
    """Bootstrap servers of a Kafka of this run."""
    remove_abandoned(_PREFIX)
    with LocalCluster(f"{_PREFIX}{os.getpid()}", nodes=0) as started:
        yield started.bootstrap_servers


def passes(
    servers: str, kind: str, records: int, keys: int, *, count: int = 1, exactly_once: bool = True
) -> Iterator[Pass]:
    """``count`` passes, each over as much of new input; state and container stay.

    Raises:
        BenchmarkError: the container ended before.
    """
    name = f"commit{next(_NUMBERS)}"
    result_of("commit.input_records", servers, name, "topics")
    mode = str(exactly_once).lower()
    command = [sys.executable, "-m", "benchmarks.commit.job", servers, name, kind, mode, "64"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise BenchmarkError("the process has no pipes")
        try:
            for number in range(1, count + 1):
                size = (str(records), str(keys), str(number))
                result_of("commit.input_records", servers, name, kind, *size)
                process.stdin.write(f"{number * records}\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise BenchmarkError("benchmarks.commit.job ended before it was done")
                yield Pass(records, **json.loads(line))
            process.stdin.close()
            process.wait()
        finally:
            process.kill()


def rows_of(found: Pass, what: str, least: float) -> Iterator[Row]:
    """The rate beside its target, and where it comes from."""
    yield at_least(f"{what}, per core (CPU of all its threads)", found.rate_per_core, least, "/s")
    yield figure(f"{what}, by the clock", found.rate, "/s")
    yield figure("CPU of the container", found.cpu_s, "s")
    yield figure("time", found.s, "s")
    yield figure("transactions", found.transactions, "")
    yield figure("memory of the container at most", found.peak_mb, "MB")
    yield figure("state on the disk", found.state_mb, "MB")
