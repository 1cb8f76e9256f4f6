"""A network that breaks in one place: cut-off containers end, their work goes on elsewhere.

Each scenario is fed all the while; a cut stays until the job works again around it, then it heals,
and the end is good: calm, an exact result, a sound history, nothing accepted from a container that
was cut off, no process left over.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

import lost_hosts
import pytest
from cut_off_active import incarnation, isolate_an_active
from failover_scenarios import LEASE_MS, Moment, Scenario
from last_writes import LastWrites, ProcessEnd, stamped_by_the_broker
from yarn_jobs import Job, alive, parent_of

from tests.faults import Faults

MakeJob = Callable[[str], Job]
Announce = Callable[[str], None]
LONG_ISOLATION_MS = 60_000
"""Long enough for the next attempt to begin while the isolated one's leases are renewed still."""
PROGRAMS = ("supervisor", "lease_keeper", "application_master")
"""Of the AM."""


def on(moment: Moment, host: str) -> set[str]:
    """The processors that ran on the host in that moment."""
    return {p for p, c in moment.containers.items() if c["host"] == host}


def untouched(scenario: Scenario, before: Moment, processors: set[str]) -> None:
    """These are the processes that they were."""
    now = scenario.job.containers()
    for processor in processors:
        then = before.containers[processor]
        assert (now[processor]["epoch"], now[processor]["pid"]) == (then["epoch"], then["pid"])


# ---------------------------------------------------------------------- an active, cut off


def test_an_isolated_active_ends_within_its_lease_and_writes_nothing_after_the_fence(
    make_network_job: MakeJob, faults: Faults, announce: Callable[[str], None]
) -> None:
    """Its host loses the AM first, goes on writing, then loses everything: no renewal comes later.

    From its last accepted write to its end it is a lease at most; and the successor's fence is
    later than both.
    """
    isolate_an_active(make_network_job("isolated"), faults, announce)


# ---------------------------------------------------------------------- the AM, cut off


