"""The simulated cluster keeps the contract of the real one, and what it does follows from its seed.

What tests of the AM prove on it is worth as much as this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from cluster_resource_manager_conformance import ClusterResourceManagerConformance
from simulated_cluster import Faults, SimulatedCluster, SimulatedResourceManager, roomy
from simulated_launchers import Launcher, Letter

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Started, Stopped
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

A, B, C = Host("a"), Host("b"), Host("c")
FIRST = Incarnation(ProcessorId("0"), 1)
SECOND = Incarnation(ProcessorId("0"), 2)
LEASE_MS = 3000
ORDERLY = Faults()


class SimulatedSubject:
    """Three hosts with room for two each."""

    hosts = (A, B, C)
    container_mb = 6144

    def __init__(self) -> None:
        hosts = roomy(*self.hosts)
        self._cluster = SimulatedCluster(hosts, container=(self.container_mb, 1))

    def manager(self) -> SimulatedResourceManager:
        """What the attempt's next driver has."""
        return self._cluster.manager()

    def until(self, condition: Callable[[], bool]) -> None:
        """Time passes until ``condition`` holds."""
        for _ in range(1000):
            if condition():
                return
            self._cluster.advance(50)
        raise AssertionError("it did not come true")

    def pass_polls(self) -> None:
        """Longer than a grant takes."""
        self._cluster.advance(1000)

    def host_of(self, report: ResourceReport) -> Host:
        """Where its launcher lives."""
        self.until(lambda: any(x.resource_id == report.resource_id for x in self.launchers()))
        return next(x.host for x in self.launchers() if x.resource_id == report.resource_id)

    def exit(self, report: ResourceReport) -> None:
        """As YARN tells of an exit code above 0."""
        assert report.container.request_id is not None
        self._cluster.end(report.container.request_id, "Container failed", is_taken_back=False)

    def kill_host(self, host: Host) -> None:
        """The machine is dead."""
        self._cluster.kill_host(host)

    def start_host(self, host: Host) -> None:
        """The machine is back."""
        self._cluster.start_host(host)

    def is_over(self) -> bool:
        """Whether the result is there."""
        return self._cluster.result == (JobResult.FAILED, "the reason")

    def launchers(self) -> tuple[Launcher, ...]:
        """Those that live."""
        return self._cluster.launchers()


class TestSimulatedCluster(ClusterResourceManagerConformance):
    """The suite that Skein's passes too."""

    @pytest.fixture
    def subject(self) -> SimulatedSubject:
        """The cluster, without faults."""
        return SimulatedSubject()


def cluster_with_launcher(faults: Faults = ORDERLY, seed: int = 0) -> SimulatedCluster:
    """One host, one launcher that lives there."""
    cluster = SimulatedCluster(roomy("a"), seed=seed, faults=faults, lease_ms=LEASE_MS)
    cluster.manager().request(RequestId(1), A, {})
    while not cluster.launchers():
        cluster.advance(50)
    return cluster


def order(kind: OrderKind, incarnation: Incarnation | None = None) -> Order:
    """What the AM answers to a check-in."""
    return Order(kind, 500, LEASE_MS, incarnation)


