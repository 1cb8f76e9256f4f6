"""Processors without Kafka: their coordination is the product's, their work only says it works."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from benchmarks import jobs
from benchmarks.jobs import store_keys
from homeport.config.config import Config
from homeport.container.standalone.planner import standbys_before
from homeport.container.standalone.protocols import WorkFenced, WorkReport
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.plan import Plan, present
from homeport.job_coordinator.standalone.protocol import (
    Computed,
    FollowStandbys,
    StartWork,
    WorkEnded,
    WorkStarted,
)
from homeport.job_coordinator.zookeeper.session import SessionLease
from homeport.job_coordinator.zookeeper.tree import Readings


def config_of(standbys: int) -> Config:
    """A job with one input and one store, with so many standbys of each task."""
    keys = {
        "job.host-affinity.enabled": "true",
        "task.class": "bench:Task",
        "task.inputs": "kafka.in",
        "task.name.grouper.factory": "group-by-container-ids",
        **store_keys("s", "s", "long", "string"),
    }
    if standbys:
        keys["job.standbytasks.replication.factor"] = str(standbys + 1)
    return jobs.config_of("none:1", keys)


def computed_by(config: Config, tasks: int, readings: Readings, plan: Plan | None) -> Computed:
    """What a planner answers, without what it reads of Kafka and of the coordinator stream."""
    known = {} if plan is None else plan.model.active_tasks()
    members = () if plan is None else plan.members
    before = PreviousAssignment(
        task_processors={task: m.processor_id for m in members for task in m.tasks},
        standbys=standbys_before(members),
        task_partitions={n: frozenset(t.system_stream_partitions) for n, t in known.items()},
        changelog_partitions={n: t.changelog_partition for n, t in known.items()},
        task_hosts=readings.task_hosts,
        processor_hosts={r.processor_id: r.location for r in readings.registrations},
    )
    ids = [r.processor_id for r in present(readings.registrations)]
    made = calculate_job_model(config, {SystemStream("kafka", "in"): tasks}, before, ids)
    return Computed(readings.version, readings.registrations, made, readings.fenced)


class LightPlanner:
    """Computes at once, in the coordination's own thread."""

    def __init__(
        self, tasks: int, readings: Callable[[], Readings], put: Callable[[Computed], None]
    ) -> None:
        self._config, self._tasks = config_of(0), tasks
        self._readings, self._put = readings, put

    def prepare(self) -> None:
        """There is nothing to make ready."""

    def compute(self, base: int, plan: Plan | None) -> None:
        """The answer is put, where the version is still the newest."""
        found = self._readings()
        if found.version == base:
            self._put(computed_by(self._config, self._tasks, found, plan))

    def close(self) -> None:
        """Nothing goes on."""


class LightWork:
    """Fences, works and ends at once."""

    def __init__(self, processor_id: ProcessorId) -> None:
        self._processor_id = processor_id
        self._running: Incarnation | None = None
        self._reports: list[WorkReport] = []

    def prepare(self) -> None:
        """It needs nothing."""

    def start(self, order: StartWork, model: JobModel, lease: SessionLease) -> None:
        """It asks whether it may go on."""
        del model, lease
        self._running = Incarnation(self._processor_id, order.generation)
        self._reports.append(WorkFenced(self._running))

    def follow(self, order: FollowStandbys, model: JobModel) -> None:
        """There are none."""

    def stop(self, kept: Collection[TaskName] = ()) -> bool:
        """It has ended."""
        del kept
        if self._running is None:
            return False
        self._reports.append(WorkEnded(self._running.epoch, StopCause.ORDERED))
        self._running = None
        return True

    def kill(self) -> None:
        """There is none."""
        self._running, self._reports = None, []

    def confirm(self, incarnation: Incarnation) -> None:
        """It takes input."""
        if incarnation == self._running:
            self._reports.append(WorkStarted(incarnation.epoch))

    def reports(self) -> Sequence[WorkReport]:
        """What is new."""
        found, self._reports = self._reports, []
        return found
