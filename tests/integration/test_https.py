"""A job whose job coordinator and lease keeper serve https."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Callable

from yarn_jobs import Job, pids_of, wait_for


def test_a_job_runs_and_is_operated_over_https(make_job: Callable[[str], Job]) -> None:
    """Containers check in, renew their leases and commit; the tools find the certificate."""
    job = make_job("https")
    job.values["job.container.count"] = "1"
    job.values["cluster-manager.jobcoordinator.tls.enabled"] = "true"
    job.produce(60)
    job.run()
    assert job.url.startswith("https://")
    before = job.wait_until_running()
    job.expects(60)
    # One that goes must come back: its launcher asks for an order, and gets a lease.
    done = job.operator("restart", "0")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: job.containers()["0"]["epoch"] > before["0"]["epoch"], job)
    job.wait_until_running()
    job.produce(60, first=60)
    job.expects(120)
    key = job.written("yarn.am.certificate")
    assert key is not None
    assert key.startswith("-----BEGIN CERTIFICATE")
    scrape_as_prometheus_does(job)
    shown = job.operator("config", "get", "yarn.am.certificate")
    assert "PRIVATE" not in shown.stdout
    assert job.kill() == f"stopped {job.application_id} in order"
    wait_for(lambda: not pids_of(job.application_id), job)  # YARN ends its shells last
    job.judge_history()


def scrape_as_prometheus_does(job: Job) -> None:
    """The job is a target itself, as its coordinator stream says: the proxy does not reach it."""
    done = job.operator("metrics-targets")
    assert (done.returncode, done.stderr) == (0, "")
    found = [t for t in json.loads(done.stdout) if t["labels"]["job_name"] == job.name]
    (place,), labels = found[0]["targets"], found[0]["labels"]
    assert labels["application"] == job.application_id
    url = f"{labels['__scheme__']}://{place}{labels['__metrics_path__']}"
    assert url == f"{job.url}metrics"
    unverified = ssl._create_unverified_context()  # noqa: S323 - as insecure_skip_verify does
    with urllib.request.urlopen(url, timeout=10, context=unverified) as answer:  # noqa: S310 - ours
        assert "homeport_job_model_version" in answer.read().decode()
