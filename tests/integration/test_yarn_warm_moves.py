"""Containers of a job on a real YARN cluster move without a pause, under load, and leave a host.

A warm move, to a host without a standby and to that of one; its pause is read from the history and
printed. What a move loses or does twice would show in the counts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from check_history.pauses import pause_before
from check_history.reading import read_jobs
from failover_scenarios import Feed
from standby_jobs import are_apart, standby_job
from yarn_jobs import KEYS, Job, wait_for

_STATE = 60_000


def moved(job: Job, processor: str, *words: str) -> str:
    """What ``homeport move`` prints; it succeeds."""
    done = job.operator("move", processor, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def pause_s(job: Job, epoch: int, processor: str = "0") -> float:
    """From the last transaction of the incarnations before to the first one of this epoch."""
    folders = [job.cluster.state_dir(node) / f"{job.name}-1" for node in job.cluster.nodes]
    events = read_jobs([f for f in folders if f.exists()], "boot", 0)[0].events
    pause = pause_before(events, processor, epoch)
    assert pause is not None
    return pause.ms / 1000


def restored(container: dict[str, Any]) -> int:
    """How many changelog records its last start has read."""
    stores = container["restored"].values()
    return sum(how["records"] for tasks in stores for how in tasks.values())


def test_a_warm_move_under_load_pauses_for_no_restore(
    make_job: Callable[[str], Job], announce: Callable[[str], None]
) -> None:
    """The container reads a tail, not its state, and has counted all exactly."""
    job = make_job("warm")
    job.values |= {"job.container.count": "1", "task.commit.ms": "500"}
    job.produce(_STATE, keys=_STATE)
    job.run()
    job.wait_until_running()
    job.counts_all()
    (home,) = (c["host"] for c in job.containers().values())
    there = next(node for node in ("nm1", "nm2", "nm3") if node != home)
    looked = job.operator("drain", job.am_host(), "--dry-run")
    assert f"the ApplicationMaster runs on {job.am_host()}, and stays there" in looked.stderr
    feed = Feed(job)
    feed.go_on()
    try:
        assert moved(job, "0", there, "--warm") == f"SUCCEEDED: 0@2 runs on {there}"
    finally:
        counts_what_was_fed(job, feed)
    containers = job.containers()
    assert set(containers) == {"0"}
    assert restored(containers["0"]) < _STATE / 10
    job.judge_history()
    announce(f"warm move with {_STATE} keys: pause {pause_s(job, 2):.2f} s")
    localities = job.get("locality")
    assert "warm" not in str(localities)
    assert job.kill() == f"stopped {job.application_id} in order"


def counts_what_was_fed(job: Job, feed: Feed) -> None:
    """No more comes, and all is counted exactly."""
    fed = feed.stop()
    job.produced.update(f"key {number % KEYS}" for number in range(fed))
    job.counts_all()


@pytest.mark.long
def test_a_standby_on_the_destination_gives_way(
    make_job: Callable[[str], Job], announce: Callable[[str], None]
) -> None:
    """It comes to the host that its active has left; no temporary standby is needed."""
    job = standby_job(make_job, "gives-way", containers=1)
    job.produce(_STATE, keys=_STATE)
    job.run()
    job.wait_until_running()
    job.counts_all()
    before = {p: c["host"] for p, c in job.containers().items()}
    feed = Feed(job)
    feed.go_on()
    try:
        said = moved(job, "0", before["0-0"], "--warm")
        assert said == f"SUCCEEDED: 0@2 runs on {before['0-0']}"
        wait_for(lambda: job.containers()["0-0"]["phase"] == "running", job)
    finally:
        counts_what_was_fed(job, feed)
    are_apart(job.containers())
    assert not [e for e in job.history("permit-granted") if e.get("temporary")]
    job.judge_history()
    announce(f"to the host of the standby: pause {pause_s(job, 2):.2f} s")
    job.kill()


@pytest.mark.long
def test_a_host_is_drained_and_comes_back(
    make_job: Callable[[str], Job], announce: Callable[[str], None]
) -> None:
    """Actives leave it warm, standbys cold; none comes there until it is taken back."""
    job = standby_job(make_job, "drained", containers=2)
    job.produce(_STATE, keys=_STATE)
    job.run()
    before = job.wait_until_running()
    job.counts_all()
    host = before["0"]["host"]
    there = sorted(p for p, c in before.items() if c["host"] == host)
    looked = job.operator("drain", host, "--dry-run")
    assert looked.returncode == 0
    assert "all can be placed" in looked.stdout
    assert job.get("v1/status")["drained_hosts"] == []
    feed = Feed(job)
    feed.go_on()
    try:
        done = homeport(job, "drain", host)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == f"{host} has no container of the job"
        assert job.get("v1/status")["drained_hosts"] == [host]
    finally:
        counts_what_was_fed(job, feed)
    job.wait_until_running()
    containers = job.containers()
    assert host not in {c["host"] for c in containers.values()}
    are_apart(containers)
    other = containers["0"]["host"]
    refused = homeport(job, "drain", other)
    assert (refused.returncode, "have no place for" in refused.stderr) == (1, True)
    assert f"homeport drain {host} --undo" in job.operator("move", "0", host).stderr
    job.judge_history()
    for processor in sorted(set(there) & {"0", "1"}):
        epoch = containers[processor]["epoch"]
        announce(f"{processor} left {host}: pause {pause_s(job, epoch, processor):.2f} s")
    assert job.operator("drain", host, "--undo").returncode == 0
    wait_for(lambda: job.get("v1/status")["drained_hosts"] == [], job)
    assert moved(job, "0", host, "--warm").endswith(f"runs on {host}")
    job.kill()


def homeport(job: Job, *words: str) -> subprocess.CompletedProcess[str]:
    """The operator's tool about this job, with time for moves."""
    module = "homeport.job_coordinator.cli.homeport"
    return subprocess.run(
        [sys.executable, "-m", module, *words, f"--config-path={job.path}"],
        env=job.environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.long
@pytest.mark.parametrize("step", ["reserving", "warming", "giving-way", "moving"])
def test_a_driver_that_dies_in_a_warm_move_has_a_successor_that_ends_it(
    make_job: Callable[[str], Job], step: str
) -> None:
    """Wherever it was: the move has one answer, the result is exact."""
    job = make_job(f"dies-{step}")
    job.values |= {"job.container.count": "1", "task.commit.ms": "500"}
    job.produce(_STATE, keys=_STATE)
    job.run()
    job.wait_until_running()
    job.counts_all()
    (home,) = (c["host"] for c in job.containers().values())
    there = next(node for node in ("nm1", "nm2", "nm3") if node != home)
    feed = Feed(job)
    feed.go_on()
    try:
        module = "homeport.job_coordinator.cli.homeport"
        words = ["move", "0", there, "--warm", "--expiry-ms=60000", f"--config-path={job.path}"]
        tool = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            env=job.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: step in _steps(job), job, every_s=0.02)
        driver = job.program("application_master")
        assert driver is not None
        os.kill(driver, signal.SIGKILL)
        out, err = tool.communicate(timeout=180)
        assert tool.returncode == 0, err
        assert out.strip().endswith(f"runs on {there}")
    finally:
        counts_what_was_fed(job, feed)
    assert set(job.containers()) == {"0"}
    job.judge_history()
    job.kill()


def _steps(job: Job) -> list[str]:
    return [p["step"] for p in job.get("v1/status")["placements"]]
