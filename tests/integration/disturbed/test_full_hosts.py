"""Failover on a real YARN cluster whose hosts are full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from standby_jobs import are_apart, becomes_calm, hosts_of, kinds, published, standby_job
from yarn_jobs import Job, wait_for

from homeport.job_coordinator.model.outcomes import RestoreKind

HALF_A_NODE_MB = "7500"


@pytest.mark.long
def test_on_full_hosts_actives_take_their_standbys_places_and_the_standbys_wait(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Two containers fill a node, and six the three of them; then one of the three is lost.

    Each active container of it runs in the YARN container of its standby: that host is full, and
    stays so. Its standbys wait, and the status says for what, until the node is back.
    """
    job = standby_job(make_job, "crowded", containers=3)
    job.values["cluster-manager.container.memory.mb"] = HALF_A_NODE_MB
    job.produce(600)
    job.run()
    before = job.wait_until_running()
    job.settled()
    assert set(Counter(hosts_of(before).values()).values()) == {2}
    becomes_calm(job, tmp_path)
    am_host = job.am_host()
    lost = next(
        c["host"] for c in before.values() if c["role"] == "active" and c["host"] != am_host
    )
    gone = {p: c for p, c in before.items() if c["host"] == lost}
    moved = [p for p, c in gone.items() if c["role"] == "active"]
    stated = Counter(
        {
            "active failures": len(moved),
            "standby failures": len(gone) - len(moved),
            "failed over to a standby": len(moved),
        }
    )
    homeless = {f"{p}-0" for p in moved} | (set(gone) - set(moved))
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: actives_run(job, before, moved), job)
        after = job.containers()
        for active in moved:
            assert after[active]["resource"] == before[f"{active}-0"]["resource"]
            assert kinds(after[active]) <= {RestoreKind.NONE.value, RestoreKind.TAIL.value}
        assert {p for p, c in after.items() if c["phase"] != "running"} == homeless
        wait_for(lambda: is_known(job, homeless, lost), job)
        assert job.get("v1/status")["job"]["health"] == "recovering"
        assert published(job) == stated
        job.produce(400, first=600)
        job.expects(1000)
    finally:
        job.cluster.start_node(lost)
    last = job.wait_until_running()
    job.settled()
    assert job.get("v1/status")["job"]["health"] == "deployed"
    assert {hosts_of(last)[standby] for standby in homeless} == {lost}
    are_apart(last)
    becomes_calm(job, tmp_path)
    assert published(job) == stated
    job.end()


def actives_run(job: Job, before: dict[str, dict[str, Any]], moved: list[str]) -> bool:
    """Whether all active containers run, those that had to move elsewhere than before."""
    containers = job.containers()
    return all(
        c["phase"] == "running" and (p not in moved or c["host"] not in {None, before[p]["host"]})
        for p, c in containers.items()
        if c["role"] == "active"
    )


def is_known(job: Job, homeless: set[str], lost: str) -> bool:
    """Whether the status shows the waiting containers, and the obstacle on each host."""
    waiting = job.get("v1/status")["waiting"]
    if waiting is None or waiting["hosts"].get(lost) != "is lost":
        return False
    assert {w["processor_id"] for w in waiting["processors"]} <= homeless
    full = {host: why for host, why in waiting["hosts"].items() if host != lost}
    return (
        waiting["count"] == len(homeless)
        and len(full) == 2
        and all("cores free" in why for why in full.values())
        and "could hold one" in waiting["says"]
    )
