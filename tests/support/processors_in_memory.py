"""Processors on a real ZooKeeper whose work and planner are of the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from job_configs import job_config

from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.container.standalone.coordination import Coordination, Times
from homeport.container.standalone.protocols import WorkFenced, WorkReport
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.plan import Plan, active_tasks, present, standbys_of
from homeport.job_coordinator.standalone.protocol import (
    Computed,
    EndProcessor,
    FollowStandbys,
    StartWork,
    WorkEnded,
    WorkStarted,
)
from homeport.job_coordinator.standalone.state import ProcessorState, WorkPhase
from homeport.job_coordinator.zookeeper.session import SessionLease
from homeport.job_coordinator.zookeeper.tree import Readings, ZooKeeperTree

DEADLINE_S = 60.0
SESSION_MS = 1500


def settings(
    connect: str,
    *,
    session_ms: int = SESSION_MS,
    connection_ms: int = 20_000,
    consensus_ms: int = 20_000,
) -> StandaloneConfig:
    """Short times."""
    return StandaloneConfig(connect, "/homeport", session_ms, connection_ms, consensus_ms, 50, 1)


class MemoryWork:
    """Does what its orders say, at once."""

    def __init__(self, processor_id: ProcessorId) -> None:
        self._processor_id = processor_id
        self._reports: list[WorkReport] = []
        self.started: list[StartWork] = []
        self.followed: list[FollowStandbys] = []
        self.lease: SessionLease | None = None
        self.running: Incarnation | None = None
        self.stops_silently = False
        self.killed = self.prepared = 0

    def prepare(self) -> None:
        """It will begin."""
        self.prepared += 1

    def start(self, order: StartWork, model: JobModel, lease: SessionLease) -> None:
        """It begins, and asks."""
        assert active_tasks(model.containers[self._processor_id]) == order.tasks
        self.started.append(order)
        self.running, self.lease = Incarnation(self._processor_id, order.generation), lease
        self._reports.append(WorkFenced(self.running))

    def follow(self, order: FollowStandbys, model: JobModel) -> None:
        """It keeps others."""
        assert set(order.standbys) <= set(standbys_of(model.containers.get(self._processor_id)))
        self.followed.append(order)

    def stop(self, kept: Collection[TaskName] = ()) -> bool:
        """It ends, or seems to hang."""
        del kept
        if self.running is None:
            return False
        if not self.stops_silently:
            self.end(StopCause.ORDERED)
        return True

    def end(self, cause: StopCause) -> None:
        """It ends so."""
        if self.running is not None:
            self._reports.append(WorkEnded(self.running.epoch, cause, "the work's last line"))
        self.running = None

    def kill(self) -> None:
        """There is none."""
        self.killed += self.running is not None
        self.running = None
        self._reports = []

    def confirm(self, incarnation: Incarnation) -> None:
        """It takes input."""
        if incarnation == self.running:
            self._reports.append(WorkStarted(incarnation.epoch))

    def reports(self) -> Sequence[WorkReport]:
        """What is new."""
        found, self._reports = self._reports, []
        return found


class MemoryPlanner:
    """Computes at once, by the grouper of standalone jobs, without Kafka."""

    def __init__(
        self,
        tasks: Callable[[], int],
        readings: Callable[[], Readings],
        put: Callable[[Computed], None],
    ) -> None:
        self._tasks = tasks
        self._readings = readings
        self._put = put
        self.prepared = 0

    def prepare(self) -> None:
        """An order is near."""
        self.prepared += 1

    def compute(self, base: int, plan: Plan | None) -> None:
        """The answer is put."""
        found = self._readings()
        if found.version != base:
            return  # as the planner of Kafka's jobs
        processors = present(found.registrations)
        members = () if plan is None else plan.members
        before = PreviousAssignment(
            task_processors={task: m.processor_id for m in members for task in m.tasks},
            task_hosts=found.task_hosts,
            processor_hosts={r.processor_id: r.location for r in processors},
        )
        keys = {"task.name.grouper.factory": "group-by-container-ids"}
        config = job_config("a:1", {**keys, "job.host-affinity.enabled": "true"})
        counts = {SystemStream("kafka", "in"): self._tasks()}
        made = calculate_job_model(config, counts, before, [r.processor_id for r in processors])
        self._put(Computed(base, found.registrations, made, found.fenced))

    def close(self) -> None:
        """Nothing goes on."""


@dataclass
class Processor:
    """One processor; ``close`` in any case."""

    name: str
    settings: StandaloneConfig
    root: str
    tasks: int = 4
    location: str = "nm1"
    ended: EndProcessor | None = None
    state: ProcessorState | None = None
    work: MemoryWork = field(init=False)

    def __post_init__(self) -> None:
        """It begins."""
        own = ProcessorId(self.name)
        self.work = MemoryWork(own)
        self.tree = ZooKeeperTree(self.settings, self.root)
        self.coordination = Coordination(
            own, Host(self.location), self.tree, self.work, Times.of(self.settings), self._note
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        put = self.coordination.planned
        planner = MemoryPlanner(lambda: self.tasks, self.tree.readings, put)
        self.ended = self.coordination.run(planner)

    def _note(self, state: ProcessorState) -> None:
        self.state = state

    @property
    def held(self) -> frozenset[TaskName]:
        """The tasks that it works on."""
        state = self.state
        if state is None or state.work.phase is not WorkPhase.RUNNING:
            return frozenset()
        return frozenset(state.work.held)

    @property
    def generation(self) -> int:
        """Of the work that runs or ran last."""
        return 0 if self.state is None else self.state.work.generation

    def join(self) -> EndProcessor:
        """Its end."""
        self._thread.join(DEADLINE_S)
        assert self.ended is not None, self.state
        return self.ended

    def close(self) -> None:
        """It is gone."""
        self.coordination.stop()
        self._thread.join(DEADLINE_S)


def shared(processors: Sequence[Processor], tasks: int = 4) -> bool:
    """Whether the processors work on all tasks, each on as many as the others, but for one."""
    sizes = [len(p.held) for p in processors]
    every = frozenset(task for p in processors for task in p.held)
    return sum(sizes) == len(every) == tasks and max(sizes) - min(sizes) <= 1


def story(processors: Sequence[Processor]) -> str:
    """What each is at."""
    return "\n".join(str(p.state) for p in processors)
