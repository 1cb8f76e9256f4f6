"""Failover on a real YARN cluster, and what else may fail while one is under way.

The AM has a node to itself, so that any other may die. The standby holds a failover open: it stands
still when its order to stop arrives.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from am_attempts import jvm_of, page_of
from failover_scenarios import has_no_strays
from standby_jobs import (
    Containers,
    are_apart,
    becomes_calm,
    chosen,
    hosts_of,
    kinds,
    published,
    records_read,
    standby_job,
    standing_still,
)
from yarn_jobs import Job, alive, parent_of, wait_for

from homeport.job_coordinator.model.outcomes import RestoreKind
from homeport.local_cluster.cluster import LocalCluster

AM_ALONE_MB = "16128"
"""Leaves less of a node's memory than one container needs."""
LEFT_ALONE = frozenset({RestoreKind.NONE.value, RestoreKind.TAIL.value})
MANY = 150_000
"""Records whose restore takes long enough to be killed in."""
SHORT_S = 0.02

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalCluster]],
) -> Iterator[LocalCluster]:
    """A node for the AM, one for each of three replicas, and one to go to."""
    with running_cluster("flows", 5, keeps_containers=False) as started:
        yield started


@contextlib.contextmanager
def killed(job: Job, *nodes: str) -> Iterator[None]:
    """The nodes have lost their power; they have it again after the block."""
    for node in nodes:
        job.cluster.kill_node(node)
    try:
        yield
    finally:
        for node in nodes:
            job.cluster.start_node(node)


def deployed(job: Job, scratch: Path, count: int = 600) -> Containers:
    """The job runs, and has counted so many records; no standby is behind."""
    job.produce(count)
    job.run()
    job.wait_until_running()
    job.settled()
    becomes_calm(job, scratch)
    containers = job.containers()
    are_apart(containers)
    assert job.am_host() not in hosts_of(containers).values()
    return containers


def alone(job: Job) -> Job:
    """No container of the job is to be on the AM's node."""
    job.values["yarn.am.container.memory.mb"] = AM_ALONE_MB
    return job


def awaited(job: Job) -> str | None:
    """The standby whose stop a failover waits for."""
    under_way = job.get("v1/status")["failovers"]
    return under_way[0]["waits_for"] if under_way else None


def took_over(job: Job, before: Containers, standby: str) -> Containers:
    """The active runs where that standby was, on its launcher, which has not changed."""
    after = job.wait_until_running()
    job.settled()
    assert after["0"]["host"] == before[standby]["host"]
    assert after["0"]["resource"] == before[standby]["resource"]
    assert kinds(after["0"]) <= LEFT_ALONE
    are_apart(after)
    return after


def ends_well(job: Job) -> None:
    """No process lives that should not, it stops in order, and its history is sound."""
    has_no_strays(job)
    job.end()


def is_behind(job: Job, standby: str, pid: int) -> None:
    """The standby, which stands still, has reported that it is behind: it ran for a moment."""
    for _ in range(50):
        if job.containers()[standby]["lag"]:
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(SHORT_S)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)  # a check-in
    pytest.fail(f"{standby} never reported that it is behind")


