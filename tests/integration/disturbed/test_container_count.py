"""The number of containers of a job with state changes on a real YARN, beside deaths."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adjunct_planes import logs_of
from am_attempts import job_of_attempt, kill_am
from yarn_jobs import TASK, Job, alive, wait_for

ONE_FOR_A_NODE_MB = "9000"
BLOCKING = (
    TASK
    + """
import os
import time
from pathlib import Path

class Blocking(Count):
    def init(self, context):
        super().init(context)
        self.block = Path(context.config["my.block"])

    def process_batch(self, table, collector):
        super().process_batch(table, collector)
        while self.block.exists() and self.block.read_text() == str(os.getpid()):
            Path(f"{self.block}.{os.getpid()}").touch()
            time.sleep(0.05)  # blocked until the test removes the file
"""
)


class Changing:
    """A job whose number of containers changes while records come."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.block = folder / "block"
        (job.package / "probe_task.py").write_text(BLOCKING)
        job.values |= {
            "job.container.count": "2",
            "task.class": "probe_task:Blocking",
            "task.commit.ms": "500",
            "my.block": str(self.block),
        }

    def produce(self) -> None:
        """Some records come."""
        self.job.produce(20, first=self.job.produced.total())

    def set_count(self, count: int) -> dict[str, int]:
        """The operator sets it; the epochs before."""
        epochs = {p: c["epoch"] for p, c in self.job.containers().items()}
        done = self.job.operator("config", "set", "job.container.count", str(count))
        assert done.returncode == 0, done.stderr
        return epochs

    def arrives(self, count: int, epochs: dict[str, int]) -> dict[str, int]:
        """So many run, in new epochs, while records come: {processor: pid}."""

        def has_arrived() -> bool:
            self.produce()
            found = self.job.containers()
            later = [c["epoch"] > epochs.get(p, 0) for p, c in found.items()]
            return len(later) == count and all(later) and bool(self.job.pids())

        wait_for(has_arrived, self.job)
        return self.job.pids()

    def hold(self, pid: int) -> None:
        """That container does not return from the code of its task."""
        self.block.write_text(str(pid))

        def is_held() -> bool:
            self.produce()
            return Path(f"{self.block}.{pid}").exists()

        wait_for(is_held, self.job)

    def rests_without_a_driver(self, processor: str, pid: int, count: int) -> dict[str, int]:
        """The driver stands still when the container has let go, and its process rests."""
        self.hold(pid)
        epochs = self.set_count(count)
        wait_for(lambda: self.job.containers()[processor]["phase"] == "stopping", self.job)
        driver = self.job.program("application_master")
        assert driver is not None
        os.kill(driver, signal.SIGSTOP)
        self.block.unlink()
        wait_for(lambda: (processor, epochs[processor]) in self.resting(), self.job)
        assert alive(pid)
        return epochs

    def resting(self) -> set[tuple[str, int]]:
        """The incarnations whose process went on without them."""
        stops = self.job.history("child-stopped")
        return {(x["processor_id"], x["epoch"]) for x in stops if x.get("rests")}


@pytest.fixture
def changing(make_job: Callable[[str], Job], tmp_path: Path) -> Callable[[str], Changing]:
    """A job of that name, not yet submitted."""
    return lambda name: Changing(make_job(name), tmp_path)


def test_a_change_of_the_number_of_containers_ends_no_process(
    changing: Callable[[str], Changing],
) -> None:
    """2 to 3 to 2 while records come: processes stay, and each record counts once.

    Each run but a process's first reads the coordinator stream on from where the one before stood.
    Then one does not return from its task's code: it is killed, and its tasks go on.
    """
    change = changing("rescaled")
    job = change.job
    job.values["task.shutdown.ms"] = "3000"
    before = job.begin(300)
    grown = change.arrives(3, change.set_count(3))
    assert {p: grown[p] for p in before} == before
    shrunk = change.arrives(2, change.set_count(2))
    assert shrunk == before
    job.counts_all()
    logs = logs_of(job, [f"container-{processor}-*.log" for processor in before])
    rests = [log.count(" rests\n") for log in logs]
    assert [log.count("the coordinator stream is read on") for log in logs] == rests
    assert sum(rests) >= 2  # one to grow, one to shrink

    change.hold(before["0"])
    after = change.arrives(3, change.set_count(3))
    assert after["0"] != before["0"]
    assert after["1"] == before["1"]
    job.counts_all()
    job.end()


@pytest.mark.long
def test_a_driver_or_a_resting_process_dies_before_the_next_permit(
    changing: Callable[[str], Changing],
) -> None:
    """The next driver gives the permit to the process that rests; without one, to another."""
    change = changing("rested")
    job = change.job
    before = job.begin(300)
    epochs = change.rests_without_a_driver("0", before["0"], 3)
    job.kill_driver()
    after = change.arrives(3, epochs)
    assert after["0"] == before["0"]
    job.counts_all()

    epochs = change.rests_without_a_driver("0", after["0"], 2)
    os.kill(after["0"], signal.SIGKILL)
    job.kill_driver()
    last = change.arrives(2, epochs)
    assert last["0"] != after["0"]
    job.counts_all()
    job.end()


@pytest.mark.long
def test_without_room_tasks_go_on_where_they_are(changing: Callable[[str], Changing]) -> None:
    """The status has the reason, also after driver and AM have died; then people take it back."""
    change = changing("roomless")
    job = change.job
    job.values["cluster-manager.container.memory.mb"] = ONE_FOR_A_NODE_MB
    job.values["job.container.count"] = "3"
    before = job.begin(300)
    epochs = change.set_count(4)
    wait_for(lambda: _waits(job, "3"), job)
    change.produce()
    job.counts_all()
    assert {p: c["epoch"] for p, c in job.containers().items() if p != "3"} == epochs

    job.kill_driver()
    wait_for(lambda: _waits(job, "3"), job)
    change.produce()
    job.counts_all()
    assert all(alive(pid) for pid in before.values())
    kill_am(job)
    job_of_attempt(job, 2)

    change.arrives(3, change.set_count(3))
    job.counts_all()
    job.end()


def _waits(job: Job, processor: str) -> bool:
    """Whether the status shows that it waits, and its reason."""
    waiting: dict[str, Any] | None = job.get("v1/status")["waiting"]
    return waiting is not None and processor in {w["processor_id"] for w in waiting["processors"]}
