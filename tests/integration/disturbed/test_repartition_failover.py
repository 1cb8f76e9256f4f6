"""A job that counts by another key stays exact over a lost host and an upgrade, on YARN."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from rekeyed_jobs import counts_to, rekeyed_job
from yarn_jobs import Job, wait_for


@pytest.mark.long
def test_groups_are_counted_exactly_over_a_failover_and_an_upgrade(
    make_job: Callable[[str], Job],
) -> None:
    """The standby goes on in the middle of records that were sent on and not yet counted."""
    job = rekeyed_job(make_job)
    job.begin(700)
    counts_to(job, 700)
    before, am_host = job.containers(), job.am_host()
    lost = next(
        c["host"] for c in before.values() if c["role"] == "active" and c["host"] != am_host
    )
    moved = [p for p, c in before.items() if (c["role"], c["host"]) == ("active", lost)]
    job.produce(7000, first=700)
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: all(job.containers()[p]["epoch"] > before[p]["epoch"] for p in moved), job)
        after = job.wait_until_running()
        assert {after[p]["host"] for p in moved} == {before[f"{p}-0"]["host"] for p in moved}
        counts_to(job, 7700)
    finally:
        job.cluster.start_node(lost)

    new = job.package.with_name("new-code")
    shutil.copytree(job.package, new)
    (new / "rekeyed_task.py").write_text(
        (new / "rekeyed_task.py").read_text().replace("int(message.value)", "(int(message.value))")
    )
    job.produce(7000, first=7700)
    done = job.operator("upgrade", f"--package={new}", "--watch-ms=500", limit_s=240)
    assert done.returncode == 0, done.stderr
    counts_to(job, 14_700)
    job.end()
