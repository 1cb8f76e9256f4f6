"""Hosts that join the cluster of a running job, on a real YARN: homes like any other."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psutil
import pytest
from clusters_under_test import LocalUnderTest
from yarn_jobs import Job, wait_for


@pytest.fixture(scope="module")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalUnderTest]],
) -> Iterator[LocalUnderTest]:
    """Two nodes, which get company."""
    with running_cluster("growing", 2, keeps_containers=False) as started:
        yield started


def _joined(cluster: LocalUnderTest, job: Job) -> str:
    """One node more, which the driver knows."""
    node = cluster.add_node()
    wait_for(lambda: node in job.get("v1/status")["hosts"], job)
    return node


def _called(job: Job, *words: str) -> str:
    done = job.operator(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _later(job: Job, processor: str, epoch: int) -> dict[str, Any]:
    """Its container, once it runs after that epoch."""
    wait_for(lambda: job.containers()[processor]["epoch"] > epoch, job)
    return job.wait_until_running()[processor]


def _comes_home(job: Job, processor: str, host: str) -> None:
    """Its child dies, then its launcher: it runs there again, the second time by a request."""
    for has_launcher in (True, False):
        before = job.wait_until_running()[processor]
        assert before["host"] == host
        child = psutil.Process(before["pid"])
        os.kill(child.pid if has_launcher else child.ppid(), signal.SIGKILL)
        after = _later(job, processor, before["epoch"])
        assert after["host"] == host
        assert (after["resource"] == before["resource"]) == has_launcher


@pytest.mark.long
def test_a_host_that_joined_later_is_a_home_until_another_takes_its_place(
    cluster: LocalUnderTest, make_job: Callable[[str], Job]
) -> None:
    """It gets a container, which comes home; another host, under a new name, takes its place."""
    job = make_job("joined")
    job.values["job.container.count"] = "3"
    job.produce(60)
    job.run()
    before = {p: c["host"] for p, c in job.wait_until_running().items()}
    hosts = list(before.values())
    assert set(hosts) == {"nm1", "nm2"}
    moved = next(p for p, host in before.items() if hosts.count(host) > 1)

    joined = _joined(cluster, job)
    stated = _called(job, "move", moved, joined)
    assert stated == f"SUCCEEDED: {moved}@2 runs on {joined}"
    assert all(c["epoch"] == 1 for p, c in job.containers().items() if p != moved)
    _comes_home(job, moved, joined)
    foreseen = json.loads(_called(job, "what-if", "--host", joined, "--json"))
    (fate,) = foreseen["containers"]
    assert (fate["from"], fate["is_placed"]) == (joined, True)

    # The only host without a container.
    successor = _joined(cluster, job)
    cluster.kill_node(joined)
    wait_for(lambda: job.containers()[moved]["host"] == successor, job)
    _comes_home(job, moved, successor)
    (line,) = job.decisions("LauncherSilent")[-1:]
    assert any(i.startswith("RequestResource") and i.endswith(successor) for i in line)
    homes = {p: c["host"] for p, c in job.wait_until_running().items()}
    job.produce(40, first=60)
    job.expects(100)
    job.end()

    job.run()
    assert {p: c["host"] for p, c in job.wait_until_running().items()} == homes
    assert job.containers()[moved]["host"] == successor
    job.end()
