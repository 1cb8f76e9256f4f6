"""Hosts that die, stand still or lose their network, under a job with hot standbys that is fed.

Source: STANDBY, part 3 and "Additional metrics"; safety L5, C1, C2, C6, P1, P2, P3.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

import lost_hosts
import pytest
from am_attempts import jvm_of
from failover_scenarios import Scenario
from lost_hosts import are_untouched, have_ended, kinds, took_the_place
from standby_jobs import standing_still
from yarn_jobs import Job, alive, parent_of, wait_for

from homeport.job_coordinator.model.outcomes import RestoreKind
from homeport.local_cluster.resource_manager import node_states
from tests.faults import Faults

MakeJob = Callable[[str], Job]
Announce = Callable[[str], None]


@pytest.mark.long
def test_the_host_of_an_active_and_of_anothers_standby_dies(
    make_job: MakeJob, announce: Announce
) -> None:
    """The active goes where its standby was; both standbys find another host. It comes back."""
    job = make_job("one-host")
    with Faults(job.cluster) as faults:
        lost_hosts.the_host_of_an_active(job, faults, ["kill"], announce)


@pytest.mark.long
def test_the_host_of_standbys_dies_then_that_of_actives(
    make_network_job: MakeJob, faults: Faults
) -> None:
    """Without standbys' host no active is touched; without the actives' host, each fails over."""
    with Scenario(make_network_job("one-role")) as scenario:
        _, lost = scenario.arrange([("0", "1"), ("0-0", "1-0")])
        before = scenario.moment()
        faults.kill(lost)
        scenario.succeeds(before, "0-0", "1-0")
        are_untouched(before, scenario.recovers(), "0", "1")
        assert scenario.counted_since(before) == {"standby failures": 2}
        faults.heal()
        lost, _ = scenario.arrange([("0", "1"), ("0-0", "1-0")], avoid=lost)
        before = scenario.moment()
        faults.kill(lost)
        scenario.succeeds(before, "0", "0-0", "1", "1-0")
        took_the_place(before, scenario.recovers(), "0", "1")
        assert scenario.counted_since(before) == {
            "active failures": 2,
            "failed over to a standby": 2,
        }
        faults.heal()
        scenario.ends_well()


@pytest.mark.long
def test_the_hosts_of_an_active_and_of_its_standby_die(
    make_network_job: MakeJob, faults: Faults
) -> None:
    """The state comes from the changelog: the active could not be failed to a standby.

    Which of the two hosts is known to be silent first, is chance. Where it is the active's, its
    standby is chosen, and the choice is lost: a standby that stops for its active container is no
    failure.
    """
    with Scenario(make_network_job("one-pair")) as scenario:
        lost, also_lost, _ = scenario.arrange([("0",), ("0-0", "1"), ("1-0",)])
        forget_what_was_elsewhere(scenario, "0")
        before = scenario.moment()
        faults.kill(lost)
        faults.kill(also_lost)
        scenario.succeeds(before, "0", "0-0", "1", "1-0")
        after = scenario.recovers()
        took_the_place(before, after, "1")
        assert kinds(after, "0") == {RestoreKind.FULL.value}
        both = {"active failures": 2, "could not be failed to a standby": 1}
        assert scenario.counted_since(before) in (
            both | {"failed over to a standby": 1, "standby failures": 1},
            both | {"failed over to a standby": 2, "choices lost": 1},
        )
        faults.heal()
        scenario.ends_well()


@pytest.mark.long
def test_two_hosts_are_lost_within_one_lease(make_network_job: MakeJob, faults: Faults) -> None:
    """Half of all hosts is not more than half: both are given up, and both actives fail over.

    They are cut off, not dead: whatever is still asked of them gets no answer at all.
    """
    with Scenario(make_network_job("two-hosts")) as scenario:
        lost, also_lost, _ = scenario.arrange([("0",), ("1",), ("0-0", "1-0")])
        before = scenario.moment()
        faults.cut(lost, also_lost)
        scenario.succeeds(before, "0", "0-0", "1", "1-0")
        took_the_place(before, scenario.recovers(), "0", "1")
        assert scenario.counted_since(before) == {
            "active failures": 2,
            "failed over to a standby": 2,
        }
        faults.heal()
        scenario.ends_well()


@pytest.mark.long
def test_all_hosts_fall_silent_at_once(make_network_job: MakeJob, faults: Faults) -> None:
    """The AM is cut off from every other host: it suspects itself, and excludes none (safety L5).

    What it cannot reach ends by itself, and what YARN grants it there cannot be started; after the
    heal everything goes on.
    """
    with Scenario(make_network_job("all-silent")) as scenario:
        scenario.arrange([("0",), ("0-0", "1"), ("1-0",)])
        before = scenario.moment()
        am_host, job = scenario.am_host, scenario.job
        others = [node for node in job.cluster.nodes if node != am_host]
        there = [(c["pid"], c["host"]) for c in before.containers.values()]
        for node in others:
            faults.cut_pair(am_host, node)
        wait_for(lambda: bool(job.get("v1/status")["suspects_itself"]), job)
        assert job.get("v1/status")["excluded_hosts"] == []
        have_ended(job, [pid for pid, host in there if host != am_host])
        # Of each pair one at least is not for the AM's host.
        wait_for(lambda: in_phase(job, "allocated") >= 2, job)
        faults.heal()
        scenario.succeeds(before, "0", "0-0", "1", "1-0")
        # Whose lease ends first is chance, and so is whether a standby is chosen that still runs
        # (it stops, which is no failure), or can be had. What happened is counted, all of it.
        counted = scenario.counted_since(before)
        assert counted.pop("charged", 0) == 0
        assert counted == scenario.told_since(before)
        scenario.ends_well()


@pytest.mark.long
def test_a_host_that_stood_still_comes_back(
    make_network_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """Its containers end themselves as they wake up; the driver orders its launchers to exit."""

    def wakes(scenario: Scenario, children: Sequence[int], lost: str) -> None:
        assert faults.is_lost(lost)
        assert all(alive(pid) for child in children for pid in (child, parent_of(child)))
        # At first no process kills them: only deadline and fence are left.
        for pid in children:
            os.kill(pid, signal.SIGCONT)
        have_ended(scenario.job, children)

    job = make_network_job("paused")
    lost_hosts.the_host_of_an_active(job, faults, ["pause"], announce, wakes)


@pytest.mark.long
def test_a_node_manager_that_stands_still_at_a_start_delays_no_other_container(
    make_network_job: MakeJob, faults: Faults
) -> None:
    """It takes the order to start a container and never answers; Skein's AM waits for it a while.

    It says what it has room for, is given a container while Skein's AM stands still, and stands
    still itself when that comes. A launcher that is killed on another host comes back meanwhile.
    """
    job = make_network_job("mute")
    # A request for the host of this NodeManager must not expire before it is granted.
    with Scenario(job, **{"cluster-manager.container.request.timeout.ms": "60000"}) as scenario:
        mute, other = scenario.arrange([("0", "1-0"), ("0-0", "1")])
        before = scenario.moment()
        faults.pause_manager(mute)
        os.kill(parent_of(before.containers["1-0"]["pid"]), signal.SIGKILL)
        # The AM hears 0, which runs on there: that host is not silent, and the AM requests it.
        wait_for(lambda: is_asked_of_yarn(job, mute), job, every_s=0.05)
        with standing_still(jvm_of(job)):
            had = granted(job, mute)
            faults.resume_manager(mute)
            wait_for(lambda: bool(granted(job, mute) - had), job, every_s=0.05)
            faults.pause_manager(mute)
        wait_for(lambda: job.containers()["1-0"]["phase"] == "allocated", job, every_s=0.05)
        os.kill(parent_of(before.containers["1"]["pid"]), signal.SIGKILL)
        scenario.succeeds(before, "1", "1-0")
        after = scenario.moment()
        assert faults.is_paused(mute)
        assert after.containers["1"]["host"] == other
        assert after.containers["1-0"]["host"] not in {mute, other}
        counts = scenario.counted_since(before)
        counts.pop("charged", 0)
        assert counts == scenario.told_since(before)
        # YARN calls the node lost, or Skein's AM gives up: only that is a launch that failed.
        assert counts.keys() == {"active failures", "standby failures"}
        wait_for(lambda: yarns_word(job, mute) == "LOST", job)
        faults.heal()
        # YARN has given up what ran there, and ends it now that it can.
        scenario.succeeds(after, "0")
        scenario.ends_well()


@pytest.mark.long
@pytest.mark.parametrize("until", ["soon", "lost"])
def test_a_host_that_was_cut_off_comes_back(
    make_network_job: MakeJob, faults: Faults, announce: Announce, until: str
) -> None:
    """Its containers have ended by themselves before another ran; its launchers are sent away.

    It comes back as soon as others have its work, or when YARN has given it up.
    """

    def is_given_up(scenario: Scenario, _: Sequence[int], lost: str) -> None:
        wait_for(lambda: until == "soon" or yarns_word(scenario.job, lost) == "LOST", scenario.job)

    job = make_network_job(f"cut-{until}")
    lost_hosts.the_host_of_an_active(job, faults, ["cut"], announce, is_given_up)


def forget_what_was_elsewhere(scenario: Scenario, active: str) -> None:
    """Its state lies where it and its standby run, and on no host that either has left."""
    job, containers = scenario.job, scenario.recovers()
    owners = {containers[active]["host"], containers[f"{active}-0"]["host"]}
    for node in set(job.cluster.nodes) - owners:
        for task in job.get("")["containers"][active]["tasks"]:
            folder = job.cluster.state_dir(node) / f"{job.name}-1" / "counts"
            shutil.rmtree(folder / task.replace(" ", "_"), ignore_errors=True)


def in_phase(job: Job, phase: str) -> int:
    """How many containers are in that phase."""
    return sum(c["phase"] == phase for c in job.containers().values())


def yarns_word(job: Job, node: str) -> str:
    """What the ResourceManager calls the node; empty where it does not answer."""
    return (node_states(job.cluster.rm_url) or {}).get(node, "")


def is_asked_of_yarn(job: Job, node: str) -> bool:
    """Whether the ResourceManager has been asked for a container on the node, and gave none yet."""
    asked = yarns_page(job, "")["app"].get("resourceRequests", [])
    return any(a["resourceName"] == node and a["numContainers"] for a in asked)


def granted(job: Job, node: str) -> set[str]:
    """The ids of the containers that the application has on the node, by the ResourceManager."""
    attempt = job.application_id.replace("application", "appattempt")
    number = job.get("v1/status")["job"]["attempt"]
    found = yarns_page(job, f"/appattempts/{attempt}_{number:06}/containers").get("container", [])
    return {c["containerId"] for c in found if c["nodeId"].startswith(f"{node}:")}


def yarns_page(job: Job, path: str) -> dict[str, Any]:
    """The JSON that the ResourceManager has of the application."""
    url = f"{job.cluster.rm_url}/ws/v1/cluster/apps/{job.application_id}{path}"
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - of the cluster that the test started
        return dict(json.load(answer))
