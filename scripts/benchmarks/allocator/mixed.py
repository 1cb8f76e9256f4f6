"""Section mixed: a job of mixed containers loses a tenth of its hosts, in memory.

The allocator, the JobModel and the records are the product's. The coordinator stream is its state
in memory, and the cluster is that of section ``placement``. All times are CPU times.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.allocator.placement import SETTINGS, Cluster, quantiles
from benchmarks.jobs import config_of
from benchmarks.processes import peak_mb, result_of
from benchmarks.report import Row, at_least, at_most, table
from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.invariants import check
from homeport.appmaster.allocation.protocol.events import HostsObserved, SparesReported
from homeport.appmaster.allocation.protocol.instructions import (
    FailTasksOver,
    PermitContainer,
    PrepareProcess,
)
from homeport.appmaster.driver.decided_records import messages
from homeport.appmaster.job_model.publication import publish
from homeport.appmaster.programs.application_master import look_less_often
from homeport.job_coordinator.coordinator_stream.coordinator_stream import StreamState
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.grouper.mixed_failover import failed_over
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.metadata.epochs import FenceReport, fence_report_message
from homeport.job_coordinator.metadata.recorded_model import ModelRecords
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

CONTAINERS, TASKS_EACH, HOSTS, LOST = 10_000, 10, 1_000, 100
_MIXED = {
    "job.container.mixed-roles": "true",
    "job.standbytasks.replication.factor": "2",
    "job.host-affinity.enabled": "true",
}
_PARTS = ("placing", "loss", "recovery")


class _Stream(StreamState):
    """The coordinator stream's state, without Kafka."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[CoordinatorStreamMessage] = []

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Return what was written since."""
        new, self._new = tuple(self._new), []
        return new

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Apply the records."""
        for message in messages:
            self._new.append(message)
            self.apply(message)


class _Job(Cluster):
    """The cluster, and the JobModel and the records of a job of mixed containers."""

    def __init__(self, hosts: list[Host], model: JobModel) -> None:
        super().__init__(hosts, replace(SETTINGS, mixes_roles=True))
        self.model = model
        self.lost_processors: set[ProcessorId] = set()
        self._stream = _Stream()
        self._records = ModelRecords(self._stream)

    def ran(self) -> dict[str, float]:
        """Run everything in line; return the times of its events."""
        self.seconds.clear()
        self.run()
        return quantiles(self.seconds)

    def fail_over(self) -> dict[str, float]:
        """Give tasks of lost containers to others, and deal standbys; return CPU seconds."""
        began = time.process_time()
        found = failed_over(self.model, self.lost_processors, self.places())
        took = time.process_time() - began
        self.lost_processors.clear()
        return {
            "model_s": took,
            "unbacked": found.unbacked,
            **self.publish(found.model, is_by_itself=True),
        }

    def publish(self, model: JobModel, *, is_by_itself: bool = False) -> dict[str, float]:
        """Put the model in force; return the CPU seconds of records and of the event."""
        began = time.process_time()
        event = publish(
            *(model, self._stream, lambda host: host),
            in_force=self.model,
            records=self._records,
            is_by_itself=is_by_itself,
        )
        published_s = time.process_time() - began
        self.model = model
        return {"records_s": published_s, "event_s": self.feed(event)}

    def places(self) -> Places:
        """Return the containers that hold a launcher, with their hosts."""
        held = ((c.processor_id, c.resource_id) for c in self.state.containers)
        return Places({p: self.launchers[r].host for p, r in held if r in self.launchers})

    def _carry_out(self, decision: Decision) -> None:
        self._stream.write(
            messages(decision.records, self.state.container, self._tasks_of, 0, 0, submission=1)
        )
        super()._carry_out(decision)
        for instruction in decision.instructions:
            if isinstance(instruction, FailTasksOver):
                self.lost_processors.add(instruction.processor_id)
            elif isinstance(instruction, PrepareProcess):
                self.line.append(SparesReported({instruction.processor_id: True}))
            elif isinstance(instruction, PermitContainer):
                own = instruction.incarnation
                report = FenceReport(own.epoch, instruction.fence)
                self._stream.write([fence_report_message(own.processor_id, report)])

    def _tasks_of(self, processor_id: ProcessorId) -> Iterable[TaskName]:
        found = self.model.containers.get(processor_id)
        return () if found is None else found.tasks


