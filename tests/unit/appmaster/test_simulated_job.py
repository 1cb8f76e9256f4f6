"""The allocator on a simulated cluster: whatever goes wrong, calm heals it, and nothing leaks.

All invariants are held against every step.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from simulated_cluster import Faults, SimulatedCluster, roomy
from simulated_job import SimulatedJob

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.protocol.observation import SkeinContainerState
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.allocation.shortage import shortage
from homeport.job_coordinator.model.ids import Host, ProcessorId

A, B, C = Host("a"), Host("b"), Host("c")
SIZE_MB = 1024
LEASE_MS = 4000
EXPIRY_MS = 2000
ROUGH = Faults(
    refused=0.1,
    lost=0.15,
    doubled=0.15,
    letter_ms=(1, 300),
    grant_ms=(10, 1500),
    slow={B: 4},
)
"""Calls fail, messages are lost, doubled and reordered, and b is slow."""


SETTINGS = AllocatorSettings(
    host_affinity_enabled=True,
    retry_count=-1,
    retry_window_ms=60_000,
    fail_job_after_retries=True,
    request_timeout_ms=EXPIRY_MS,
    check_in_timeout_ms=10_000,
    launch_retry_ms=100,
    silence_ms=1000,
    exclusion_ms=3000,
    container_memory_mb=SIZE_MB,
    container_cores=1,
)
"""Failures are forgiven: what is tested here is that everything heals."""
QUICK = 4
"""So many rough times in every run; the others take seconds more."""


def job_of(
    cluster: SimulatedCluster,
    homes: Mapping[str, Host | None],
    standbys: Mapping[str, str] | None = None,
) -> SimulatedJob:
    """A job of these processors."""
    pairs = {ProcessorId(s): ProcessorId(a) for s, a in (standbys or {}).items()}
    return SimulatedJob(cluster, SETTINGS, {ProcessorId(p): h for p, h in homes.items()}, pairs)


def cluster_of(*hosts: str, faults: Faults | None = None, seed: int = 0) -> SimulatedCluster:
    """Hosts with room for four containers each."""
    return SimulatedCluster(
        roomy(*hosts, memory_mb=4 * SIZE_MB),
        seed=seed,
        faults=faults,
        container=(SIZE_MB, 1),
        node_expiry_ms=6000,
        lease_ms=LEASE_MS,
    )


def hosts_of(job: SimulatedJob) -> dict[str, Host]:
    """{processor: the host on which a launcher really runs it}; what stands still does not run."""
    moving = (x for x in job.cluster.launchers() if not x.is_still)
    found = [(x.running.processor_id, x.host) for x in moving if x.running]
    assert max(Counter(p for p, _ in found).values(), default=1) == 1, found
    return dict(found)


def outstanding(job: SimulatedJob) -> list[str]:
    """Skein's containers that have not ended."""
    reports = job.cluster.reports().items()
    return [s for s, r in reports if r.container.state is not SkeinContainerState.ENDED]


def test_containers_start_at_home() -> None:
    """Each on the host with its state; one without a home where most room is; nothing is left."""
    job = job_of(cluster_of("a", "b", "c"), {"0": C, "1": A, "2": None})
    job.run(10_000)
    assert hosts_of(job) == {"0": C, "1": A, "2": B}
    assert job.phases() == {ContainerPhase.RUNNING}
    assert (job.asked, len(outstanding(job))) == (3, 3)


def test_a_full_home_is_left_for_a_host_with_room() -> None:
    """One expiry, then at once the host that has room, not the one that is full too."""
    cluster = cluster_of("a", "b", "c")
    cluster.occupy(A, 4 * SIZE_MB)
    cluster.occupy(B, 4 * SIZE_MB)
    job = job_of(cluster, {"0": A})
    job.run(10_000)
    assert hosts_of(job) == {"0": C}
    assert job.asked == 2


def test_what_is_preempted_comes_back() -> None:
    """The cluster took it back: it is asked for again, at home."""
    job = job_of(cluster_of("a", "b"), {"0": A})
    job.run(5000)
    (container,) = job.state.containers
    job.cluster.end(next(iter(job.cluster.ledger.values())))
    job.run(3 * LEASE_MS)
    assert hosts_of(job) == {"0": A}
    assert job.state.container(container.processor_id) != container