@pytest.mark.long
def test_an_isolated_am_is_followed_and_ends_by_itself(
    make_network_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """The next attempt begins while this one renews the leases of its host, and waits those out.

    This one goes while it is still cut off: driver, keeper and supervisor, then its launchers.
    """
    job = make_network_job("orphaned")

    def go(_: Scenario, lonely: Sequence[int], host: str) -> None:
        there = [p for p in job.cluster.living() if p.node == host]
        programs = [p.pid for p in there if any(f".{name}" in p.command for name in PROGRAMS)]
        assert len(programs) >= len(PROGRAMS)
        assert any(alive(pid) for pid in lonely), "its leases are renewed for longer than that"
        lost_hosts.have_ended(job, lonely)
        lost_hosts.have_ended(job, programs)
        assert faults.is_cut(host, "rm")

    values = {"job.coordinator.isolation.max.ms": str(LONG_ISOLATION_MS)}
    lost_hosts.the_host_of_the_am(job, faults, ["cut"], announce, go, **values)


@pytest.mark.long
def test_an_am_that_is_cut_from_one_node_starts_containers_on_all_others(
    make_network_job: MakeJob, faults: Faults, announce: Callable[[str], None]
) -> None:
    """That node reaches Kafka and the ResourceManager: its containers write until they end.

    A launcher there is killed too, so that YARN reports the host as live and the driver requests it
    again: Skein waits for a NodeManager that does not answer. A launcher that is killed on another
    host comes back all the same, while that lasts.
    """
    job = make_network_job("unheard")
    with Scenario(job) as scenario:
        cut_off, other = scenario.arrange([["0", "1-0"], ["1", "0-0"]])
        stamped_by_the_broker(job)
        before = scenario.moment()
        launcher = parent_of(before.containers["1-0"]["pid"])
        end = ProcessEnd(before.containers["0"]["pid"])
        faults.cut_pair(scenario.am_host, cut_off)
        os.kill(launcher, signal.SIGKILL)
        os.kill(parent_of(before.containers["0-0"]["pid"]), signal.SIGKILL)
        scenario.succeeds(before, *before.containers.keys() - {"1"})
        after = scenario.moment()
        assert faults.is_cut(scenario.am_host, cut_off)
        assert on(before, cut_off) == {"0", "1-0"}
        assert not on(after, cut_off)
        last = LastWrites.of(job, incarnation(before, "0"), end, incarnation(after, "0"))
        announce(
            f"last accepted write to own end {last.outlived_ms} ms of {LEASE_MS} ms of lease; "
            f"to the successor's fence {last.fenced_ms - last.accepted_ms} ms; "
            f"accepted after that {last.late_count} of {last.count} batches"
        )
        assert last.outlived_ms <= LEASE_MS
        assert last.accepted_ms <= last.ended_ms < last.fenced_ms
        assert last.late_count == 0
        assert other in {c["host"] for c in after.containers.values()}
        # Which lease ends first is chance. If it is 0's, then 0-0 stops, which is no failure. If it
        # is not 1-0's, the host is not silent, and may be asked for a launcher in vain.
        counts = scenario.counted_since(before)
        counts.pop("charged", 0)
        assert counts == scenario.told_since(before)
        assert counts["failed over to a standby"] == 1
        assert counts.keys() <= {"active failures", "standby failures", "failed over to a standby"}
        faults.heal()
        scenario.ends_well()


# ---------------------------------------------------------------------- Kafka, out of reach


@pytest.mark.long
def test_a_node_that_is_cut_from_kafka_alone_gives_its_containers_away(
    make_network_job: MakeJob, faults: Faults
) -> None:
    """Their leases are renewed, as the AM hears both; they end as their host does not reach Kafka.

    Nothing is charged, and no other container is touched.
    """
    job = make_network_job("dry")
    with Scenario(job) as scenario:
        dry, _ = scenario.arrange([["0", "1-0"], ["1", "0-0"]])
        before = scenario.moment()
        faults.cut_pair(dry, "kafka")
        scenario.succeeds(before, "0", "1-0")
        after = scenario.moment()
        assert faults.is_cut(dry, "kafka")
        assert not on(after, dry)
        assert after.containers["0"]["host"] == before.containers["0-0"]["host"]
        untouched(scenario, before, {"1"})
        assert scenario.counted_since(before) == _each_end_once(before, after)
        causes = {f["cause"] for f in job.get("v1/status")["failures"]}
        # A transaction that was under way may be given up before: one more start there.
        assert "cut-off" in causes
        assert causes <= {"cut-off", "unavailable"}
        faults.heal()
        scenario.ends_well()


def _each_end_once(before: Moment, after: Moment) -> dict[str, int]:
    """What is counted where 0 and 1-0 were on a host that is cut off, and nothing is charged.

    Each has ended once for each permit since; 0 has taken its standby's place once.
    """
    ends = {p: c["epoch"] - before.containers[p]["epoch"] for p, c in after.containers.items()}
    return {
        "active failures": ends["0"],
        "standby failures": ends["1-0"],
        "failed over to a standby": 1,
    }


# ---------------------------------------------------------------------- one way only


@pytest.mark.long
@pytest.mark.parametrize(
    ("sender", "receiver"), [("node", "am"), ("am", "node"), ("node", "kafka"), ("kafka", "node")]
)
def test_a_loss_in_one_direction_is_recovered_like_one_in_both(
    make_network_job: MakeJob, faults: Faults, sender: str, receiver: str
) -> None:
    """Questions that get no answer, and answers to questions that did not come, are none."""
    job = make_network_job(f"from-{sender}-to-{receiver}")
    with Scenario(job) as scenario:
        node, _ = scenario.arrange([["0", "1-0"], ["1", "0-0"]])
        before = scenario.moment()
        place = {"node": node, "am": scenario.am_host, "kafka": "kafka"}
        faults.cut_one_way(place[sender], place[receiver])
        scenario.succeeds(before, "0", "1-0")
        after = scenario.moment()
        assert faults.is_cut(place[sender], place[receiver])
        assert not on(after, node)
        untouched(scenario, before, {"1"})
        assert scenario.counted_since(before) == _each_end_once(before, after)
        faults.heal()
        scenario.ends_well()


# ---------------------------------------------------------------------- the ResourceManager


@pytest.mark.long
def test_no_container_ends_in_a_minute_without_resource_manager(make_network_job: MakeJob) -> None:
    """A processor that needs no new YARN container returns at once, others with the RM."""
    lost_hosts.a_minute_without_resource_manager(make_network_job("unmanaged"))


@pytest.mark.long
def test_the_host_of_the_resource_manager_is_cut_off(
    make_network_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """No container ends meanwhile; then YARN starts the next attempt."""
    job = make_network_job("unheard-of")
    lost_hosts.the_host_of_the_resource_manager(job, faults, ["cut"], announce)


# ---------------------------------------------------------------------- Kafka's host


@pytest.mark.long
def test_the_host_of_kafka_is_cut_off(
    make_network_job: MakeJob, faults: Faults, announce: Announce
) -> None:
    """All containers end, and come back with it."""
    lost_hosts.the_host_of_kafka(make_network_job("drained"), faults, ["cut"], announce)