def _model() -> JobModel:
    config = config_of("localhost:9092", _MIXED)
    containers = {}
    for number in range(CONTAINERS):
        tasks = {}
        for partition in range(number * TASKS_EACH, (number + 1) * TASKS_EACH):
            name = TaskName(f"Partition {partition}")
            inputs = (SystemStreamPartition("kafka", "of-the-benchmark", partition),)
            tasks[name] = TaskModel(name, inputs, partition)
        processor_id = ProcessorId(str(number))
        containers[processor_id] = ContainerModel(processor_id, tasks)
    return JobModel(config, containers)


def measured() -> dict[str, object]:
    """Measure with the driver's own settings of the process: a start, and a loss of hosts."""
    look_less_often()
    names = [Host(f"host-{n:04d}") for n in range(HOSTS)]
    job = _Job(names, _model())
    found: dict[str, object] = {f"first_{k}": s for k, s in job.publish(job.model).items()}
    job.feed(HostsObserved(tuple(names)))
    found["placing"] = job.ran()
    found |= {f"dealt_{key}": s for key, s in job.fail_over().items()}
    check(job.state)

    silent = job.lose(frozenset(names[:: HOSTS // LOST][:LOST]))
    decided = [job.feed(event) for event in silent]
    found["loss"] = quantiles(decided) | {"observed_s": job.feed(HostsObserved(tuple(job.hosts)))}
    found["lost"] = len(job.lost_processors)
    found |= {f"lost_{key}": s for key, s in job.fail_over().items()}
    found["recovery"] = job.ran()
    found |= {"running": job.running, "peak_mb": peak_mb()}
    check(job.state)
    return found


def rows() -> Iterator[Row]:
    """The times of single events, of a loss, and what follows it."""
    found = result_of("allocator.mixed.measured")
    flat = {f"{part}_{key}": n for part in _PARTS for key, n in found[part].items()} | found
    flat["decided_s"] = flat["loss_total_s"] + flat["loss_observed_s"]
    flat["decided_s"] += flat["lost_model_s"] + flat["lost_event_s"]
    yield from table(
        flat,
        ("an event while containers are placed: p99", "placing_p99_ms", "ms", 2),
        ("standbys dealt: the model", "dealt_model_s", "s", None),
        ("its records", "dealt_records_s", "s", None),
        (
            "loss of 100 hosts, decided: events, model, and the event of its version",
            "decided_s",
            "s",
            2,
        ),
        ("of that, events of the loss", "loss_total_s", "s", None),
        ("the model", "lost_model_s", "s", None),
        ("the event of its version", "lost_event_s", "s", None),
        ("records of the version", "lost_records_s", "s", None),
        ("an event of the loss: p99", "loss_p99_ms", "ms", 2),
        ("an event until all tasks run again: p99", "recovery_p99_ms", "ms", 2),
        ("longest", "recovery_max_ms", "ms", None),
        ("until all tasks run again", "recovery_total_s", "s", None),
    )
    yield at_least(
        "containers whose tasks went to others", found["lost"], CONTAINERS * LOST // HOSTS, ""
    )
    yield at_most("tasks that went where no standby was", found["lost_unbacked"], 0, "")
    yield at_least("containers that run again", found["running"], CONTAINERS, "")
    yield at_most("largest memory of the process", found["peak_mb"], 1024, "MB")


SECTIONS = {
    "mixed": (
        "10,000 mixed containers of 10 tasks, each with a standby, on 1,000 hosts (CPU times)",
        rows,
    )
}
