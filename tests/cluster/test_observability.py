"""Prometheus beside the cluster: it finds jobs by itself, has numbers for each panel, and wakes."""

from __future__ import annotations

import json
import os
import signal
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters_in_containers import ContainersUnderTest
from docker_cluster import engine, observability
from yarn_jobs import Job, wait_for

from local_setup.environment import cache_dir

BUILD = Path(__file__).resolve().parents[2] / "build"
RECORDS = 3000
FAILURES = 3
"""As many as HomeportContainersFailRepeatedly wants."""
EMPTY_IN_CALM = {
    "Restores",
    "Speed of restores",
    "Standby lag",
    "Recovery time",
    "Containers that do not run",
    "Input lost",
}
"""Panels that show a restore, a standby, a recovery, and what does not run or is lost."""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(containers: None) -> Iterator[ContainersUnderTest]:
    """As elsewhere, with Prometheus; afterwards nothing of that is left either."""
    del containers
    if os.geteuid() != 0:
        pytest.skip("the test ends processes of containers: run it as root")
    started = ContainersUnderTest(BUILD / "docker-observed")
    started.down(print)  # of a run that was killed
    started.up(print, observed=True)
    name = started.name
    yield started
    started.down(print)
    left = engine.find(cache_dir())
    if left is not None:
        for kind in (("ps", "-a"), ("volume", "ls"), ("network", "ls")):
            assert name not in left.run(*kind)


class Prometheus:
    """Prometheus of the cluster, from outside."""

    def __init__(self, cluster: ContainersUnderTest) -> None:
        self._url = cluster.status()["addresses"]["Prometheus"]

    def _get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}", timeout=10) as answer:  # noqa: S310 - our own
            body = json.loads(answer.read())
        assert body["status"] == "success"
        return body["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What comes of it now: each with ``metric`` and ``value``."""
        found: list[dict[str, Any]] = self._get(
            f"query?{urllib.parse.urlencode({'query': expression})}"
        )["result"]
        return found

    def value(self, expression: str) -> float | None:
        """The one value; None where there is none, or more."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def firing(self) -> dict[str, dict[str, str]]:
        """{alert that fires: its labels}."""
        alerts = self._get("alerts")["alerts"]
        return {a["labels"]["alertname"]: a["labels"] for a in alerts if a["state"] == "firing"}


def _data(prometheus: Prometheus, job: Job) -> dict[str, bool]:
    """{panel: whether it shows anything of the job}; every expression is one that can be asked."""
    dashboard = json.loads((observability.FOLDER / "dashboard.json").read_text(encoding="utf-8"))
    found = {}
    for panel in dashboard["panels"]:
        shown = []
        for target in panel["targets"]:
            asked = target["expr"].replace("$job_name", job.name).replace("$job_id", "1")
            shown.append(bool(prometheus.query(asked)))
        found[panel["title"]] = any(shown)
    return found


def test_a_job_is_found_shown_and_its_failures_wake_the_operator(
    cluster: ContainersUnderTest, make_job: Callable[[str], Job], announce: Callable[[str], None]
) -> None:
    """Two jobs, then one; three containers die; then the host of the ApplicationMaster."""
    prometheus = Prometheus(cluster)
    assert prometheus.query("up") == []
    job = make_job("observed")
    job.produce(RECORDS)
    job.run()
    job.settled()
    up = f'up{{job="homeport",job_name="observed",job_id="1",application="{job.application_id}"}}'
    wait_for(lambda: prometheus.value(up) == 1, job)
    announce("the job was found and scraped")
    processed = 'sum(homeport_records_processed_total{job_name="observed"})'
    wait_for(lambda: prometheus.value(processed) == RECORDS, job)
    assert prometheus.value('sum(homeport_input_lag_records{job_name="observed"})') == 0
    shown: dict[str, bool] = {}

    def has_all() -> bool:
        shown.update(_data(prometheus, job))
        return {panel for panel, has in shown.items() if not has} == EMPTY_IN_CALM

    wait_for(has_all, job)
    announce(f"{sum(shown.values())} of {len(shown)} panels have data in calm")

    other = make_job("second")
    other.produce(1)
    other.run()
    wait_for(lambda: len(prometheus.query('up{job="homeport"} == 1')) == 2, other)
    other.kill()
    wait_for(lambda: len(prometheus.query('up{job="homeport"}')) == 1, other)
    announce("a second job came and went")

    assert prometheus.firing() == {}
    for pid in job.settled().values():
        os.kill(pid, signal.SIGKILL)
    alert = "HomeportContainersFailRepeatedly"
    wait_for(lambda: alert in prometheus.firing(), job)
    labels = prometheus.firing()[alert]
    assert (labels["job_name"], labels["job_id"]) == ("observed", "1")
    assert labels["application"] == job.application_id
    announce(f"{alert} fired")
    job.settled()
    wait_for(lambda: bool(_data(prometheus, job)["Recovery time"]), job)

    before = job.am_host()
    cluster.kill_node(before)
    wait_for(lambda: prometheus.value(up) == 0, job)
    wait_for(lambda: prometheus.value(up) == 1, job)
    after = urllib.parse.urlsplit(job.application().am_log_url).hostname
    assert after != before
    announce(f"the ApplicationMaster went from {before} to {after} and was found there")
    cluster.start_node(before)
