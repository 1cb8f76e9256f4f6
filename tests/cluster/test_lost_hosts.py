"""Hosts of their own that are lost: each kind of host, in each way, and then it is back.

The scenarios are those of the local cluster: ``tests/support/lost_hosts.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import lost_hosts
import pytest
from clusters_in_containers import ContainersUnderTest
from yarn_jobs import Job

from tests.faults import Faults

MakeJob = Callable[[str], Job]
Announce = Callable[[str], None]
WAYS = ("kill", "pause", "disconnect", "one-way")

pytestmark = pytest.mark.long


def test_the_host_of_an_active_is_lost(
    make_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """Its standby takes its place."""
    lost_hosts.the_host_of_an_active(make_job("active"), faults, WAYS, announce)


def test_the_host_of_the_am_is_lost(make_job: MakeJob, faults: Faults, announce: Announce) -> None:
    """Each time the next attempt takes over."""
    lost_hosts.the_host_of_the_am(make_job("am"), faults, WAYS, announce)


def test_the_host_of_kafka_is_lost(make_job: MakeJob, faults: Faults, announce: Announce) -> None:
    """All containers end, and come back with it."""
    lost_hosts.the_host_of_kafka(make_job("kafka"), faults, WAYS, announce)


def test_the_host_of_zookeeper_is_lost(
    make_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """The job is not disturbed."""
    lost_hosts.the_host_of_zookeeper(make_job("zookeeper"), faults, WAYS, announce)


def test_no_container_ends_in_a_minute_without_resource_manager(make_job: MakeJob) -> None:
    """It is dead for a minute, then another one takes over from its records."""
    lost_hosts.a_minute_without_resource_manager(make_job("unmanaged"))


def test_the_host_of_the_resource_manager_is_lost(
    make_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """No container ends meanwhile; then YARN starts the next attempt."""
    ways = [way for way in WAYS if way != "kill"]
    lost_hosts.the_host_of_the_resource_manager(make_job("rm"), faults, ways, announce)


def test_a_node_that_starts_again_between_two_runs_has_its_volume(
    cluster: ContainersUnderTest, make_job: MakeJob, faults: Faults
) -> None:
    """It is stopped in order: containers are at home again, and none is restored in full."""
    job = make_job("home")
    lost_hosts.a_host_that_starts_again_between_two_runs(job, faults, cluster.restart_node)


def test_a_full_disk_is_named_and_costs_nothing(make_job: MakeJob) -> None:
    """A node's state is on a disk of its own, which gets full."""
    lost_hosts.a_disk_that_is_full(make_job("full"))
