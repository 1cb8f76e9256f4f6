"""What a job stands on goes away for a while, on real parts; the result is exact afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from yarn_jobs import Job, parent_of, wait_for


def test_a_restarted_resource_manager_disturbs_nobody(make_job: Callable[[str], Job]) -> None:
    """Same application, same processes; and a launcher that dies later gets a new container."""
    job = make_job("managed")
    job.produce(300)
    job.run()
    before = job.settled()
    job.cluster.restart_resource_manager()
    job.produce(300, first=300)
    assert job.pids() == before
    assert job.get("v1/status")["job"]["attempt"] == 1

    os.kill(parent_of(before["0"]), signal.SIGKILL)
    wait_for(lambda: job.containers()["0"]["epoch"] == 2, job)
    after = job.settled()
    assert {p: pid for p, pid in after.items() if p != "0"} == {
        p: pid for p, pid in before.items() if p != "0"
    }
    job.expects(600)
    assert job.kill() == f"stopped {job.application_id} in order"
    job.judge_history()
