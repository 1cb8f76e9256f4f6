"""The running job gets more containers, then fewer, by one key (``scripts/demo --rescale``).

No application is submitted again: ``coordinator-stream-writer`` writes ``job.container.count``, and
the job follows. Containers that stay keep their processes. The driver is killed in the middle of
the second change, and the next one does not know that they may.
"""

from __future__ import annotations

import signal
import time

from flights_demo.screen import DemoError
from flights_demo.story import Containers, Story
from flights_demo.tasks import Tasks, active_tasks
from flights_demo.verdict import key_written_s
from homeport.job_coordinator.program_names import DRIVER
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.testing.program_search import find_programs

KEY = "job.container.count"
COUNTS = (5, 2)
_POLL_S = 0.02
_HEAD = ("processor", "tasks before", "tasks now", "work began again", "process before", "now")


class Rescale(Story):
    """Changes of the number of containers, one after the other."""

    SECONDS = 400
    CAME = "input came during both changes"

    def play(self) -> None:
        """The job has had each count of containers, and all of them work."""
        for count in COUNTS:
            with self.screen.phase(f"{self.job.count} -> {count} containers"):
                self._to(count, kills=count == COUNTS[-1])

    def _to(self, count: int, *, kills: bool) -> None:
        model, before = self.job.get(""), self.containers()
        with self.job.writing_key(KEY, str(count)):
            self.wait_for("the new JobModel", lambda: self._is_dealt_to(count), _POLL_S)
            visible_s = time.time()
        if kills:
            self._kill_driver()
        written_s = key_written_s(self.reader, KEY)
        self.job.count = count
        self.job.wait_until_running(self.screen.progress)
        took_s = time.time() - written_s
        self.screen.say(
            f"{count} containers: at GET / {visible_s - written_s:.2f} s after the record of the "
            f"key was written, all at work after {took_s:.1f} s"
        )
        lived = self._compare(active_tasks(model), active_tasks(self.job.get("")), before)
        if not kills:
            self.judge(f"to {count} containers: none that stays has a new process", held=lived)

    def _is_dealt_to(self, count: int) -> bool:
        """Return whether so many containers have tasks; a mixed one may read ahead first."""
        tasks = active_tasks(self.job.get(""))
        return len(tasks) == count and all(tasks.values())

    def _compare(self, old: Tasks, new: Tasks, before: Containers) -> bool:
        """Judge whose work began again; return whether the processes of all that stay lived on."""
        now = self.containers()
        rows: list[tuple[str, ...]] = [_HEAD]
        exact = lives = True
        for processor in sorted({*old, *new}):
            had, has = (tasks.get(processor, set()) for tasks in (old, new))
            pids = tuple(str(c.get(processor, {}).get("pid", "-")) for c in (before, now))
            if processor in old and processor in new:
                is_begun = before[processor]["epoch"] != now[processor]["epoch"]
                exact &= is_begun == (had != has)
                lives &= before[processor]["pid"] == now[processor]["pid"]
                stated = "yes" if is_begun else "no"
            else:
                stated = "new" if processor in new else "gone"
            rows.append((processor, _tasks(had), _tasks(has), stated, *pids))
        change = f"{len(old)} -> {len(new)} containers"
        self.screen.table(change, rows)
        text = f"{change}: work began again only where tasks changed"
        self.judge(text, held=exact and set(now) == set(new))
        return lives

    def _kill_driver(self) -> None:
        assert isinstance(self.cluster, LocalCluster)  # noqa: S101 - the options see to it
        drivers = find_programs(self.cluster, DRIVER)
        for process in drivers:
            processes.send(process, signal.SIGKILL)
        if not drivers:
            raise DemoError("no driver was found that could be killed")
        pids = ", ".join(str(p.pid) for p in drivers)
        self.screen.say(f"SIGKILL of the driver, pid {pids}, in the middle of the change")


def _tasks(names: set[str]) -> str:
    numbers = sorted(name.removeprefix("Partition ") for name in names)
    return " ".join(numbers) or "-"
