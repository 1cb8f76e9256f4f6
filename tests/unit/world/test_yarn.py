"""The YARN of this world keeps the contract of the real one; how the product acts on it.

A proof in this world holds for a real cluster only as far as the contract does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from types import SimpleNamespace

import pytest
from cluster_resource_manager_conformance import ClusterResourceManagerConformance

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host, RequestId
from tests.unit.world.am import TOKEN, Attempt
from tests.unit.world.scene import Scene
from tests.unit.world.world import World
from tests.unit.world.yarn import GRANT_MS, HOST_MB, Manager, Nodes, Yarn, YarnContainer

A, B, C = Host("a"), Host("b"), Host("c")
MINUTE_MS = 60_000
EXPIRY_MS = 5_000
"""The default of ``cluster-manager.container.request.timeout.ms``."""


class Subject:
    """Three hosts with room for two each."""

    hosts = (A, B, C)
    container_mb = HOST_MB // 2 - 512

    def __init__(self) -> None:
        world = World()
        self.clock = world.clock
        world.launch = lambda _, granted: self.clock.process(granted.skein_id, granted.host)
        self.nodes = Nodes(dict.fromkeys(self.hosts, True))
        attempt = SimpleNamespace(name="am", rank=Rank(1, "application_1_0001", 1))
        self.yarn = Yarn(world, self.nodes, attempt, self.container_mb)

    def manager(self) -> Manager:
        """What the attempt's next driver has."""
        return self.yarn.manager()

    def until(self, condition: Callable[[], bool]) -> None:
        """Time passes until ``condition`` holds."""
        for _ in range(1000):
            if condition():
                return
            self.clock.run(GRANT_MS)
        raise AssertionError("it did not come true")

    def pass_polls(self) -> None:
        """Longer than a grant takes."""
        self.clock.run(2 * GRANT_MS)

    def container(self, report: ResourceReport) -> YarnContainer:
        """The container of this report."""
        return next(c for c in self.yarn.everything() if c.resource_id == report.resource_id)

    def host_of(self, report: ResourceReport) -> Host:
        """Where it runs."""
        host = self.container(report).host
        assert host is not None
        return host

    def has_started(self, report: ResourceReport) -> bool:
        """Whether its launcher is there."""
        return self.container(report).process is not None

    def exit(self, report: ResourceReport) -> None:
        """Its launcher ends with exit code 1."""
        process = self.container(report).process
        assert process is not None
        process.ended(1)

    def kill_host(self, host: Host) -> None:
        """The machine is dead."""
        self.nodes.lose(host)

    def start_host(self, host: Host) -> None:
        """The machine is back."""
        self.nodes.start(host)

    def is_over(self) -> bool:
        """Whether the result is there."""
        return self.yarn.result == (JobResult.FAILED, "the reason")


class TestYarn(ClusterResourceManagerConformance):
    """The suite that Skein's resource manager passes too."""

    @pytest.fixture
    def subject(self) -> Subject:
        """The cluster, without faults."""
        return Subject()


def outstanding(yarn: Yarn) -> list[RequestId]:
    """The requests of all containers that have not ended, known to the driver or not."""
    left = (c for c in yarn.everything() if c.state is not SkeinContainerState.ENDED)
    return sorted(c.request_id for c in left)


@pytest.mark.parametrize("seed", range(20))
def test_calls_that_fail_leave_no_unknown_container(seed: int) -> None:
    """A call fails before or after it takes effect; its repetition leads to one container."""
    dice = Random(seed)  # noqa: S311 - repeatable, not secret
    subject = Subject()
    manager = subject.manager()

    def insist(call: Callable[[], object]) -> None:
        subject.yarn.faults.extend(dice.random() < 0.5 for _ in range(dice.randrange(4)))
        while True:
            try:
                call()
            except UnavailableError:
                continue
            return

    for number in range(1, 6):
        insist(partial(manager.request, RequestId(number), None, {}))
    insist(manager.resources)
    subject.pass_polls()
    insist(manager.resources)
    assert outstanding(subject.yarn) == [1, 2, 3, 4, 5]
    for number in range(1, 6):
        insist(partial(manager.cancel, RequestId(number)))
    assert outstanding(subject.yarn) == []


def test_a_container_larger_than_every_host_ends_skeins_am() -> None:
    """Measured on YARN 3.5.0: the ResourceManager refuses the request, and the AM dies of it."""
    subject = Subject()
    subject.nodes.memory_mb.update(dict.fromkeys(subject.hosts, 512))
    manager = subject.manager()
    with pytest.raises(UnavailableError):
        manager.request(RequestId(1), A, {})
    with pytest.raises(UnavailableError):
        manager.resources()


# --- how the whole product acts on it


def asked(attempt: Attempt) -> list[Host | None]:
    """The requested hosts, in order; None: any."""
    return [c.wanted for c in attempt.yarn.containers.values()]


def lose_launcher(scene: Scene, child: str) -> None:
    """Its launcher is killed, and the child with it."""
    scene.hosts.launcher_of(scene.hosts.child(child)).kill()


def test_a_full_home_is_left_for_a_host_with_room(scene: Scene) -> None:
    """One expiry, then at once the host that has room, not the one that is full too."""
    attempt = scene.working()
    for host in (A, B):
        scene.cluster.nodes.occupy(host, HOST_MB)
    lose_launcher(scene, "0@1")
    scene.work()
    assert scene.hosts.child("0@2").host == C
    assert asked(attempt) == [A, A, C]
    assert outstanding(attempt.yarn) == [3]


