"""Where processors and tasks last ran, in the coordinator stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.metadata.task_assignment import TaskAssignmentManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName, host_of


class LocalityManager(RecordManager):
    """Where processors and tasks last ran: set-{task,container}-host-assignment.

    A host is in the one spelling that is compared; whether it is a host of the cluster, the caller
    knows.
    """

    def read_tasks(self) -> dict[TaskName, Host]:
        """{task: host it last ran on}, tasks without a record left out."""
        found = read_all(self._stream, MessageType.SET_TASK_HOST, _host)
        return {TaskName(task): host for task, host in found.items()}

    def read_processors(self) -> dict[ProcessorId, Host]:
        """{processor: the host it is best placed on}, processors without any record left out.

        The tasks that a processor has now decide: the host where most of them last ran, the first
        by name where several have as many. The processor's own record counts where none of its
        tasks has one.
        """
        own = read_all(self._stream, MessageType.SET_CONTAINER_HOST, _host)
        hosts = {ProcessorId(processor_id): host for processor_id, host in own.items()}
        votes: dict[ProcessorId, Counter[Host]] = {}
        tasks = self.read_tasks()
        for task, processor_id in TaskAssignmentManager(self._stream).read().items():
            if task in tasks:
                votes.setdefault(processor_id, Counter())[tasks[task]] += 1
        for processor_id, counted in votes.items():
            hosts[processor_id] = min(counted, key=lambda host: (-counted[host], host))
        return hosts

    @staticmethod
    def messages(
        processor_id: ProcessorId, task_names: Iterable[TaskName], host: Host, epoch: int | None
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that say: incarnation ``epoch`` of the processor runs its tasks on ``host``."""
        return (
            *(wire.set_task_host_assignment(task, host, epoch) for task in sorted(task_names)),
            wire.set_container_host_assignment(processor_id, host, epoch),
        )

    @staticmethod
    def messages_to_forget(
        processor_id: ProcessorId, task_names: Iterable[TaskName]
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that say: the processor, and its tasks, have no preferred host."""
        return (
            *(wire.tombstone(MessageType.SET_TASK_HOST, task) for task in sorted(task_names)),
            wire.tombstone(MessageType.SET_CONTAINER_HOST, processor_id),
        )

    def write(
        self,
        processor_id: ProcessorId,
        task_names: Iterable[TaskName],
        host: Host,
        epoch: int | None,
    ) -> None:
        """The stream says that the processor and its tasks run on ``host``.

        Source: HA-YARN, "every time they start-up successfully".
        """
        self._stream.write(self.messages(processor_id, task_names, host, epoch))


def _host(message: CoordinatorStreamMessage) -> Host | None:
    name = wire.host(message)
    return host_of(name) if name else None
