"""What dies, hangs or wakes up late, on a real YARN cluster: the job survives, its result exact."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from yarn_jobs import Job, alive, pids_of, wait_for

KILLS = 10
LEASE_S = 6.0


def program(job: Job, name: str) -> int | None:
    """The pid of the AM's program of that name; None while there is none."""
    found = [pid for pid, line in pids_of(job.application_id).items() if f".{name}" in line]
    return next((pid for pid in found if alive(pid)), None)


def driver(job: Job) -> int | None:
    """The pid of the job's driver."""
    return program(job, "application_master")


def pids(job: Job) -> dict[str, int]:
    """{processor: pid of its stream container}; empty while not all of them run."""
    containers = job.containers()
    if any(c["phase"] != "running" or c["pid"] is None for c in containers.values()):
        return {}
    return {p: c["pid"] for p, c in containers.items()}


def test_a_driver_that_is_killed_ten_times_disturbs_nobody(make_job: Callable[[str], Job]) -> None:
    """Same port, same model, same containers in the same epochs; not one record twice."""
    job = make_job("undriven")
    job.produce(500)
    job.run()
    job.wait_until_running()
    wait_for(lambda: bool(pids(job)), job)
    before, epochs = pids(job), {p: c["epoch"] for p, c in job.containers().items()}
    version = job.get("v1/status")["job"]["model_version"]
    restored = {p: c["restored"] for p, c in job.containers().items()}
    assert all(restored.values())
    for kill in range(1, KILLS + 1):
        victim = driver(job)
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        job.produce(100, first=400 + 100 * kill)
        wait_for(lambda: pids(job) == before, job)
        assert driver(job) != victim
    job.expects(500 + 100 * KILLS)
    assert {p: c["epoch"] for p, c in job.containers().items()} == epochs
    assert {p: c["restored"] for p, c in job.containers().items()} == restored
    status = job.get("v1/status")
    assert status["job"]["model_version"] == version
    assert status["job"]["attempt"] == 1
    assert status["failures"] == []
    assert job.kill() == f"stopped {job.application_id} in order"


def test_a_driver_that_hangs_is_replaced(make_job: Callable[[str], Job]) -> None:
    """SIGSTOP: no beat for the limit, so the supervisor kills it; the containers run on."""
    job = make_job("hung")
    job.produce(100)
    job.run()
    job.wait_until_running()
    wait_for(lambda: bool(pids(job)), job)
    before, victim = pids(job), driver(job)
    assert victim is not None
    os.kill(victim, signal.SIGSTOP)
    wait_for(lambda: not alive(victim), job)
    wait_for(lambda: pids(job) == before, job)
    job.produce(100, first=100)
    job.expects(200)
    job.kill()


def test_without_keeper_or_launcher_for_a_while_nobody_is_lost(
    make_job: Callable[[str], Job],
) -> None:
    """SIGKILL of the keeper: nobody expires. Of a launcher: its child dies with it, and only that.

    Home is asked while the lease runs on; the permit comes afterwards. Then a launcher stops for
    three leases: its child ends by itself before a successor runs.
    """
    job = make_job("leased")
    job.produce(100)
    job.run()
    job.wait_until_running()
    wait_for(lambda: bool(pids(job)), job)
    before, keeper = pids(job), program(job, "lease_keeper")
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: program(job, "lease_keeper") not in {None, keeper}, job)
    time.sleep(2 * LEASE_S)
    assert pids(job) == before

    child, host = before["0"], job.containers()["0"]["host"]
    os.kill(parent_of(child), signal.SIGKILL)
    wait_for(lambda: not alive(child), job)
    wait_for(lambda: job.containers()["0"]["epoch"] == 2, job)
    job.wait_until_running()
    assert job.containers()["0"]["host"] == host
    # YARN's word that its container ended is no evidence, but reason enough to ask home.
    early = [i for told in job.decisions("ResourceEnded request") for i in told]
    assert [i for i in early if i.startswith("RequestResource") and i.endswith(f" on {host}")]
    wait_for(lambda: bool(pids(job)), job)
    assert {p: pid for p, pid in pids(job).items() if p != "0"} == {
        p: pid for p, pid in before.items() if p != "0"
    }

    child = before["1"]
    launcher = parent_of(child)
    os.kill(launcher, signal.SIGSTOP)
    job.produce(100, first=100)
    time.sleep(LEASE_S)
    assert job.containers()["1"]["epoch"] == 1 or not alive(child)
    wait_for(lambda: not alive(child), job)
    time.sleep(2 * LEASE_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(launcher, signal.SIGCONT)
    wait_for(lambda: job.containers()["1"]["epoch"] == 2, job)
    job.expects(200)
    job.kill()


def parent_of(pid: int) -> int:
    """The pid of its parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