def test_a_preempted_container_comes_back(scene: Scene) -> None:
    """The cluster took it back: it is requested again, at home."""
    attempt = scene.working()
    attempt.yarn.end(RequestId(1))
    scene.work()
    assert scene.hosts.child("0@2").host == A
    assert asked(attempt) == [A, A]


@pytest.mark.world(2, 2)
def test_missing_capacity_is_requested_in_rounds_and_reported(scene: Scene) -> None:
    """At most one request per expiry and container, and no request is left over."""
    attempt = scene.working()
    nodes = scene.cluster.nodes
    for host in nodes.hosts:
        nodes.occupy(host, HOST_MB - 500)
    before = len(asked(attempt))
    for child in ("0@1", "1@1"):
        lose_launcher(scene, child)
    scene.run(MINUTE_MS)
    assert len(asked(attempt)) - before <= 2 * (MINUTE_MS // EXPIRY_MS + 1)
    # Where one is cancelled, the next is made in the other container's turn.
    scene.until(lambda: len(outstanding(attempt.yarn)) == 2, "both wait", EXPIRY_MS)
    assert len(outstanding(attempt.yarn)) == 2
    hosts = attempt.status()["waiting"]["hosts"]
    assert set(hosts) == {A, B, C}
    assert all("has 500 of 8192 MB" in why for why in hosts.values())
    nodes.occupy(B, HOST_MB - 1024)
    scene.until(lambda: scene.started() == 3, "one of them runs", 3 * EXPIRY_MS)
    nodes.occupy(A, 0)
    scene.until(lambda: scene.started() == 4, "both run", 5 * EXPIRY_MS)
    scene.work()
    assert len(outstanding(attempt.yarn)) == 2


def test_a_container_that_no_host_can_hold_is_never_requested(scene: Scene) -> None:
    """Skein's AM lives, and the job ends FAILED with one line."""
    nodes = scene.cluster.nodes
    nodes.memory_mb.update(dict.fromkeys(nodes.hosts, 512))
    attempt = scene.attempt()
    scene.until(lambda: attempt.yarn.result is not None, "the job has ended", 3 * MINUTE_MS)
    assert attempt.yarn.result is not None
    result, diagnostics = attempt.yarn.result
    assert result is JobResult.FAILED
    assert "one needs 1024 MB" in diagnostics
    assert "\n" not in diagnostics
    assert asked(attempt) == []


@pytest.mark.parametrize("phase_ms", range(0, 1000, 125))
def test_the_loss_of_the_only_large_host_is_waited_out(scene: Scene, phase_ms: int) -> None:
    """The allocator requests nothing meanwhile: a refusal would end Skein's AM and the job.

    Whether the driver has just looked at the hosts, or is about to.
    """
    nodes = scene.cluster.nodes
    nodes.memory_mb.update({B: 512, C: 512})
    attempt = scene.working()
    scene.run(phase_ms)
    nodes.lose(A)
    scene.run(2 * MINUTE_MS)
    before = asked(attempt)
    assert attempt.yarn.result is None
    nodes.start(A)
    scene.work()
    assert scene.hosts.child("0@2").host == A
    assert asked(attempt) == [*before, A]


@pytest.mark.world(config={"cluster-manager.container.retry.count": "0"})
def test_a_request_that_is_refused_is_a_launch_that_failed(scene: Scene) -> None:
    """It counts for the retry keys, and the diagnostics have the reason."""

    def refuse(*_: object) -> None:
        raise UnavailableError("the cluster refuses")

    scene.world.patch.setattr(Manager, "request", refuse)
    attempt = scene.attempt()
    scene.until(lambda: attempt.yarn.result is not None, "the job has ended")
    assert attempt.yarn.result is not None
    result, diagnostics = attempt.yarn.result
    assert result is JobResult.FAILED
    assert "the cluster refuses" in diagnostics


def test_a_cancellation_that_is_not_taken_is_made_again(scene: Scene) -> None:
    """Otherwise a launcher that stands still keeps its memory, and its host stays taken."""
    attempt = scene.working()
    child = scene.hosts.child("0@1")
    parent = scene.hosts.launcher_of(child)
    for process in (child, parent):
        process.stop()
    scene.until_revoked("0@1", 10_000)
    attempt.yarn.faults.extend([False] * 4)
    assert parent.is_alive
    scene.until_ended(parent)
    assert not attempt.yarn.faults
    scene.work()


def test_a_job_lives_and_ends_though_calls_fail(scene: Scene) -> None:
    """It comes back in the next epoch after a failure, and ends in order."""
    dice = Random(3)  # noqa: S311 - repeatable, not secret
    attempt = scene.attempt()

    def every_second_call_fails() -> None:
        if not attempt.yarn.faults:
            attempt.yarn.faults.extend(dice.random() < 0.5 for _ in range(dice.randrange(3)))
        scene.clock.at(1000, every_second_call_fails)

    every_second_call_fails()
    scene.until(lambda: scene.started() == 1, "the container has started")
    scene.work()
    lose_launcher(scene, "0@1")
    scene.until(lambda: scene.started() == 2, "0@2 has started")
    scene.work()
    assert attempt.status()["job"]["state"] == "running"
    operator = scene.clock.process("operator", "elsewhere")
    operator.spawn(CoordinatorClient(attempt.url, TOKEN).shutdown)
    scene.until(lambda: attempt.yarn.result is not None, "the job has ended")
    assert attempt.yarn.result == (JobResult.KILLED, "shut down on request")
    assert outstanding(attempt.yarn) == []
