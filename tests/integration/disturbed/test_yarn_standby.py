"""Hot standby on a real YARN cluster: both roles run, come home, and hold the same."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from failover_scenarios import samples
from standby_jobs import (
    are_apart,
    becomes_calm,
    hosts_of,
    kinds,
    published,
    records_read,
    standby_job,
)
from yarn_jobs import Job, parent_of, wait_for

from homeport.appmaster.report.recovery import RecoveryPhase
from homeport.job_coordinator.model.outcomes import RestoreKind


def _dies_and_comes_home(job: Job, victim: str) -> None:
    """Its process is killed: it runs again on its host, and no other container is touched."""
    job.settled()
    before = job.containers()
    os.kill(before[victim]["pid"], signal.SIGKILL)
    epoch = before[victim]["epoch"] + 1
    wait_for(lambda: job.containers()[victim]["epoch"] == epoch, job)
    after = job.wait_until_running()
    assert hosts_of(after) == hosts_of(before)
    assert {p: c["epoch"] for p, c in after.items() if p != victim} == {
        p: c["epoch"] for p, c in before.items() if p != victim
    }
    assert kinds(after[victim]) <= {RestoreKind.NONE.value, RestoreKind.TAIL.value}


def test_standbys_run_follow_and_take_over(make_job: Callable[[str], Job], tmp_path: Path) -> None:
    """Deployed when both roles run, apart; home after a kill, home after a stop, reading nothing.

    Then a node dies: its active starts where its standby was, and reads only the tail.
    """
    job = standby_job(make_job, "doubled")
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
    are_apart(first)
    becomes_calm(job, tmp_path)

    _dies_and_comes_home(job, "0")
    _dies_and_comes_home(job, "1-0")
    job.produce(400, first=600)
    becomes_calm(job, tmp_path)
    numbers = samples(job)
    for role in ("active", "standby"):
        assert numbers[f'homeport_container_failures_total{{charged="true",role="{role}"}}'] == 1
    assert published(job) == {"active failures": 1, "standby failures": 1}

    homes = hosts_of(job.containers())
    job.end()
    job.run()
    again = job.wait_until_running()
    assert hosts_of(again) == homes
    for container in again.values():
        assert kinds(container) == {RestoreKind.NONE.value}

    _a_node_dies(job, tmp_path)
    job.end()


def _is_told(job: Job, moved: str, lost: str, refuge: str) -> None:
    """The failover is over; the status shows each of its phases, and they add up to the whole."""
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
    assert records_read(container) == 0
    phase = 'homeport_recovery_phase_seconds_sum{kind="failover",phase="detect"}'
    assert samples(job)[phase] >= lease_ms / 1000
    stated = [e["phases_ms"] for e in job.driver_events("recovered") if e["processor_id"] == moved]
    assert stated[-1] == phases_ms


def _a_node_dies(job: Job, scratch: Path) -> None:
    """The AM's node lives on. Each active container of another one goes to its standby's.

    It runs in the standby's YARN container, whose launcher has outlived the standby.
    """
    pids = job.settled()
    before, am_host = job.containers(), job.am_host()
    lost = next(
        c["host"] for c in before.values() if c["role"] == "active" and c["host"] != am_host
    )
    gone = {p: c["role"] for p, c in before.items() if c["host"] == lost}
    moved = [p for p, role in gone.items() if role == "active"]
    launchers = {p: parent_of(pids[f"{p}-0"]) for p in moved}
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: all(job.containers()[p]["epoch"] > before[p]["epoch"] for p in moved), job)
        after = job.wait_until_running()
        pids = job.settled()
        for active in moved:
            place = before[f"{active}-0"]
            for what in ("host", "resource"):
                assert after[active][what] == place[what]
            assert parent_of(pids[active]) == launchers[active]
            assert kinds(after[active]) <= {RestoreKind.NONE.value, RestoreKind.TAIL.value}
        are_apart(after)
        # The order that stops its standby is no failure.
        stated = Counter(f"{role} failures" for role in gone.values())
        stated["failed over to a standby"] = len(moved)
        assert published(job) == stated
        job.produce(500, first=1000)
        becomes_calm(job, scratch)
        for active in moved:
            _is_told(job, active, lost, before[f"{active}-0"]["host"])
    finally:
        job.cluster.start_node(lost)
