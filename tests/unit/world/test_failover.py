"""A whole failover by the product's own driver, keeper and launchers, which die at every point.

The host of the active is lost: the standby is ordered to stop, the active is permitted on the
launcher that the standby leaves, and the standby is placed elsewhere (STANDBY, part 3, A; design
7). Three hosts, one active container with one standby.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation import invariants, separation
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.container.launcher import launcher
from homeport.job_coordinator.http.messages import CheckIn
from homeport.job_coordinator.metadata.lifecycle import (
    FailoverManager,
    JobEnd,
    JobEndManager,
    RecordedFailover,
)
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.status.container_report import ContainerReport
from tests.unit.world.am import Attempt
from tests.unit.world.judges import UnsafeError, committed
from tests.unit.world.scene import Scene
from tests.unit.world.standbys import HOT_STANDBY, install, judge_places, watch_places
from tests.unit.world.world import COORDINATOR

ACTIVE, STANDBY = ProcessorId("0"), ProcessorId("0-0")
pytestmark = pytest.mark.world(1, 1, HOT_STANDBY)
REPLICA_OF = {"0-0": "0", "0-1": "0", "1-0": "1"}
DRIVERS_ID = "homeport.j.1.am"


@dataclass
class Pair:
    """An active and its standby, both at work; ``home`` and ``place`` are their hosts."""

    scene: Scene
    attempt: Attempt
    home: Host
    place: Host

    def lose_home(self) -> None:
        """The host of the active is gone, with all that ran there."""
        self.scene.cluster.lose_node_manager(self.home)
        for process in self.scene.hosts.of(self.home):
            process.kill()

    def recorded(self) -> RecordedFailover | None:
        """What the coordinator stream says of the active's failover."""
        return FailoverManager(self._stream()).read().get(ACTIVE)

    def localities(self) -> dict[ProcessorId, Host]:
        """Where the stream says that each belongs."""
        return LocalityManager(self._stream()).read_processors()

    def _stream(self) -> InMemoryCoordinatorStream:
        """The coordinator stream as it is at this instant."""
        log = self.scene.world.broker.partition((COORDINATOR, 0))
        records = [(c.record.key or b"", c.record.value) for c in committed(log)]
        stream = InMemoryCoordinatorStream(log=records)
        stream.catch_up()
        return stream

    def has_settled(self) -> bool:
        """Whether both run, as the driver sees it, and its page says so."""
        server = self.attempt.children[1].server
        if self.attempt.children[1].process is None or server is None or server.backend is None:
            return False
        status = self.attempt.status()
        return (status["job"]["health"], status["failovers"]) == ("deployed", [])

    def runs(self) -> set[str]:
        """The processors that run, once the driver answers and no failover is under way."""
        if not self.has_settled():
            return set()
        return {c["processor_id"] for c in self.attempt.status()["containers"]}

    def starts_of_active(self) -> int:
        """How often a launcher has begun an incarnation of the active."""
        begun = self.scene.world.facts_of("launcher:child-started")
        return sum(str(fact.who).startswith("0@") for fact in begun)

    def judge(self) -> None:
        """The active took the standby's place, the standby has another; records say so."""
        self.scene.until(self.has_settled, "both run again", 120_000)
        self.scene.work(3)  # the driver has noticed the loss by then
        self.scene.until(self.has_settled, "both run again", 120_000)
        (other,) = {*self.scene.cluster.hosts} - {self.home, self.place}
        assert self.localities() == {ACTIVE: self.place, STANDBY: other}
        assert self.recorded() is None
        self.scene.until(lambda: self.attempt.locality() == self.localities(), "HTTP serves it")
        self.scene.judge()
        judge_places(self.scene)


def pair(scene: Scene, standbys: int = 1) -> Pair:
    """The active and its standbys run, and three records are counted."""
    install(scene.world)
    watch_places(scene, REPLICA_OF)
    attempt = scene.attempt()
    scene.until(lambda: scene.started() == 1 + standbys, "all have started")
    scene.work(3)
    hosts = {name: Host(scene.hosts.child(f"{name}@1").host) for name in ("0", "0-0")}
    assert len(set(hosts.values())) == 2
    return Pair(scene, attempt, hosts["0"], hosts["0-0"])


@pytest.fixture
def found(scene: Scene) -> Pair:
    """The pair of a job with one standby."""
    return pair(scene)


