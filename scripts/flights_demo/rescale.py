"""The running job gets more containers, then fewer, by one key (``scripts/demo --rescale``).

No application is submitted again: ``coordinator-stream-writer`` writes ``job.container.count``, and
the job follows. Its driver is killed in the middle of each change.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from flights_demo.common import await_that
from flights_demo.job import DemoJob
from flights_demo.screen import DemoError, Screen
from flights_demo.verdict import Reader, key_written_s
from homeport.job_coordinator.program_names import DRIVER
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.testing.program_search import find_programs

KEY = "job.container.count"
COUNTS = (5, 2)
SECONDS = 400
"""For so long, roughly, input should come, on a slow machine too; then the rest comes at once."""

_POLL_S = 0.02


class Rescale:
    """Changes of the number of containers, one after the other."""

    def __init__(self, cluster: LocalCluster, job: DemoJob, reader: Reader, screen: Screen) -> None:
        self._reader = reader
        self._cluster = cluster
        self._job = job
        self._screen = screen
        self.verdicts: list[tuple[str, bool]] = []

    def to(self, count: int) -> None:
        """The job has so many containers, and all of them work.

        Raises:
            DemoError: it does not come to that.
        """
        before, begun = self._job.get(""), self._job.epochs()
        with self._job.writing_key(KEY, str(count)):
            self._await(lambda: len(self._job.get("")["containers"]) == count, "the new JobModel")
            visible_s = time.time()
        self._kill_driver()
        written_s = key_written_s(self._reader, KEY)
        self._job.count = count
        self._job.wait_until_running(self._screen.progress)
        took_s = time.time() - written_s
        after, now = self._job.get(""), self._job.epochs()
        self._screen.say(
            f"{count} containers: at GET / {visible_s - written_s:.2f} s after the record of the "
            f"key was written, all at work after {took_s:.1f} s"
        )
        self._compare(len(before["containers"]), before, after, begun, now)

    def _compare(
        self,
        was: int,
        before: dict[str, Any],
        after: dict[str, Any],
        begun: dict[str, int],
        now: dict[str, int],
    ) -> None:
        """Each container with other tasks than before was restarted, and no other."""
        old, new = before["containers"], after["containers"]
        rows: list[tuple[str, ...]] = [("processor", "tasks before", "tasks now", "was restarted")]
        exact = True
        for processor in sorted({*old, *new}):
            had, has = (set(m.get(processor, {}).get("tasks", {})) for m in (old, new))
            if processor in old and processor in new:
                is_restarted = begun[processor] != now[processor]
                exact &= is_restarted == (had != has)
                stated = "yes" if is_restarted else "no"
            else:
                stated = "new" if processor in new else "gone"
            rows.append((processor, _tasks(had), _tasks(has), stated))
        self._screen.table(f"{was} -> {len(new)} containers", rows)
        self.verdicts.append(
            (
                f"{was} -> {len(new)} containers: only those whose tasks changed were restarted",
                exact and set(now) == set(new),
            )
        )

    def _kill_driver(self) -> None:
        drivers = find_programs(self._cluster, DRIVER)
        for process in drivers:
            processes.send(process, signal.SIGKILL)
        if not drivers:
            raise DemoError("no driver was found that could be killed")
        pids = ", ".join(str(p.pid) for p in drivers)
        self._screen.say(f"SIGKILL of the driver, pid {pids}, in the middle of the change")

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        await_that(condition, what, self._screen, _POLL_S)


def _tasks(names: set[str]) -> str:
    numbers = sorted(name.removeprefix("Partition ") for name in names)
    return " ".join(numbers) or "-"
