"""Hosts that die, stand still or lose their network, under a job with hot standbys that is fed.

Source: STANDBY, part 3 and "Additional metrics"; safety L5, C1, C2, C6, P1 to P3.
"""

from __future__ import annotations

from collections.abc import Callable

from failover_scenarios import Containers, Moment, Scenario
from yarn_jobs import Job

from homeport.job_coordinator.http.messages import RestoreKind

MakeJob = Callable[[str], Job]
TAIL = {RestoreKind.NONE.value, RestoreKind.TAIL.value}


def kinds(containers: Containers, processor: str) -> set[str]:
    """How its stores were restored."""
    restored = containers[processor]["restored"]
    return {how["kind"] for tasks in restored.values() for how in tasks.values()}


def took_the_place(before: Moment, after: Containers, *actives: str) -> None:
    """Each runs where its standby was, with what that had; the others are as they were."""
    for active in actives:
        assert after[active]["host"] == before.containers[f"{active}-0"]["host"]
        assert kinds(after, active) <= TAIL
    for processor, container in before.containers.items():
        if container["role"] == "active" and processor not in actives:
            assert after[processor]["epoch"] == container["epoch"]


def test_the_host_of_an_active_and_of_anothers_standby_dies(make_job: MakeJob) -> None:
    """The active goes where its standby was; both standbys find another host. It comes back."""
    with Scenario(make_job("one-host")) as scenario:
        lost, _ = scenario.arrange([("0", "1-0"), ("0-0", "1")])
        before = scenario.moment()
        cluster = scenario.job.cluster
        cluster.kill_node(lost)
        try:
            scenario.succeeds(before, "0", "0-0", "1-0")
            took_the_place(before, scenario.recovers(), "0")
            assert scenario.counted_since(before) == {
                "active failures": 1,
                "standby failures": 1,
                "failed over to a standby": 1,
            }
        finally:
            cluster.start_node(lost)
        scenario.ends_well()
