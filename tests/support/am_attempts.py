"""The AM's processes on a real YARN cluster, and the attempt that follows on their death."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

from yarn_jobs import Job, alive, pids_of, wait_for

APPLICATION_MASTER = "com.anaconda.skein.ApplicationMaster"
_PROGRAMS = (".supervisor", ".lease_keeper", ".application_master")


def programs(job: Job, *names: str) -> list[int]:
    """The living processes of the application whose command line has one of the names."""
    found = pids_of(job.application_id).items()
    return [p for p, line in found if any(n in line for n in names) and alive(p)]


def jvm_of(job: Job) -> int:
    """The pid of the JVM that asks YARN for the job's containers, not of a shell around it."""
    found = pids_of(job.application_id).items()
    return next(pid for pid, line in found if APPLICATION_MASTER in line and "bash" not in line)


def page_of(job: Job) -> str:
    """YARN's page of the application, which leads to the attempt that runs."""
    return f"{job.cluster.rm_url}/proxy/{job.application_id}/pages/homeport/"


def kill_am(job: Job) -> None:
    """SIGKILL of every process in the AM's container."""
    for pid in programs(job, APPLICATION_MASTER, *_PROGRAMS):
        with contextlib.suppress(ProcessLookupError):  # it may go with its parent
            os.kill(pid, signal.SIGKILL)


def job_of_attempt(job: Job, attempt: int) -> dict[str, Any]:
    """What the status of that attempt says of the job, once its driver answers.

    It answers elsewhere than the last one; YARN's page of the application leads there.
    """
    job.url = page_of(job)
    wait_for(lambda: job.attempt == attempt, job)
    wait_for(lambda: job.get("v1/status")["job"]["held_back"] is not None, job)
    return dict(job.get("v1/status")["job"])
