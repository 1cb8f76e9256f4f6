"""A job in one Python file on YARN, and a job that moves there from a properties file."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from yarn_jobs import KEYS, Job, wait_for

_FILE = """
from homeport import Job

job = Job({name!r}, kafka={kafka!r}, containers=3, keys={keys!r})
source = job.input("{name}-in", key=str)
counts = job.store("counts", key=str, value=object, changelog="{name}-counts")


@job.each(source)
def count(key: str, _value: bytes) -> None:
    counts[key] = counts.get(key, 0) + 1
"""
_DECLARED = ("job.name", "systems.kafka.consumer.", "stores.", "task.", "yarn.package.path")


def test_a_job_moves_from_a_properties_file_to_a_python_file(
    make_job: Callable[[str], Job],
) -> None:
    """Its state goes along: what both counted is exact, over SIGKILL of a container.

    `run-job` ships the file alone as the job's package.
    """
    job = make_job("one-file")
    job.begin(300)
    job.expects(300)
    job.kill()
    keys = {key: v for key, v in job.values.items() if not key.startswith(_DECLARED)}
    job.path = job.path.with_name("one_file.py")
    job.text = _FILE.format(name=job.name, kafka=job.servers, keys=keys)
    job.produce(300, first=300)
    job.run()
    pids = job.settled()
    os.kill(pids["1"], signal.SIGKILL)
    job.produce(300, first=600)
    wait_for(lambda: job.pids().get("1", pids["1"]) != pids["1"], job)
    job.expects(900)
    assert len(job.counts()) == KEYS
    shown = job.operator("config", "show")
    assert f"task.class={job.path.stem}:job" in shown.stdout.splitlines()
    job.end()
