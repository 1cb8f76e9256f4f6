"""Where the page of a NodeManager has the log of a container."""

from __future__ import annotations

from typing import Any

import pytest
from statuses import container_of

from homeport.appmaster.driver.driver_view import log_url
from homeport.appmaster.report.job_status import JobIdentity
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host

RM = "http://rm:8088/proxy/application_1_0001/"
JOB = JobIdentity("j", "1", Rank(1, "application_1_0001", 1), 1, RM, "ada lovelace")
WEBS = {Host("nm1"): "nm1:8042", Host("nm2"): ""}
RUNS = {"processor_id": "0-0", "host": "nm1", "epoch": 3, "resource": "container_1_0001_01_000002"}


def test_a_container_that_runs_has_one() -> None:
    """By the user that YARN runs it as; over https where YARN's pages are."""
    path = "nm1:8042/node/containerlogs/container_1_0001_01_000002/ada%20lovelace"
    log = f"{path}/container-0-0-3.log/?start=-65536"
    assert log_url(container_of(RUNS), WEBS, JOB) == f"http://{log}"
    secure = JobIdentity("j", "1", JOB.rank, 1, RM.replace("http", "https"), JOB.user)
    assert log_url(container_of(RUNS), WEBS, secure) == f"https://{log}"
    bare = JobIdentity("j", "1", JOB.rank, 1, "", JOB.user)
    assert log_url(container_of(RUNS), WEBS, bare) == f"http://{log}"


@pytest.mark.parametrize(
    "changes", [{"host": None}, {"host": "nm2"}, {"host": "nm3"}, {"epoch": 0}, {"resource": None}]
)
def test_another_has_none(changes: dict[str, Any]) -> None:
    """Nowhere yet, or on a node that the ResourceManager says nothing of."""
    assert log_url(container_of({**RUNS, **changes}), WEBS, JOB) is None
    assert log_url(container_of(RUNS), WEBS, JobIdentity("j", "1", JOB.rank, 1, RM)) is None
