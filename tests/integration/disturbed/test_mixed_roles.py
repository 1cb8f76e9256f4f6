"""Containers with active and standby tasks, on a real YARN: a failover stops no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from clusters_under_test import LocalUnderTest
from yarn_jobs import Job, wait_for

MIXED = {
    "job.container.count": "3",
    "job.standbytasks.replication.factor": "2",
    "job.container.mixed-roles": "true",
}


@pytest.fixture(scope="module")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalUnderTest]],
) -> Iterator[LocalUnderTest]:
    """Three nodes; a test kills one."""
    with running_cluster("mixed", 3, keeps_containers=False) as started:
        yield started


def tasks_by_mode(job: Job) -> dict[str, tuple[set[str], set[str]]]:
    """Return {container: its active tasks, the tasks of its standbys}."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for processor, container in job.get("")["containers"].items():
        tasks: list[dict[str, Any]] = list(container["tasks"].values())
        active = {t["task-name"] for t in tasks if t["task-mode"] == "Active"}
        standby = {t["task-name"] for t in tasks if t["task-mode"] == "Standby"}
        found[processor] = active, {n.removeprefix("Standby-").rsplit("-", 1)[0] for n in standby}
    return found


def are_dealt(job: Job) -> bool:
    """Whether each active task has a standby in another container."""
    tasks = tasks_by_mode(job)
    active = {name: p for p, (own, _) in tasks.items() for name in own}
    standby = {name: p for p, (_, own) in tasks.items() for name in own}
    return active.keys() == standby.keys() and all(active[n] != standby[n] for n in active)


def test_the_tasks_of_a_lost_host_go_on_where_their_standbys_are(
    cluster: LocalUnderTest, make_job: Callable[[str], Job]
) -> None:
    """In the processes that run; the lost container comes back with standbys alone."""
    job = make_job("mixed")
    job.values.update(MIXED)
    job.produce(60)
    job.run()
    before = job.wait_until_running()
    assert {c["host"] for c in before.values()} == {"nm1", "nm2", "nm3"}
    wait_for(lambda: are_dealt(job), job)
    pids, tasks = job.pids(), tasks_by_mode(job)
    am = job.am_host()
    lost = next(p for p, c in before.items() if c["host"] != am)
    cluster.kill_node(before[lost]["host"])
    others = sorted(before.keys() - {lost})
    moved = tasks[lost][0]
    wait_for(lambda: not moved & tasks_by_mode(job)[lost][0], job)
    job.produce(40, first=60)
    job.expects(100)
    job.wait_until_running()
    after = tasks_by_mode(job)
    assert {p: job.pids()[p] for p in others} == {p: pids[p] for p in others}
    for processor in others:
        gained = after[processor][0] - tasks[processor][0]
        assert gained <= tasks[processor][1], "a task went where no standby of it was"
    job.judge_history()
    job.end()
