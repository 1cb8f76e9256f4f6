"""What the coordinator stream says of tasks: processor, mode, input partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, exactly, read_all
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)


class TaskAssignmentManager(RecordManager):
    """Which processor has which task: set-task-container-assignment."""

    def read(self) -> dict[TaskName, ProcessorId]:
        """{task: processor}."""
        found = read_all(
            self._stream, MessageType.SET_TASK_CONTAINER, lambda m: m.value("containerId")
        )
        return {TaskName(task): ProcessorId(processor) for task, processor in found.items()}

    def messages(
        self, assignment: Mapping[TaskName, ProcessorId]
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that turn what the stream says into exactly ``assignment``.

        Tasks that are gone first.
        """
        return exactly(
            self._stream,
            MessageType.SET_TASK_CONTAINER,
            (
                wire.set_task_container_assignment(task, processor_id)
                for task, processor_id in assignment.items()
            ),
        )

    def write(self, assignment: Mapping[TaskName, ProcessorId]) -> None:
        """The stream says exactly ``assignment``."""
        self._stream.write(self.messages(assignment))


class TaskModeManager(RecordManager):
    """Which tasks process and which only keep a replica: set-task-mode-assignment."""

    def read(self) -> dict[TaskName, TaskMode]:
        """{task: mode}, standby tasks included."""
        found = read_all(self._stream, MessageType.SET_TASK_MODE, wire.task_mode)
        return {TaskName(task): mode for task, mode in found.items()}

    def messages(self, model: JobModel) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that turn what the stream says into exactly the modes of ``model``.

        Tasks that are gone first.
        """
        return exactly(
            self._stream,
            MessageType.SET_TASK_MODE,
            (
                wire.set_task_mode_assignment(task.task_name, task.task_mode)
                for task in _tasks(model)
            ),
        )


class TaskPartitionManager(RecordManager):
    """Which tasks read which input partition: set-task-partition-assignment.

    Kept by partition, not by task, so that no record grows with the job; a broadcast input's record
    alone names every task.
    """

    def read(self) -> dict[SystemStreamPartition, tuple[TaskName, ...]]:
        """{input partition: its tasks by name in sorted order, standby tasks included}.

        Of two records that name one partition in different bytes the later one counts.
        """
        found = read_all(self._stream, MessageType.SET_TASK_PARTITION, wire.task_partition)
        return {
            ssp: tuple(TaskName(task) for task in sorted(tasks)) for ssp, tasks in found.values()
        }

    def read_inputs(self) -> dict[TaskName, frozenset[SystemStreamPartition]]:
        """{task: its input partitions}, standby tasks included."""
        found: dict[TaskName, set[SystemStreamPartition]] = {}
        for ssp, tasks in self.read().items():
            for task in tasks:
                found.setdefault(task, set()).add(ssp)
        return {task: frozenset(ssps) for task, ssps in found.items()}

    def messages(self, model: JobModel) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that turn what the stream says into exactly the inputs of ``model``.

        Partitions that are gone first.
        """
        tasks_of: dict[SystemStreamPartition, list[str]] = {}
        for task in _tasks(model):
            for ssp in task.system_stream_partitions:
                tasks_of.setdefault(ssp, []).append(task.task_name)
        return exactly(
            self._stream,
            MessageType.SET_TASK_PARTITION,
            (
                wire.set_task_partition_assignment(ssp, sorted(tasks))
                for ssp, tasks in tasks_of.items()
            ),
        )


def _tasks(model: JobModel) -> Iterator[TaskModel]:
    for container in model.containers.values():
        yield from container.tasks.values()