def test_the_standby_that_is_least_behind_is_taken_and_then_the_next(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Two replicas, two failovers in a row; no two of a group were ever on one host."""
    job = alone(standby_job(make_job, "replicas", containers=1, replicas=2))
    before = deployed(job, tmp_path)
    assert set(before) == {"0", "0-0", "0-1"}
    slow = before["0-0"]["pid"]
    launcher = parent_of(before["0-1"]["pid"])
    with standing_still(slow):
        job.produce(MANY, first=600, keys=MANY)
        job.counts_all()
        is_behind(job, "0-0", slow)
        wait_for(lambda: job.containers()["0-1"]["lag"] == 0, job)
        with killed(job, before["0"]["host"]):
            wait_for(lambda: chosen(job) == ["0-1"], job)
            os.kill(slow, signal.SIGCONT)
            after = took_over(job, before, "0-1")
            assert parent_of(after["0"]["pid"]) == launcher
            assert records_read(after["0"]) == 0
            assert after["0-0"]["epoch"] == 1
            assert after["0-1"]["host"] not in set(hosts_of(before).values())
            assert published(job) == {"active failures": 1, "failed over to a standby": 1}
            with killed(job, after["0"]["host"]):
                wait_for(lambda: len(chosen(job)) == 2, job)
                second = chosen(job)[1]
                assert second in {"0-0", "0-1"}
                wait_for(lambda: job.containers()["0"]["epoch"] == 3, job)
                wait_for(lambda: job.containers()["0"]["phase"] == "running", job)
                last = job.containers()["0"]
                assert last["host"] == after[str(second)]["host"]
                assert kinds(last) <= LEFT_ALONE
                # Two hosts are left for three.
                assert job.get("v1/status")["job"]["health"] != "deployed"
        third = job.wait_until_running()
    job.settled()
    are_apart(third)
    becomes_calm(job, tmp_path)
    assert published(job) == {"active failures": 2, "failed over to a standby": 2}
    ends_well(job)


def test_a_driver_that_dies_in_a_failover_is_followed_by_one_that_goes_on(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """SIGKILL after the order to the standby: no other choice is made, nothing is lost."""
    job = alone(standby_job(make_job, "driverless", containers=1))
    before = deployed(job, tmp_path)
    launcher = parent_of(before["0-0"]["pid"])
    with killed(job, before["0"]["host"]):
        with standing_still(before["0-0"]["pid"]):
            wait_for(lambda: awaited(job) == "0-0@1", job)
            stated = published(job)
            driver = job.kill_driver()
            wait_for(lambda: job.program("application_master") not in {None, driver}, job)
            wait_for(lambda: awaited(job) == "0-0@1", job)
        after = took_over(job, before, "0-0")
        assert parent_of(after["0"]["pid"]) == launcher
        assert after["0"]["epoch"] == 2
        assert chosen(job) == ["0-0"]
        assert stated + published(job) == {"active failures": 1, "failed over to a standby": 1}
        job.produce(400, first=600)
        becomes_calm(job, tmp_path)
    ends_well(job)


def test_a_standbys_host_that_dies_in_a_failover_leaves_the_active_to_any_host(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """No host has the state any more: it is read in full; the lost choice is counted."""
    job = alone(standby_job(make_job, "refugeless", containers=1))
    before = deployed(job, tmp_path)
    with killed(job, before["0"]["host"]):
        with standing_still(before["0-0"]["pid"]):
            wait_for(lambda: awaited(job) == "0-0@1", job)
            job.cluster.kill_node(before["0-0"]["host"])
        try:
            after = job.wait_until_running()
            job.settled()
            assert not set(hosts_of(after).values()) & set(hosts_of(before).values())
            are_apart(after)
            assert kinds(after["0"]) == {RestoreKind.FULL.value}
            assert chosen(job) == ["0-0", None]
            assert published(job) == {
                "active failures": 1,
                "failed over to a standby": 1,
                "could not be failed to a standby": 1,
                "choices lost": 1,
            }
            job.produce(400, first=600)
            becomes_calm(job, tmp_path)
        finally:
            job.cluster.start_node(before["0-0"]["host"])
    ends_well(job)


def test_a_successor_that_dies_in_its_restore_is_followed_by_the_next(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Its launcher runs the next epoch, which reads what is left; its failure is charged."""
    job = alone(standby_job(make_job, "shot", containers=1))
    before = deployed(job, tmp_path)
    with standing_still(before["0-0"]["pid"]):
        job.produce(MANY, first=600, keys=MANY)
        job.counts_all()
        job.cluster.kill_node(before["0"]["host"])
        try:
            wait_for(lambda: awaited(job) == "0-0@1", job)
            os.kill(before["0-0"]["pid"], signal.SIGCONT)
            victim = restoring(job, 2)
            os.kill(victim, signal.SIGSTOP)
            is_too_late = any(e["epoch"] == 2 for e in job.history("restore-finished"))
            os.kill(victim, signal.SIGKILL)
            assert not is_too_late
            wait_for(lambda: job.containers()["0"]["epoch"] == 3, job)
            after = took_over(job, before, "0-0")
            assert after["0"]["epoch"] == 3
            assert records_read(after["0"]) > 0
            assert published(job) == {"active failures": 2, "failed over to a standby": 1}
            assert chosen(job) == ["0-0"]
            becomes_calm(job, tmp_path)
        finally:
            job.cluster.start_node(before["0"]["host"])
    ends_well(job)


def restoring(job: Job, epoch: int) -> int:
    """The pid of the active container's process of that epoch, which restores its stores."""

    def found() -> list[dict[str, Any]]:
        begun = job.history("restore-started")
        return [e for e in begun if (e["processor_id"], e["epoch"]) == ("0", epoch)]

    wait_for(lambda: bool(found()), job, every_s=SHORT_S)
    return int(found()[0]["pid"])


def test_an_attempt_that_dies_in_a_failover_is_followed_by_one_that_goes_on(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """SIGKILL of the AM's JVM: the next attempt finds the active's home where its standby was."""
    job = standby_job(make_job, "masterless")
    job.produce(600)
    job.run()
    job.wait_until_running()
    job.settled()
    becomes_calm(job, tmp_path)
    before, am_host, attempt = job.containers(), job.am_host(), job.attempt
    moved = next(p for p, c in before.items() if c["role"] == "active" and c["host"] != am_host)
    standby = f"{moved}-0"
    jvm = jvm_of(job)
    with killed(job, before[moved]["host"]):
        with standing_still(before[standby]["pid"]):
            wait_for(lambda: awaited(job) == f"{standby}@1", job)
            stated = published(job)
            os.kill(jvm, signal.SIGKILL)
            # YARN ends what the attempt ran; so no process went on with the failover before that.
            wait_for(lambda: not alive(before[standby]["pid"]), job)
        job.url = page_of(job)
        # One that does not begin in time, by YARN's clock, is followed by a third.
        wait_for(lambda: job.attempt > attempt, job)
        wait_for(lambda: job.get("v1/status")["job"]["held_back"] is not None, job)
        after = job.wait_until_running()
        job.settled()
        are_apart(after)
        assert (after[moved]["host"], after[moved]["epoch"]) == (before[standby]["host"], 2)
        assert kinds(after[moved]) <= LEFT_ALONE
        assert chosen(job, moved) == [standby]
        assert (stated + published(job))["failed over to a standby"] == 1
        assert (stated + published(job))["could not be failed to a standby"] == 0
        job.produce(400, first=600)
        becomes_calm(job, tmp_path)
    ends_well(job)