def test_the_active_takes_the_standbys_place_on_its_launcher(scene: Scene, found: Pair) -> None:
    """Records first: the step that decides it writes all that the next driver needs.

    No launcher is requested on the standby's host: the one that is there gets another child.
    """
    its_launcher = scene.hosts.launcher_of(scene.hosts.child("0-0@1"))
    found.lose_home()
    scene.until(lambda: scene.has_fact("driver:stop-ordered", "0-0@1"), "it is ordered to stop")
    recorded = found.recorded()
    assert recorded is not None
    assert (recorded.epoch, recorded.standby, recorded.host) == (1, STANDBY, found.place)
    assert (recorded.step, recorded.used) == ("standby", (STANDBY,))
    assert found.localities() == {ACTIVE: found.place}
    (stated,) = found.attempt.status()["failovers"]
    assert (stated["active"], stated["waits_for"]) == ("0", "0-0@1")
    scene.child("0@2")
    assert scene.hosts.launcher_of(scene.hosts.child("0@2")) is its_launcher
    found.judge()
    assert scene.hosts.launcher_of(scene.hosts.child("0@2")).is_alive


def test_the_history_has_each_failover_from_its_choice_to_its_end(
    scene: Scene, found: Pair
) -> None:
    """Which takes which place, where, and why; and that it is over."""
    found.lose_home()
    found.judge()
    (decided,) = scene.world.facts_of("driver:failover-decided")
    stated = decided.fields
    names = ("active", "active_epoch", "step", "standby", "to_host")
    assert [stated[n] for n in names] == ["0", 1, "standby", "0-0", found.place]
    assert stated["cause"] == "ResourceEnded container_1_0001_01_000001"
    (ended,) = scene.world.facts_of("driver:failover-ended")
    assert ended.fields == {"active": "0", "cause": "ContainerStarted 0@2"}
    assert ended.at_ms > decided.at_ms


@pytest.mark.world(1, 1, {**HOT_STANDBY, "job.hotstandby.replicationcount": "2"})
def test_the_standby_with_the_least_reported_lag_is_taken(scene: Scene) -> None:
    """Of two that run; the other one goes on. Source: STANDBY, part 3, A.2; design 7."""
    lags = {"0-0": 900, "0-1": 3}

    def check_in(**fields: Any) -> CheckIn:  # noqa: ANN401 - any field's type
        running = fields["running"]
        lag = None if running is None else lags.get(running.processor_id)
        return CheckIn(**{**fields, "report": ContainerReport(lag=lag)})

    scene.world.patch.setattr(launcher, "CheckIn", check_in)
    found = pair(scene, standbys=2)

    def stated() -> dict[str, int | None]:
        containers = found.attempt.status()["containers"]
        return {c["processor_id"]: c["lag"] for c in containers}

    scene.until(lambda: stated() == {"0": None, **lags}, "the status has their lags")
    found.lose_home()
    scene.until_started("0@2")
    taken, other = (scene.hosts.child(f"{name}@1") for name in ("0-1", "0-0"))
    assert scene.hosts.child("0@2").host == taken.host
    assert (taken.is_alive, other.is_alive) == (False, True)
    scene.work(3)
    judge_places(scene)


def on_one_host(scene: Scene) -> None:
    """One container and its standby, for which there is one live host."""
    install(scene.world)
    watch_places(scene, REPLICA_OF)
    for host in ("b", "c"):
        scene.cluster.lose_node_manager(host)
    scene.attempt()
    scene.until_started("0@1")


def test_a_standby_waits_for_a_host_of_its_own(scene: Scene) -> None:
    """Invariant-1, also where nothing else is left; as soon as there is one, it runs."""
    on_one_host(scene)
    scene.run(30_000)
    assert scene.started() == 1
    scene.cluster.hosts[Host("b")] = True
    scene.until_started("0-0@1")
    assert scene.hosts.child("0-0@1").host == "b"
    judge_places(scene)


def test_a_standby_beside_its_active_is_seen_by_the_judge(scene: Scene) -> None:
    """The same without Invariant-1, and without the invariants that the driver itself looks at."""
    scene.world.patch.setattr(separation, "left_to", lambda _draft, _container, hosts: hosts)
    scene.world.patch.setattr(separation, "in_the_way", lambda *_: iter(()))
    scene.world.patch.setattr(separation, "is_clear", lambda *_: True)
    scene.world.patch.setattr(invariants, "check_step", lambda *_: None)
    on_one_host(scene)
    scene.until(lambda: scene.started() > 1, "the standby has started")
    with pytest.raises(UnsafeError, match="0@1 on a still ran when 0-0@1 on a was started"):
        judge_places(scene)


@pytest.mark.usefixtures("found")
def test_the_history_names_the_active_of_each_standby(scene: Scene) -> None:
    """What it is judged by: ``scripts/check-history``, Invariants 1 and 2."""
    fields = {str(f.who): f.fields for f in scene.world.facts_of("driver:permit-granted")}
    stated = fields["0-0@1"]
    assert (stated["processor_role"], stated["active_processor_id"]) == ("standby", "0")
    assert "processor_role" not in fields["0@1"]


Moment = Callable[[Pair], bool]


