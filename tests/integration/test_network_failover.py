"""A host that is cut off while its containers work on: the smallest such scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from failover_scenarios import counted, more_than
from yarn_jobs import Job, alive, wait_for

from tests.faults import Faults


@pytest.mark.long
def test_successors_of_an_isolated_host_work_and_what_was_there_has_ended(
    make_network_job: Callable[[str], Job], faults: Faults
) -> None:
    """With standbys on, a host is cut from all: successors run elsewhere, the isolated have ended.

    They ended by their own deadline, still isolated; the result is exact before and after healing.
    """
    job = make_network_job("out-of-sight")
    job.values |= {
        "job.container.count": "2",
        "job.hotstandby.enabled": "true",
        "cluster-manager.container.lease.ms": "3000",
        "task.commit.ms": "500",
    }
    job.begin(600)
    job.expects(600)
    before = job.containers()
    am_host = next(n["host"] for n in job.cluster.status()["nodes"] if n["address"] in job.url)
    actives = {p: c for p, c in before.items() if c["role"] == "active"}
    moved = next(p for p, c in actives.items() if c["host"] != am_host)
    lost, refuge = before[moved]["host"], before[f"{moved}-0"]["host"]
    there = {p: c for p, c in before.items() if c["host"] == lost}
    roles = Counter(c["role"] for c in there.values())
    counted_before = counted(job)

    faults.cut(lost)
    wait_for(lambda: not any(alive(c["pid"]) for c in there.values()), job)
    wait_for(lambda: job.containers()[moved]["epoch"] > before[moved]["epoch"], job)
    after = job.wait_until_running()
    assert after[moved]["host"] == refuge
    assert lost not in {container["host"] for container in after.values()}
    # Each that ran there has ended once; a standby on another host was there for each active.
    right = {
        "active failures": roles["active"],
        "standby failures": roles["standby"],
        "failed over to a standby": roles["active"],
    }
    assert more_than(counted_before, counted(job)) == {k: n for k, n in right.items() if n}
    job.produce(400, first=600)
    job.expects(1000)

    faults.heal()
    faults.wait_until_whole()
    job.produce(200, first=1000)
    job.expects(1200)
    job.end()
