"""A driver times the recoveries of its containers, and reports them everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driver_attempts import FIRST, P0, Am, Given, driven

from homeport.appmaster.driver.http_backend import DriverDecisions
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.http.messages import OrderKind, Started, Stopped
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.container_report import ContainerReport

SECOND = Incarnation(P0, 2)
SECONDS = {"kafka": 0.1, "fence": 0.2, "coordinator-stream": 0.1, "stores": 0.5, "total": 0.9}
PHASES = ["detect", "decide", "stop", "resource", "start", "fence", "restore", "first-batch"]


def recovery(am: Am) -> Mapping[str, Any]:
    """As the status shows it."""
    (container,) = am.status()["containers"]
    found = container["recovery"]
    assert sum(found["phases_ms"].values()) == found["total_ms"]
    return dict(found)


@driven(Given(retries=1))
async def test_a_recovery_at_home_in_status_metrics_and_history(am: Am) -> None:
    """The launcher says how long ago it saw the end, the container how long its start took."""
    await am.started()
    assert am.status()["containers"][0]["recovery"] is None
    before_ms = wall_ms()
    await am.backend.stopped(Stopped(FIRST, StopCause.KILLED, -9, age_ms=70))
    assert 70 <= recovery(am)["phases_ms"]["detect"] < wall_ms() - before_ms + 72
    await am.until_order(OrderKind.RUN)
    await am.backend.started(Started(SECOND, seconds=SECONDS))
    stated = recovery(am)
    assert list(stated["phases_ms"]) == PHASES
    assert (stated["cause"], stated["kind"], stated["is_over"]) == ("killed", "home", False)
    for _ in range(2):  # the report comes with every check-in
        await am.check_in(SECOND, report=ContainerReport(first_commit_ms=1_400))
    stated = recovery(am)
    assert stated["is_over"]
    # The fake's start took no time: what it claims of it lies before its permit.
    assert stated["phases_ms"]["first-batch"] == 500
    assert before_ms - 72 <= stated["began_ms"] <= wall_ms() - 70
    (line,) = (x for x in am.history() if x["event"] == "recovered")
    assert (line["processor_id"], line["epoch"]) == ("0", 2)
    assert stated.items() <= line.items()
    (metric,) = (
        m
        for m in DriverDecisions(am.driver).metrics()
        if m.name == "homeport_recovery_phase_seconds"
    )
    sums = [s for s in metric.samples if s.name.endswith("_sum")]
    assert {(s.labels["kind"], s.labels["phase"]) for s in sums} == {("home", p) for p in PHASES}
    assert round(1000 * sum(s.value for s in sums)) == stated["total_ms"]
    await am.finished(SECOND)


@driven(Given(retries=1))
async def test_the_keepers_report_says_when_the_container_was_last_alive(am: Am) -> None:
    """By the last renewal that it granted; its clock is the driver's."""
    await am.started()
    am.keeper.renewed_ms[FIRST] = boot_ms() - 4_000
    am.keeper.lost.add(FIRST)
    await am.until(lambda: len(am.cluster.asked) == 2)
    assert recovery(am)["phases_ms"]["detect"] >= 4_000
    assert recovery(am)["cause"] == "launcher-silent"
    await am.backend.shutdown()
    await am.ended()
    (line,) = (x for x in am.history() if x["event"] == "revoked")
    assert line["renewed_ms"] == am.keeper.renewed_ms[FIRST]


@driven(Given(permitted=(FIRST,), retries=1))
async def test_a_new_driver_reports_no_recovery_that_it_did_not_see(am: Am) -> None:
    """An incarnation of an earlier driver ended at an unknown time, while no driver ran."""
    await am.backend.stopped(Stopped(FIRST, StopCause.KILLED, -9, age_ms=5_000))
    await am.permitted()
    await am.backend.started(Started(SECOND, seconds=SECONDS))
    await am.check_in(SECOND, report=ContainerReport(first_commit_ms=1_400))
    assert am.status()["containers"][0]["recovery"] is None
    await am.finished(SECOND)
    await am.ended()
    assert "recovered" not in am.events()
