"""What people do to a job: new models, commands to containers, and the end of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel

Assignment = Mapping[str, str]
"""{task: its processor}; beside them an input that all tasks read, with ``READ`` before it.

A processor that has no task, as one that reads ahead, is that of a name with ``NO_TASK`` before it.
"""
READ = "+"
NO_TASK = "-"
WARM = "warm "
"""Before the destination of a move whose state is read there first."""


@dataclass(frozen=True)
class People:
    """What people may do to the job, at any point.

    ``plan``: the assignments that they publish, in order, after the one in which each processor has
    the task of its name. ``commands``: (processor, destination) of what one operator commands at a
    time; a destination that begins with ``WARM`` is that of a warm move. ``may_cancel``: they end
    what was commanded. ``may_shut_down``: they end the job. Commands, their cancels and a shutdown
    count as faults.
    """

    plan: tuple[Assignment, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    may_shut_down: bool = False
    may_cancel: bool = False


NO_PEOPLE = People()


class Model(NamedTuple):
    """One version: the tasks of each processor, the standbys of each active one, more inputs."""

    tasks: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]]
    inputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, assignment: Assignment, groups: Mapping[str, tuple[str, ...]]) -> Model:
        """The model of this assignment.

        Shapes: ``groups`` {active: its standbys}; a processor of no group is an active.
        """
        tasks: dict[str, tuple[str, ...]] = {}
        inputs = tuple(sorted(name for name in assignment if name.startswith(READ)))
        for task, processor in sorted((t, p) for t, p in assignment.items() if t not in inputs):
            own = () if task.startswith(NO_TASK) else (task,)
            tasks[processor] = (*tasks.get(processor, ()), *own)
        standbys = {s for replicas in groups.values() for s in replicas}
        return cls(
            tasks,
            {
                p: tuple(s for s in groups.get(p, ()) if s in tasks)
                for p in tasks
                if p not in standbys
            },
            inputs,
        )

    def task_models(self) -> dict[ProcessorId, frozenset[TaskModel]]:
        """As the publication compares them."""
        ssps = tuple(SystemStreamPartition("kafka", name, 0) for name in self.inputs)
        return {
            ProcessorId(p): frozenset(TaskModel(TaskName(task), ssps, 0) for task in tasks)
            for p, tasks in self.tasks.items()
        }
