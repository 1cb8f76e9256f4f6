"""A failover on a real YARN cluster finds the adjunct stores that the standby has filled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from adjunct_planes import OF_EACH, has_all, has_planes, kept_by, logs_of
from standby_jobs import standby_job
from yarn_jobs import PARTITIONS, Job, wait_for


@pytest.mark.long
def test_a_failover_reads_only_the_tail_of_reference_data(make_job: Callable[[str], Job]) -> None:
    """The status has the stores of both roles; the successor keeps what its standby filled."""
    job = standby_job(make_job, "reference")
    job.produce(600)
    has_planes(job)
    job.run()
    job.wait_until_running()
    wait_for(lambda: all(has_all(c) for c in job.containers().values()), job)
    assert 'homeport_adjunct_records{processor="0-0",store="planes"' in job.get_text("metrics")
    before, am_host = job.containers(), job.am_host()
    lost = next(
        c["host"] for c in before.values() if c["role"] == "active" and c["host"] != am_host
    )
    moved = [p for p, c in before.items() if (c["role"], c["host"]) == ("active", lost)]
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: all(job.containers()[p]["epoch"] > before[p]["epoch"] for p in moved), job)
        after = job.wait_until_running()
        for active in moved:
            assert after[active]["host"] == before[f"{active}-0"]["host"]
            name = f"container-{active}-{after[active]['epoch']}.log"
            (log,) = logs_of(job, [name])
            kept = kept_by(log)
            assert len(kept) == PARTITIONS // 2
            assert set(kept.values()) == {OF_EACH}
        job.produce(400, first=600)
        job.counts_all()
    finally:
        job.cluster.start_node(lost)
    job.end()
