"""Containers with active and standby tasks, on a real YARN: a failover stops no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from clusters_under_test import LocalUnderTest
from standby_jobs import records_read
from warm_moves import STATE, elsewhere, homeport, moved, pause_s, runs_with_state, under_load
from yarn_jobs import PARTITIONS, Job, wait_for

from homeport.job_coordinator.model.outcomes import RestoreKind

MIXED = {
    "job.container.count": "3",
    "job.standbytasks.replication.factor": "2",
    "job.container.mixed-roles": "true",
}
ON_TWO_HOSTS = {
    **MIXED,
    "job.container.count": "2",
    "cluster-manager.container.memory.mb": "9000",  # one for each node
    "cluster-manager.warm-move.max.records": "100",
}
KEYS_OF_STATE = 20_000
WARM = {"none", "tail"}
"""How a store is restored that has its state."""


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


def restored(job: Job, processor: str) -> dict[str, dict[str, Any]]:
    """Return {task: how its store was restored} of the container's last start."""
    found: dict[str, dict[str, Any]] = job.containers()[processor]["restored"]["counts"]
    return found


@pytest.mark.usefixtures("cluster")
def test_tasks_that_move_have_read_their_state_where_they_go(
    make_job: Callable[[str], Job],
) -> None:
    """To a new container, and back from it: a tail is restored, and no process ends."""
    job = make_job("ahead")
    job.values |= ON_TWO_HOSTS
    job.produce(KEYS_OF_STATE, keys=KEYS_OF_STATE)
    job.run()
    pids = job.settled()
    wait_for(lambda: are_dealt(job), job)
    job.counts_all()
    assert job.operator("config", "set", "job.container.count", "3").returncode == 0
    wait_for(lambda: bool(tasks_by_mode(job).get("2", (set(),))[0]), job)
    job.produce(500, first=KEYS_OF_STATE, keys=KEYS_OF_STATE)
    job.counts_all()
    job.wait_until_running()
    moved = tasks_by_mode(job)["2"][0]
    (event,) = job.driver_events("read-ahead")
    assert (set(event["tasks"]), event["late"]) == (moved, [])
    how = restored(job, "2")
    assert {how[task]["kind"] for task in moved} <= WARM, how
    assert sum(how[task]["records"] for task in moved) <= 100 * len(moved), how
    assert {p: job.pids()[p] for p in pids} == pids

    assert job.operator("config", "set", "job.container.count", "2").returncode == 0
    wait_for(lambda: tasks_by_mode(job).keys() == pids.keys(), job)
    job.produce(500, first=KEYS_OF_STATE + 500, keys=KEYS_OF_STATE)
    job.counts_all()
    job.wait_until_running()
    for processor, (own, _) in tasks_by_mode(job).items():
        how = restored(job, processor)
        assert {how[task]["kind"] for task in own & moved} <= WARM, how
    assert {p: job.pids()[p] for p in pids} == pids


def _redeployed(job: Job, mixed: str) -> None:
    """The job has ended in order and runs again; no store of a task was restored whole."""
    assert job.kill() == f"stopped {job.application_id} in order"
    seen = len(job.history("restore-finished"))
    job.values["job.container.mixed-roles"] = mixed
    job.run()
    job.settled()
    wait_for(lambda: are_dealt(job), job)
    wait_for(lambda: None not in _lags(job), job)
    found = job.history("restore-finished")[seen:]
    assert {how["task"] for how in found} >= {f"Partition {p}" for p in range(PARTITIONS)}
    whole = sorted({how["task"] for how in found if how["kind"] == RestoreKind.FULL.value})
    assert not whole, f"restored whole with mixed-roles={mixed}: {whole}"


def _lags(job: Job) -> list[int | None]:
    """How far each standby is behind: of containers, or of tasks beside others."""
    containers = list(job.containers().values())
    own = [c["lag"] for c in containers if c["replica_of"] is not None]
    return own + [standby["lag"] for c in containers for standby in c["standbys"]]


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
def test_a_job_changes_over_and_back_with_its_state(make_job: Callable[[str], Job]) -> None:
    """By two redeployments: the stores on the hosts serve both, and no key is counted wrong."""
    job = make_job("over")
    job.values.update(MIXED | {"job.container.mixed-roles": "false"})
    job.produce(600)
    job.run()
    assert set(job.settled()) == {"0", "1", "2", "0-0", "1-0", "2-0"}
    wait_for(lambda: None not in _lags(job), job)
    job.expects(600)
    _redeployed(job, "true")
    assert set(job.pids()) == {"0", "1", "2"}
    job.produce(40, first=600)
    job.expects(640)
    _redeployed(job, "false")
    assert set(job.pids()) == {"0", "1", "2", "0-0", "1-0", "2-0"}
    job.produce(40, first=640)
    job.expects(680)
    job.end()


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
def test_a_mixed_container_moves_warm_and_leaves_a_host(
    make_job: Callable[[str], Job], announce: Callable[[str], None]
) -> None:
    """Its state is read there while it works; a drain does the same with all of the host's."""
    job = make_job("warm")
    job.values |= ON_TWO_HOSTS
    runs_with_state(job)
    wait_for(lambda: are_dealt(job), job)
    source, there = job.containers()["0"]["host"], elsewhere(job)
    with under_load(job):
        assert moved(job, "0", there, "--warm").endswith(f"runs on {there}")
    first = job.containers()["0"]
    assert records_read(first) < STATE / 10
    wait_for(lambda: are_dealt(job), job)
    with under_load(job):
        done = homeport(job, "drain", there)
        assert done.returncode == 0, done.stderr
    last = job.containers()["0"]
    assert last["host"] == source
    assert records_read(last) < STATE / 10
    assert homeport(job, "drain", there, "--undo").returncode == 0
    pauses = [f"{pause_s(job, c['epoch']):.2f} s" for c in (first, last)]
    announce(f"a mixed container of a job with {STATE} keys moves warm: pauses {', '.join(pauses)}")
    job.end()


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