def test_a_launcher_that_checks_in_while_it_is_being_ended_is_not_permitted() -> None:
    """Slow to start, it was given up and its request cancelled while its first word was on its way.

    A permit would go to a dead launcher, and its container wait out a lease: its first epoch runs.
    """
    slow = Faults(grant_ms=(10, 10), launch_ms=(2500, 2500), letter_ms=(300, 300))
    settings = replace(SETTINGS, check_in_timeout_ms=2200)
    job = SimulatedJob(cluster_of("a", "b", faults=slow), settings, {ProcessorId("0"): A})
    job.run(2750)
    assert job.state.cancelled
    job.cluster.faults = Faults()
    job.run(LEASE_MS // 2)
    (container,) = job.state.containers
    assert (container.phase, container.epoch) == (ContainerPhase.RUNNING, 1)
    assert hosts_of(job) == {"0": B}
    job.run(3 * LEASE_MS)
    all_is_well(job, {"0"})
    assert not job.state.cancelled


def test_capacity_that_stays_short_is_asked_for_in_rounds_and_said() -> None:
    """No request more than one per expiry and container, and none of them is left over."""
    cluster = cluster_of("a", "b")
    for host in (A, B):
        cluster.occupy(host, 4 * SIZE_MB - 500)
    job = job_of(cluster, {"0": A, "1": B})
    minute = 60_000
    job.run(minute)
    assert job.asked <= 2 * (minute // EXPIRY_MS + 1)
    assert len(outstanding(job)) == 2
    told = shortage(job.state, cluster.hosts())
    assert told is not None
    assert told.hosts == dict.fromkeys((A, B), "has 500 of 4096 MB and 64 of 64 cores free")
    cluster.occupy(B, -SIZE_MB)
    job.run(3 * EXPIRY_MS)
    assert len(hosts_of(job)) == 1
    cluster.occupy(A, -SIZE_MB)
    job.run(5 * EXPIRY_MS)
    assert job.phases() == {ContainerPhase.RUNNING}


def test_a_container_that_no_host_can_hold_is_never_asked_for() -> None:
    """Skein's AM lives, and the job ends FAILED with one line."""
    cluster = SimulatedCluster(roomy("a", "b", memory_mb=512), container=(SIZE_MB, 1))
    job = job_of(cluster, {"0": A})
    job.run(20_000)
    assert (job.asked, cluster.is_am_gone) == (0, False)
    assert job.end is not None
    assert job.end.result.value == "FAILED"
    assert "one needs 1024 MB" in job.end.diagnostics
    assert "\n" not in job.end.diagnostics


def test_the_loss_of_the_only_large_host_is_waited_out() -> None:
    """Nobody asks meanwhile: a refused request would end Skein's AM and all that runs."""
    large, small = roomy("a"), roomy("b", memory_mb=512)
    cluster = SimulatedCluster((*large, *small), container=(SIZE_MB, 1), lease_ms=LEASE_MS)
    job = job_of(cluster, {"0": A})
    job.run(5000)
    cluster.kill_host(A)
    job.run(60_000)
    assert not cluster.is_am_gone
    assert job.end is None
    asked = job.asked
    cluster.start_host(A)
    job.run(20_000)
    assert hosts_of(job) == {"0": A}
    assert job.asked == asked + 1


def rough_time(
    job: SimulatedJob, dice: random.Random, standbys: Mapping[str, str] | None = None
) -> None:
    """Hosts die and come back, or stand still; containers are preempted and fail. Then calm.

    At all times each processor runs once, and no standby beside its active one (Invariant-1).
    """
    cluster = job.cluster
    hosts = tuple(r.host for r in cluster.hosts())
    dead: set[Host] = set()
    for _ in range(20):
        job.run(dice.randint(500, 6000))
        host = dice.choice(hosts)
        match dice.randrange(6):
            case 0 if len(dead) < len(hosts) - 1:
                cluster.kill_host(host)
                dead.add(host)
            case 1 if host in dead:
                cluster.start_host(host)
                dead.discard(host)
            case 2:
                cluster.stand_still(host, dice.randint(1000, 3 * LEASE_MS))
            case 3:
                for launcher in cluster.launchers()[:2]:
                    launcher.child_ends()
            case 4:
                numbers = [r.container.request_id for r in cluster.reports().values()]
                cluster.end(dice.choice([n for n in numbers if n is not None]))
        places = hosts_of(job)
        for standby, active in (standbys or {}).items():
            assert standby not in places or places[standby] != places.get(active)
    for host in dead:
        cluster.start_host(host)
    cluster.faults = Faults()
    job.run(60_000)


def all_is_well(job: SimulatedJob, processors: Collection[str]) -> None:
    """Every container runs, and no request, container or launcher is left over."""
    assert job.phases() == {ContainerPhase.RUNNING}
    assert sorted(hosts_of(job)) == sorted(processors)
    assert len(outstanding(job)) == len(processors)
    assert len(job.cluster.launchers()) == len(processors)


rough = pytest.mark.parametrize(
    "seed",
    [*range(QUICK), *(pytest.param(n, marks=pytest.mark.search) for n in range(QUICK, 25))],
)


@rough
def test_a_rough_time_heals(seed: int) -> None:
    """Six containers on three hosts: whatever was lost, late or refused, in the end all run."""
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    cluster = cluster_of("a", "b", "c", faults=ROUGH, seed=seed)
    homes = {str(n): dice.choice([A, B, C, None]) for n in range(6)}
    job = job_of(cluster, homes)
    rough_time(job, dice)
    all_is_well(job, homes)


@rough
def test_a_rough_time_of_pairs_heals(seed: int) -> None:
    """STANDBY: in the end both of each pair run again, on two hosts (Invariant-1)."""
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    cluster = cluster_of("a", "b", "c", "d", faults=ROUGH, seed=seed)
    pairs = {f"{n}-0": str(n) for n in range(3)}
    homes = {p: dice.choice([A, B, C, None]) for p in pairs.values()} | dict.fromkeys(pairs)
    job = job_of(cluster, homes, pairs)
    rough_time(job, dice, pairs)
    all_is_well(job, homes)
    places = hosts_of(job)
    assert all(places[standby] != places[active] for standby, active in pairs.items())