def fact(what: str, who: str) -> Moment:
    """This has been noted."""
    return lambda found: found.scene.has_fact(what, who)


MOMENTS: dict[str, Moment] = {
    "the standby is ordered to stop": fact("driver:stop-ordered", "0-0@1"),
    "the standby has stopped": lambda found: not found.scene.hosts.child("0-0@1").is_alive,
    "the active is permitted": fact("driver:permit-granted", "0@2"),
    "the active has begun": fact("launcher:child-started", "0@2"),
    "the active has started": fact("container:started", "0@2"),
    "the standby is permitted elsewhere": fact("driver:permit-granted", "0-0@2"),
    "the standby has started": fact("container:started", "0-0@2"),
}


@pytest.mark.search
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_next_driver_goes_on_whenever_this_one_dies(
    scene: Scene, found: Pair, moment: str
) -> None:
    """By its records, and what it finds running; no container is started a second time for it."""
    found.lose_home()
    scene.until(lambda: MOMENTS[moment](found), moment)
    found.attempt.driver.kill()
    found.judge()
    assert found.starts_of_active() == 2


@pytest.mark.search
@pytest.mark.parametrize("answered", ["", " answered"], ids=["before", "after"])
@pytest.mark.parametrize("nth", range(1, 5))
def test_the_next_driver_goes_on_from_either_side_of_every_record(
    scene: Scene, found: Pair, nth: int, answered: str
) -> None:
    """The driver dies when it is about to commit, or has committed and done nothing yet.

    The failover, the active's permit, the standby's, and the failover's end.
    """
    driver = found.attempt.driver
    driver.stop_at(f"commit {DRIVERS_ID}.1.application_1_0001.1{answered}", nth)
    found.lose_home()
    scene.until(lambda: driver.is_stopped, "it stands there")
    driver.kill()
    found.judge()
    assert found.starts_of_active() == 2


@pytest.mark.search
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_next_attempt_goes_on_whenever_the_am_dies(
    scene: Scene, found: Pair, moment: str
) -> None:
    """All containers die with it; the active begins where the failover has put it."""
    found.lose_home()
    scene.until(lambda: MOMENTS[moment](found), moment)
    found.attempt.supervisor.kill()
    for container in found.attempt.yarn.containers.values():
        if container.process is not None:
            container.process.terminate()
            scene.clock.at(250, container.process.kill)
    found.attempt = scene.attempt(attempt=2, host="am2")
    found.judge()


# --- what comes on top of a failover, each time with the driver dead too


def test_the_job_ends_and_the_next_submission_goes_on(scene: Scene, found: Pair) -> None:
    """The end is decided while the standby still stops; where the active belongs outlives it."""
    found.lose_home()
    scene.until(lambda: scene.has_fact("driver:stop-ordered", "0-0@1"), "it is ordered to stop")
    scene.world.write(JobEndManager.message(JobEnd(1, JobResult.KILLED.value, "")), "homeport")
    found.attempt.driver.kill()
    scene.until_ended(found.attempt.supervisor)
    assert found.starts_of_active() == 1
    found.attempt = scene.attempt(submission=2)
    found.judge()


def test_the_host_that_the_active_goes_to_is_lost_too(scene: Scene, found: Pair) -> None:
    """The third one is left: the active runs there, the standby when another host is back."""
    found.lose_home()
    scene.until(lambda: scene.has_fact("driver:stop-ordered", "0-0@1"), "it is ordered to stop")
    found.attempt.driver.kill()
    scene.cluster.lose_node_manager(found.place)
    scene.kill_all(found.place)
    (third,) = {*scene.cluster.hosts} - {found.home, found.place}
    scene.until_started("0@2")
    scene.work(3)
    assert scene.hosts.child("0@2").host == third
    assert not found.has_settled()
    scene.cluster.hosts[found.home] = True
    scene.until(found.has_settled, "both run")
    assert found.localities() == {ACTIVE: third, STANDBY: found.home}
    assert found.recorded() is None
    judge_places(scene)


@pytest.mark.world(1, 2, HOT_STANDBY)
def test_the_model_changes(scene: Scene, found: Pair) -> None:
    """A second container takes over a task, and has a standby too; all four run in the end."""
    found.lose_home()
    scene.until(lambda: scene.has_fact("driver:stop-ordered", "0-0@1"), "it is ordered to stop")
    scene.configure("job.container.count", "2")
    found.attempt.driver.kill()
    scene.until(lambda: scene.has_fact("driver:model-change"), "the model changes")
    found.attempt.driver.kill()
    names = {"0", "1", "0-0", "1-0"}
    scene.until(lambda: found.runs() == names, "all four run", 120_000)
    scene.work(3)
    assert found.recorded() is None
    judge_places(scene)