def served(
    cluster: SimulatedCluster, ms: int, kind: OrderKind, incarnation: Incarnation | None = None
) -> list[Letter]:
    """All that arrives within this time; each check-in is answered by that order."""
    found: list[Letter] = []
    for _ in range(ms // 50):
        cluster.advance(50)
        for letter in cluster.letters():
            found.append(letter)
            is_poll = isinstance(letter.message, CheckIn)
            cluster.answer(letter, order(kind, incarnation) if is_poll else None)
    return found


def reports(letters: list[Letter]) -> list[Started | Stopped]:
    """What is no poll."""
    return [x.message for x in letters if not isinstance(x.message, CheckIn)]


def test_a_launcher_runs_a_child_and_stops_it() -> None:
    """Told ``run``, told it again, told ``stop``: one start and one stop; then it may exit."""
    cluster = cluster_with_launcher()
    assert reports(served(cluster, 3000, OrderKind.RUN, FIRST)) == [Started(FIRST)]
    (launcher,) = cluster.launchers()
    assert launcher.running == FIRST
    told = reports(served(cluster, 3000, OrderKind.STOP, FIRST))
    assert told[0] == Stopped(FIRST, StopCause.ORDERED, 143)
    assert Started(FIRST) not in told
    served(cluster, 1000, OrderKind.EXIT)
    assert cluster.launchers() == ()


def test_a_launcher_has_one_child_per_epoch() -> None:
    """Safety C4: an epoch that has ended, or was never run, is answered by ``stopped``."""
    cluster = cluster_with_launcher()
    served(cluster, 2000, OrderKind.RUN, FIRST)
    cluster.launchers()[0].child_ends()
    told = reports(served(cluster, 2000, OrderKind.RUN, FIRST))
    assert told[0] == Stopped(FIRST, StopCause.FAILED, 1)
    assert told[1:] == [Stopped(FIRST, StopCause.ORDERED, 0)] * (len(told) - 1)
    assert Stopped(SECOND, StopCause.ORDERED, 0) in reports(
        served(cluster, 2000, OrderKind.STOP, SECOND)
    )
    told = reports(served(cluster, 2000, OrderKind.RUN, SECOND))
    assert Started(SECOND) not in told


def test_a_launcher_that_is_not_answered_ends_its_child_and_stays() -> None:
    """Safety C1, C6: the lease counts from the sending of the last letter that was answered."""
    cluster = cluster_with_launcher()
    served(cluster, 2000, OrderKind.RUN, FIRST)
    cluster.advance(LEASE_MS + 1000)
    (launcher,) = cluster.launchers()
    assert launcher.running is None
    told = reports(served(cluster, 2000, OrderKind.WAIT))
    assert {x.cause for x in told if isinstance(x, Stopped)} == {StopCause.LEASE_LOST}


def test_a_host_that_stood_still_wakes_up_without_its_child() -> None:
    """Nothing is heard of it meanwhile, and the ResourceManager takes it to live."""
    cluster = cluster_with_launcher()
    served(cluster, 2000, OrderKind.RUN, FIRST)
    cluster.stand_still(A, 2 * LEASE_MS)
    served(cluster, 100, OrderKind.WAIT)  # what was under way
    assert served(cluster, 2 * LEASE_MS - 200, OrderKind.WAIT) == []
    assert cluster.manager().hosts()[0].is_live
    told = reports(served(cluster, 2000, OrderKind.WAIT))
    assert told[0] == Stopped(FIRST, StopCause.LEASE_LOST, 71)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_lost_late_or_doubled_heals(seed: int) -> None:
    """A quarter of the letters and answers lost, another twice, on a host five times as slow."""
    faults = Faults(lost=0.25, doubled=0.25, letter_ms=(1, 200), slow={A: 5})
    cluster = SimulatedCluster(roomy("a"), seed=seed, faults=faults, lease_ms=30_000)
    cluster.manager().request(RequestId(1), A, {})
    told = reports(served(cluster, 60_000, OrderKind.RUN, FIRST))
    assert told == [Started(FIRST)] * len(told) != []
    told = reports(served(cluster, 60_000, OrderKind.STOP, FIRST))
    assert Stopped(FIRST, StopCause.ORDERED, 143) in told
    served(cluster, 60_000, OrderKind.WAIT)
    assert reports(served(cluster, 60_000, OrderKind.WAIT)) == []


@pytest.mark.parametrize("seed", range(20))
def test_calls_that_fail_leave_no_container_that_nobody_knows(seed: int) -> None:
    """Before or after they took effect; whoever repeats them gets one container per request."""
    faults = Faults(refused=0.5)
    cluster = SimulatedCluster(roomy("a", "b"), seed=seed, faults=faults)
    manager = cluster.manager()
    for number in range(1, 6):
        insist(partial(manager.request, RequestId(number), None, {}))
    insist(manager.resources)
    cluster.advance(2000)
    insist(manager.resources)
    assert sorted(r.container.request_id or 0 for r in live(cluster)) == [1, 2, 3, 4, 5]
    for number in range(1, 6):
        insist(partial(manager.cancel, RequestId(number)))
    assert live(cluster) == []


def insist(call: Callable[[], object]) -> None:
    """Made until it is answered."""
    for _ in range(100):
        try:
            call()
        except UnavailableError:
            continue
        return
    raise AssertionError("never answered")


def live(cluster: SimulatedCluster) -> list[ResourceReport]:
    """The containers that have not ended, whoever asked for them."""
    return [r for r in cluster.reports().values() if r.container.state.value != "ended"]


def test_the_same_seed_is_the_same_story() -> None:
    """Every letter, to the millisecond; another seed is another story."""

    def story(seed: int) -> list[Letter]:
        faults = Faults(lost=0.2, doubled=0.2, letter_ms=(1, 900))
        return served(cluster_with_launcher(faults, seed), 20_000, OrderKind.RUN, FIRST)

    assert story(1) == story(1)
    assert story(1) != story(2)


def test_a_container_larger_than_every_host_ends_skeins_am() -> None:
    """Measured on YARN 3.5.0: the ResourceManager refuses the request, and the AM dies of it."""
    cluster = SimulatedCluster(roomy("a", memory_mb=512))
    manager = cluster.manager()
    with pytest.raises(UnavailableError):
        manager.request(RequestId(1), A, {})
    with pytest.raises(UnavailableError):
        manager.resources()
