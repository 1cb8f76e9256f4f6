"""What dies, hangs or wakes up late, on a real YARN cluster: the job survives, its result exact."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence

import pytest
from yarn_jobs import Job, alive, has_spare, parent_of, wait_for

LEASE_S = 6.0
STANDSTILL_S = 3 * LEASE_S
"""How long that fault lasts."""
NOBODY_EXPIRES_S = 2 * LEASE_S
"""Within this time a lease without renewals runs out: if none does, all were renewed."""


def _hit_driver(job: Job, fault: signal.Signals) -> None:
    victim = job.program("application_master")
    assert victim is not None
    os.kill(victim, fault)
    wait_for(lambda: not alive(victim), job)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param((signal.SIGKILL, signal.SIGSTOP), id="killed-hung"),
        pytest.param((signal.SIGKILL,) * 10, id="ten-killed", marks=pytest.mark.long),
    ],
)
def test_a_driver_that_dies_or_hangs_disturbs_no_container(
    make_job: Callable[[str], Job], faults: Sequence[signal.Signals]
) -> None:
    """Same port, same model, same containers in the same epochs; not one record twice.

    SIGSTOP: there is no beat for the limit, so the supervisor kills it.
    """
    job = make_job(f"undriven{len(faults)}")
    job.values["job.container.count"] = "2"
    job.produce(500)
    job.run()
    job.wait_until_running()
    job.settled()
    before, epochs = job.pids(), {p: c["epoch"] for p, c in job.containers().items()}
    was = job.get("v1/status")["job"]
    restored = {p: c["restored"] for p, c in job.containers().items()}
    assert all(restored.values())
    for number, fault in enumerate(faults):
        _hit_driver(job, fault)
        job.produce(100, first=500 + 100 * number)
        wait_for(lambda: job.pids() == before, job)
    job.expects(500 + 100 * len(faults))
    assert {p: c["epoch"] for p, c in job.containers().items()} == epochs
    assert {p: c["restored"] for p, c in job.containers().items()} == restored
    status = job.get("v1/status")
    # Not the first one always: a busy machine may start one later than YARN waits for it.
    assert [status["job"][name] for name in ("model_version", "attempt")] == [
        was[name] for name in ("model_version", "attempt")
    ]
    assert status["failures"] == []
    assert job.kill() == f"stopped {job.application_id} in order"


def test_no_container_is_lost_without_keeper_or_launcher_for_a_while(
    make_job: Callable[[str], Job],
) -> None:
    """SIGKILL of the keeper ends no lease; SIGKILL of a launcher ends its child only.

    The driver requests the home host while the lease runs on; the permit comes afterwards. Then a
    launcher stops for three leases: its child ends by itself before a successor runs.
    """
    job = make_job("leased")
    job.values["job.container.count"] = "2"
    job.values["yarn.am.container.memory.mb"] = "1024"  # with less the keeper has no spare
    job.produce(100)
    job.run()
    job.wait_until_running()
    job.settled()
    before, keeper = job.pids(), job.program("lease_keeper")
    supervisor = job.program("supervisor")
    assert keeper is not None
    assert supervisor is not None
    wait_for(lambda: has_spare(supervisor), job)
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: job.program("lease_keeper") not in {None, keeper}, job)
    time.sleep(NOBODY_EXPIRES_S)
    assert job.pids() == before

    child, host = before["0"], job.containers()["0"]["host"]
    os.kill(parent_of(child), signal.SIGKILL)
    wait_for(lambda: not alive(child), job)
    wait_for(lambda: job.containers()["0"]["epoch"] == 2, job)
    job.wait_until_running()
    assert job.containers()["0"]["host"] == host
    # YARN's word that its container ended is no evidence, but reason enough to ask home.
    early = [i for stated in job.decisions("ResourceEnded request") for i in stated]
    assert [i for i in early if i.startswith("RequestResource") and i.endswith(f" on {host}")]
    job.settled()
    assert {p: pid for p, pid in job.pids().items() if p != "0"} == {
        p: pid for p, pid in before.items() if p != "0"
    }

    child = before["1"]
    launcher = parent_of(child)
    os.kill(launcher, signal.SIGSTOP)
    wakes_at = time.monotonic() + STANDSTILL_S
    job.produce(100, first=100)
    wait_for(lambda: not alive(child) or job.containers()["1"]["epoch"] == 2, job)
    assert not alive(child)
    time.sleep(max(0.0, wakes_at - time.monotonic()))
    with contextlib.suppress(ProcessLookupError):
        os.kill(launcher, signal.SIGCONT)
    wait_for(lambda: job.containers()["1"]["epoch"] == 2, job)
    job.expects(200)
    job.kill()
