"""What a container samples of its own process, against the process itself."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from homeport.config.settings.memory_rule import divide
from homeport.container.host.resident_memory import resident_bytes
from homeport.container.reporting.process_figures import (
    CollectorClock,
    collections,
    held_inputs,
    input_path,
    memory,
    task_lags,
)
from homeport.container.spark.session import LocalSpark
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from homeport.job_coordinator.status.figures import FIGURES, Sample

MIB = 1024 * 1024


def jvm(pid: int, found: tuple[int, int] | None = (3, 1500)) -> LocalSpark:
    """Stands for the JVM: a process, and its answer."""
    return cast("LocalSpark", SimpleNamespace(pid=pid, collections=lambda: found))


def values(samples: Iterator[Sample]) -> dict[tuple[str, ...], float]:
    """{(name, labels...): value}; each has the labels that its figure declares."""
    found = {}
    for sample in samples:
        assert len(sample.labels) == len(FIGURES[sample.name].labels)
        found[(sample.name, *sample.labels)] = sample.value
    return found


def test_collections_are_counted_while_the_clock_runs() -> None:
    """None before its start and after its stop; the time of each is added."""
    ticks = iter(range(100))
    clock = CollectorClock(lambda: float(next(ticks)))
    gc.collect()
    assert clock.times == 0
    clock.start()
    gc.collect()
    counted = clock.times
    assert counted >= 1
    clock.stop()
    clock.stop()
    gc.collect()
    assert (clock.times, clock.seconds) == (counted, counted)
    assert values(collections(clock, jvm(1)))["gc_seconds", "jvm"] == 1.5
    assert values(collections(clock, jvm(1)))["gc_collections", "jvm"] == 3
    without = values(collections(clock, jvm(1, None)))
    assert without == values(collections(clock, None))
    assert without == {("gc_collections", "python"): counted, ("gc_seconds", "python"): counted}


SLEEPS = "import time; print(flush=True); time.sleep(60)"
STARTS_ONE = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{SLEEPS}'])"


def test_memory_is_what_the_processes_hold_beside_their_shares() -> None:
    """Python's own, that of a JVM, that of what the JVM started; RocksDB's share is Python's."""
    shares = divide(1536, has_pipeline=True)
    child = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE], start_new_session=True, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        # Both have begun their programs: a process that is just made holds next to nothing.
        assert child.stdout.readline() == b"\n"
        found = values(memory(jvm(child.pid), shares))
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()
    assert found["memory_bytes", "python"] > MIB
    assert found["memory_bytes", "jvm"] > MIB
    assert found["memory_bytes", "workers"] > MIB
    assert found["memory_share_bytes", "python"] == (384 + 192) * MIB
    assert found["memory_share_bytes", "jvm"] == (672 + 256) * MIB
    alone = values(memory(None, divide(1536, has_pipeline=False)))
    assert {key for key, *_ in alone} == {"memory_bytes", "memory_share_bytes"}
    assert {part for _, part in alone} == {"python"}
    assert [sample.name for sample in memory(None, None)] == ["memory_bytes"]
    assert resident_bytes(child.pid) == 0  # it has ended
    assert resident_bytes(os.getpid()) > 0


class Source:
    """Stands for the input: how far it is read, and where it ends."""

    def __init__(self, lags: Mapping[SystemStreamPartition, int | None]) -> None:
        self.lags = lags
        self.following = dict.fromkeys(lags, 0)
        self.is_native = True
        self.held: Callable[[], Mapping[SystemStreamPartition, float]] = dict

    def lag_of(self, partitions: Sequence[SystemStreamPartition]) -> int | None:
        """The sum; None where one is not known."""
        found = [self.lags[ssp] for ssp in partitions]
        return None if None in found else sum(lag or 0 for lag in found)


def test_each_task_has_the_lag_of_its_input() -> None:
    """Of what the container reads; a task with an unknown head has none."""
    a, b, c, fed = (SystemStreamPartition("kafka", name, 0) for name in "abcf")
    tasks = [TaskModel(TaskName("one"), (a, b, fed), 0), TaskModel(TaskName("two"), (c,), 1)]
    source = Source({a: 3, b: 4, c: None})
    found = values(task_lags(tasks, source))  # type: ignore[arg-type]  # stands for the consumer
    assert found == {("task_input_lag_records", "one"): 7}


@pytest.mark.parametrize("is_native", [True, False])
def test_the_path_of_input_is_shown(*, is_native: bool) -> None:
    """Where the library is missing, each record takes more CPU."""
    source = Source({})
    source.is_native = is_native
    found = values(input_path(source))  # type: ignore[arg-type]  # stands for the consumer
    assert found == {("input_native",): float(is_native)}


def test_a_partition_behind_an_open_transaction_has_its_time() -> None:
    """Others have none."""
    source = Source({})
    source.held = lambda: {SystemStreamPartition("kafka", "in", 3): 12.5}
    found = values(held_inputs(source))  # type: ignore[arg-type]  # stands for the consumer
    assert found == {("input_held_seconds", "kafka.in", "3"): 12.5}
