"""Warm moves of a job on a real YARN cluster: what tests of them share.

A job is fed while it is moved; what a move loses or does twice would show in its counts. Pauses are
read from the history.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from check_history.pauses import pause_before
from check_history.reading import read_jobs
from failover_scenarios import Feed
from yarn_jobs import KEYS, Job

STATE = 60_000
"""Keys of the state that a move reads."""
_TOOL_S = 180


def with_state(make_job: Callable[[str], Job], name: str, **values: str) -> tuple[Job, str]:
    """A job of one container that runs and has its state, and a host that it can be moved to."""
    job = make_job(name)
    job.values |= {"job.container.count": "1", "task.commit.ms": "500", **values}
    runs_with_state(job)
    return job, elsewhere(job)


def runs_with_state(job: Job) -> None:
    """The job runs and has counted ``STATE`` keys."""
    job.produce(STATE, keys=STATE)
    job.run()
    job.wait_until_running()
    job.counts_all()


def elsewhere(job: Job) -> str:
    """A host on which no container of the job is."""
    taken = {container["host"] for container in job.containers().values()}
    return next(node for node in ("nm1", "nm2", "nm3") if node not in taken)


@contextlib.contextmanager
def under_load(job: Job) -> Iterator[None]:
    """Input comes all the while; afterwards no more comes, and all is counted exactly."""
    feed = Feed(job)
    feed.go_on()
    try:
        yield
    finally:
        fed = feed.stop()
        job.produced.update(f"key {number % KEYS}" for number in range(fed))
        job.counts_all()


def moved(job: Job, processor: str, *words: str) -> str:
    """What ``homeport move`` prints; it succeeds."""
    done = homeport(job, "move", processor, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def homeport(job: Job, *words: str) -> subprocess.CompletedProcess[str]:
    """The operator's tool about this job, with time for moves."""
    return job.operator(*words, limit_s=_TOOL_S)


def moving(job: Job, there: str, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """The command that moves processor 0 there warm, while it waits; ended afterwards."""
    return job.operating("move", "0", there, "--warm", *words)


def succeeds(tool: subprocess.Popen[str], there: str) -> None:
    """The command ends, with the answer that the container runs there."""
    out, err = tool.communicate(timeout=_TOOL_S)
    assert tool.returncode == 0, err
    assert out.strip().endswith(f"runs on {there}")


def steps(job: Job) -> list[str]:
    """How far each move under way is."""
    return [placement["step"] for placement in job.get("v1/status")["placements"]]


def answers(job: Job) -> list[str]:
    """What the driver has answered to commands, by its history."""
    return [event["message"] for event in job.driver_events("placement-answered")]


def pause_s(job: Job, epoch: int, processor: str = "0") -> float:
    """From the last transaction of the incarnations before to the first one of this epoch."""
    folders = [job.cluster.state_dir(node) / f"{job.name}-1" for node in job.cluster.nodes]
    events = read_jobs([f for f in folders if f.exists()], "boot", 0)[0].events
    pause = pause_before(events, processor, epoch)
    assert pause is not None
    return pause.ms / 1000
