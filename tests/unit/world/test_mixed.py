"""A failover of mixed containers by the product's own driver, which dies at every point.

A host is lost: its task goes to a container with its standby by a version of the JobModel, in the
process that runs there, and standbys are dealt again (STANDBY, part 4). Three hosts, three
containers with a task each, and a standby of each task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.container.incarnation import standby_tasks
from homeport.container.incarnation.standby_tasks import StandbyTasks
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import TaskMode
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.judges import committed
from tests.unit.world.scene import Scene
from tests.unit.world.standbys import HOT_STANDBY, install
from tests.unit.world.world import COORDINATOR

MIXED = {**HOT_STANDBY, "job.container.mixed-roles": "true"}
DRIVERS_ID = "homeport.j.1.am"
ANY = TaskName("Partition 0")
pytestmark = pytest.mark.world(3, 3, MIXED)


def _hold_place(standbys: StandbyTasks, _job: object) -> None:
    """Mirrors ``StandbyTasks._follow`` without stores."""
    while True:
        standbys._pause(1.0)


@dataclass
class Mixed:
    """Three containers at work; ``lost``: the owner of the first task, ``home``: its host."""

    scene: Scene
    attempt: Attempt
    lost: ProcessorId
    home: Host
    survivors: list[Process]

    def lose_home(self) -> None:
        """The host is gone, with all that ran there."""
        self.scene.cluster.lose_node_manager(self.home)
        self.scene.kill_all(self.home)

    def judge(self) -> None:
        """All tasks are counted, on the launchers that were there; none is beside its standby."""
        self.scene.until(lambda: _owners(self.scene)[ANY] != self.lost, "the task has gone")
        for partition in range(3):
            self.scene.produce(2, b"k%d" % partition, partition)
        self.scene.until_counted(120_000)
        launchers = map(self.scene.hosts.launcher_of, self.survivors)
        assert all(launcher.is_alive for launcher in launchers)
        self.scene.until(lambda: len(_standbys(self.scene)) == 3, "each task has a standby again")
        hosts = LocalityManager(_stream(self.scene)).read_processors()
        owners = _owners(self.scene)
        for task, keeper in _standbys(self.scene).items():
            assert hosts.get(keeper) != hosts[owners[task]]


def _stream(scene: Scene) -> InMemoryCoordinatorStream:
    log = scene.world.broker.partition((COORDINATOR, 0))
    records = [(c.record.key or b"", c.record.value) for c in committed(log)]
    stream = InMemoryCoordinatorStream(log=records)
    stream.catch_up()
    return stream


def _owners(scene: Scene) -> Mapping[TaskName, ProcessorId]:
    return _by_mode(scene, TaskMode.ACTIVE)


def _standbys(scene: Scene) -> Mapping[TaskName, ProcessorId]:
    """{active task: the container that keeps its standby}."""
    found = _by_mode(scene, TaskMode.STANDBY)
    return {
        TaskName(name.removeprefix("Standby-").rpartition("-")[0]): p for name, p in found.items()
    }


def _by_mode(scene: Scene, mode: TaskMode) -> dict[TaskName, ProcessorId]:
    stream = _stream(scene)
    modes = TaskModeManager(stream).read()
    return {t: p for t, p in TaskAssignmentManager(stream).read().items() if modes.get(t) is mode}


@pytest.fixture
def found(scene: Scene) -> Mixed:
    """All three work, and each task has its standby."""
    install(scene.world)
    scene.world.patch.setattr(StandbyTasks, "_follow", _hold_place)
    scene.world.patch.setattr(standby_tasks, "thread_gives_way", lambda: None)
    attempt = scene.working()
    scene.until(lambda: len(_standbys(scene)) == 3, "standbys are dealt")
    lost = _owners(scene)[ANY]
    home = Host(scene.hosts.child(f"{lost}@1").host)
    there = [p for p in scene.hosts.children if p.is_alive and p.host != home]
    assert len(there) == 2
    return Mixed(scene, attempt, lost, home, there)


def test_a_lost_task_goes_on_in_the_process_with_its_standby(scene: Scene, found: Mixed) -> None:
    """No process of another host stops or starts for it."""
    keeper = _standbys(scene)[ANY]
    found.lose_home()
    found.judge()
    assert _owners(scene)[ANY] == keeper
    assert all(process.is_alive for process in found.survivors)


@pytest.mark.search
@pytest.mark.parametrize("answered", ["", " answered"], ids=["before", "after"])
@pytest.mark.parametrize("nth", range(1, 6))
def test_the_next_driver_goes_on_from_either_side_of_every_record(
    scene: Scene, found: Mixed, nth: int, answered: str
) -> None:
    """The driver dies when it is about to commit, or has committed and done nothing yet.

    The version by which the task goes, the permits, the version by which standbys are dealt. The
    next driver lets processes end that it finds in mid-change.
    """
    driver = found.attempt.driver
    driver.stop_at(f"commit {DRIVERS_ID}.1.application_1_0001.1{answered}", nth)
    found.lose_home()
    scene.until(lambda: driver.is_stopped, "it stands there")
    driver.kill()
    found.judge()
