"""Hot standby on a real YARN cluster: both roles run, come home, and hold the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store_copies import entries, offset
from topic_records import last_offsets
from yarn_jobs import PARTITIONS, Job, wait_for

from homeport.appmaster.allocation.recovery import RecoveryPhase
from homeport.job_coordinator.http.messages import RestoreKind

Containers = dict[str, dict[str, Any]]


def _standby_job(make_job: Callable[[str], Job]) -> Job:
    """Two active containers, each with a standby."""
    job = make_job("doubled")
    job.values |= {
        "job.container.count": "2",
        "job.hotstandby.enabled": "true",
        "task.commit.ms": "500",
    }
    return job


def _hosts(containers: Containers) -> dict[str, str]:
    return {processor: container["host"] for processor, container in containers.items()}


def _are_apart(containers: Containers) -> None:
    """Invariant-1: nobody is on the host of its active container."""
    for container in containers.values():
        if container["replica_of"] is not None:
            assert container["host"] != containers[container["replica_of"]]["host"]


def _directory(job: Job, container: dict[str, Any], task: str) -> Path:
    folder = job.cluster.state_dir(container["host"]) / f"{job.name}-1" / "counts"
    return folder / task.replace(" ", "_")


def _replicas(job: Job) -> list[tuple[int, Path, Path]]:
    """(changelog partition, directory of the active, of its standby) of each task."""
    containers = job.containers()
    model = job.get("")["containers"]
    found = []
    for processor, container in containers.items():
        if container["replica_of"] is None:
            continue
        active = containers[container["replica_of"]]
        for task, told in model[container["replica_of"]]["tasks"].items():
            places = (_directory(job, active, task), _directory(job, container, task))
            found.append((told["changelog-partition"], *places))
        assert len(model[processor]["tasks"]) == len(model[container["replica_of"]]["tasks"])
    assert len(found) == PARTITIONS
    return found


def _becomes_calm(job: Job, count: int, scratch: Path) -> None:
    """All is counted, nobody is behind, and each standby holds what its active does."""
    job.expects(count)
    heads = last_offsets(job.servers, f"{job.name}-counts", PARTITIONS)
    replicas = _replicas(job)
    wait_for(
        lambda: all(
            offset(directory) >= heads[partition]
            for partition, *places in replicas
            for directory in places
        ),
        job,
    )
    wait_for(lambda: _lags(job) == {"0-0": (0, 0.0), "1-0": (0, 0.0)}, job)
    keys: set[bytes] = set()

    def are_equal() -> bool:
        for _, active, standby in replicas:
            found = entries(active, scratch)
            assert entries(standby, scratch) == found
            keys.update(found)
        return True

    wait_for(are_equal, job)
    assert len(keys) == min(count, 50)


def _lags(job: Job) -> dict[str, tuple[int, float]]:
    """{standby: records and seconds that it is behind}, by the status."""
    return {
        processor: (container["lag"], container["lag_seconds"])
        for processor, container in job.containers().items()
        if container["role"] == "standby"
    }


def _number(job: Job, name: str) -> float:
    """One number of ``/metrics``."""
    lines = [line for line in job.get_text("metrics").splitlines() if line.startswith(f"{name} ")]
    assert len(lines) == 1, name
    return float(lines[0].split()[-1])


def _kinds(container: dict[str, Any]) -> set[str]:
    return {how["kind"] for tasks in container["restored"].values() for how in tasks.values()}


def _dies_and_comes_home(job: Job, victim: str) -> None:
    """Its process is killed: it runs again on its host, and nobody else is touched."""
    job.settled()
    before = job.containers()
    os.kill(before[victim]["pid"], signal.SIGKILL)
    epoch = before[victim]["epoch"] + 1
    wait_for(lambda: job.containers()[victim]["epoch"] == epoch, job)
    after = job.wait_until_running()
    assert _hosts(after) == _hosts(before)
    assert {p: c["epoch"] for p, c in after.items() if p != victim} == {
        p: c["epoch"] for p, c in before.items() if p != victim
    }
    assert _kinds(after[victim]) <= {RestoreKind.NONE.value, RestoreKind.TAIL.value}


def test_standbys_run_follow_and_take_over(make_job: Callable[[str], Job], tmp_path: Path) -> None:
    """Deployed when both roles run, apart; home after a kill, home after a stop, reading nothing.

    Then a node dies: its active starts where its standby was, and reads only the tail.
    """
    job = _standby_job(make_job)
    job.produce(600)
    job.run()
    first = job.wait_until_running()
    assert {p: (c["role"], c["replica_of"]) for p, c in first.items()} == {
        "0": ("active", None),
        "0-0": ("standby", "0"),
        "1": ("active", None),
        "1-0": ("standby", "1"),
    }
    assert job.get("v1/status")["job"]["health"] == "deployed"
    _are_apart(first)
    _becomes_calm(job, 600, tmp_path)

    _dies_and_comes_home(job, "0")
    _dies_and_comes_home(job, "1-0")
    job.produce(400, first=600)
    _becomes_calm(job, 1000, tmp_path)
    for role in ("active", "standby"):
        name = f'homeport_container_failures_total{{charged="true",role="{role}"}}'
        assert _number(job, name) == 1

    homes = _hosts(job.containers())
    assert job.kill() == f"stopped {job.application_id} in order"
    job.judge_history()
    job.run()
    again = job.wait_until_running()
    assert _hosts(again) == homes
    for container in again.values():
        assert _kinds(container) == {RestoreKind.NONE.value}

    _a_node_dies(job, tmp_path)
    assert job.kill() == f"stopped {job.application_id} in order"
    job.judge_history()


def _is_told(job: Job, moved: str, lost: str, refuge: str) -> None:
    """The failover is over, and each of its phases is told, of which all together are the whole."""
    wait_for(lambda: job.containers()[moved]["recovery"]["is_over"], job)
    container = job.containers()[moved]
    recovery = container["recovery"]
    places = {"cause": "launcher-silent", "kind": "failover", "from": lost, "to": refuge}
    assert places.items() <= recovery.items()
    phases_ms = recovery["phases_ms"]
    assert list(phases_ms) == [phase.value for phase in RecoveryPhase]
    assert sum(phases_ms.values()) == recovery["total_ms"]
    lease_ms = int(job.values["cluster-manager.container.lease.ms"])
    assert phases_ms["detect"] >= lease_ms
    assert phases_ms["stop"] > 0
    # Its standby was not behind: nothing was left to read, of a thousand records.
    read = [how["records"] for tasks in container["restored"].values() for how in tasks.values()]
    assert sum(read) == 0
    phase = 'homeport_recovery_phase_seconds_sum{kind="failover",phase="detect"}'
    assert _number(job, phase) >= lease_ms / 1000
    told = [e["phases_ms"] for e in job.driver_events("recovered") if e["processor_id"] == moved]
    assert phases_ms in told  # beside those of the times that it was killed at home


def _a_node_dies(job: Job, scratch: Path) -> None:
    """The AM's node lives on. Some active container of another one goes to its standby's."""
    job.settled()
    before = job.containers()
    am_host = next(n["host"] for n in job.cluster.status()["nodes"] if n["address"] in job.url)
    moved = next(p for p, c in before.items() if c["role"] == "active" and c["host"] != am_host)
    lost, refuge = before[moved]["host"], before[f"{moved}-0"]["host"]
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: job.containers()[moved]["epoch"] > before[moved]["epoch"], job)
        after = job.wait_until_running()
        assert after[moved]["host"] == refuge
        assert _kinds(after[moved]) <= {RestoreKind.NONE.value, RestoreKind.TAIL.value}
        _are_apart(after)
        assert _number(job, "samza_ContainerProcessManagerMetrics_failovers_to_standby_total") >= 1
        job.produce(500, first=1000)
        _becomes_calm(job, 1500, scratch)
        _is_told(job, moved, lost, refuge)
    finally:
        job.cluster.start_node(lost)
