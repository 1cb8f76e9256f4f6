"""The job's own token and certificate are exchanged while the job runs on a real YARN."""

from __future__ import annotations

import os
import signal
import urllib.error
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from yarn_jobs import Job, pids_of, wait_for

from homeport.job_coordinator.http.client import CoordinatorClient


def test_nothing_restarts_and_the_former_token_is_refused(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Later starts, and a later driver and keeper, go on with what is valid then.

    Another user, or machine, cannot exchange them.
    """
    job = make_job("exchange")
    job.values["cluster-manager.jobcoordinator.tls.enabled"] = "true"
    job.produce(60)
    job.run()
    before, pids = job.wait_until_running(), job.settled()
    _needs_the_submitters_files(job, tmp_path)
    former, certificate = job.token, job.written("yarn.am.certificate")
    for generation in (1, 2):
        done = job.operator("token", "exchange")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"generation {generation}: ")
        assert job.token not in {former, done.stdout + done.stderr}
    wait_for(lambda: job.written("yarn.am.certificate") != certificate, job)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        job.get_text("config", former)
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY"):
        CoordinatorClient(job.url, None, certificate=certificate).status()
    job.produce(60, first=60)
    job.expects(120)
    assert job.settled() == pids
    assert {p: c["epoch"] for p, c in job.containers().items()} == {
        p: c["epoch"] for p, c in before.items()
    }
    os.kill(pids["0"], signal.SIGKILL)
    wait_for(lambda: job.containers()["0"]["epoch"] > before["0"]["epoch"], job)
    # By now longer than a lease: renewals have found the keeper's token, and its certificate.
    assert job.settled()["1"] == pids["1"]
    for name in ("lease_keeper", "application_master"):
        pid = job.program(name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(partial(_is_another, job, name, pid), job)
    job.settled()
    job.produce(60, first=120)
    job.expects(180)
    done = job.operator("token", "exchange")
    assert done.returncode == 0, done.stderr
    job.end()
    wait_for(lambda: not pids_of(job.application_id), job)


def _is_another(job: Job, name: str, former: int) -> bool:
    return job.program(name) not in {None, former}


def _needs_the_submitters_files(job: Job, empty_cache: Path) -> None:
    """Without them, the tool says one line, and nothing is written."""
    before = job.operator("config", "get", "--json").stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOMEPORT_CACHE_DIR", str(empty_cache))
        done = job.operator("token", "exchange")
    assert (done.returncode, done.stdout) == (1, "")
    assert "it does not have the secret of" in done.stderr
    assert "exchange as the user, and on the machine, of its submission" in done.stderr
    assert job.operator("config", "get", "--json").stdout == before
