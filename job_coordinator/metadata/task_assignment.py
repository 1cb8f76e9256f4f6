"""Records of tasks, for drivers and tools: processor, mode, input partitions, where each ran."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, exactly, read_all
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName, host_of
from homeport.job_coordinator.model.job_model import (
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

_DAY_MS = 86_400_000
_MOST_HOSTS = 1000
"""Each has one record, which every start reads."""


class TaskAssignmentManager(RecordManager):
    """Which processor has which task: set-task-container-assignment."""

    def read(self) -> dict[TaskName, ProcessorId]:
        """Return {task: processor}."""
        found = read_all(
            self._stream, MessageType.SET_TASK_CONTAINER, lambda m: m.value("containerId")
        )
        return {TaskName(task): ProcessorId(processor) for task, processor in found.items()}

    def messages(
        self, assignment: Mapping[TaskName, ProcessorId], among: Collection[TaskName] | None = None
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records that turn the stream's state into exactly ``assignment``.

        Tasks that are gone first. ``among``: those that may be; None: any.
        """
        records = (wire.set_task_container_assignment(t, p) for t, p in assignment.items())
        return exactly(self._stream, MessageType.SET_TASK_CONTAINER, records, among)


class TaskModeManager(RecordManager):
    """Which tasks process and which only keep a replica: set-task-mode-assignment."""

    def read(self) -> dict[TaskName, TaskMode]:
        """Return {task: mode}, standby tasks included."""
        found = read_all(self._stream, MessageType.SET_TASK_MODE, wire.task_mode)
        return {TaskName(task): mode for task, mode in found.items()}

    def messages(
        self, model: JobModel, among: Collection[TaskName] | None = None
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records that turn the stream's state into exactly the modes of ``model``.

        Tasks that are gone first. ``among``: those that may be; None: any.
        """
        records = (wire.set_task_mode_assignment(t.task_name, t.task_mode) for t in _tasks(model))
        return exactly(self._stream, MessageType.SET_TASK_MODE, records, among)


class TaskPartitionManager(RecordManager):
    """Which tasks read which input partition: set-task-partition-assignment.

    Kept by partition, not by task, so that no record grows with the job; a broadcast input's record
    alone names every task.
    """

    def read(self) -> dict[SystemStreamPartition, tuple[TaskName, ...]]:
        """Return {input partition: its tasks by name in sorted order, standby tasks included}.

        Of two records that name one partition in different bytes the later one counts.
        """
        found = read_all(self._stream, MessageType.SET_TASK_PARTITION, wire.task_partition)
        return {
            ssp: tuple(TaskName(task) for task in sorted(tasks)) for ssp, tasks in found.values()
        }

    def read_inputs(self) -> dict[TaskName, frozenset[SystemStreamPartition]]:
        """Return {task: its input partitions}, standby tasks included."""
        found: dict[TaskName, set[SystemStreamPartition]] = {}
        for ssp, tasks in self.read().items():
            for task in tasks:
                found.setdefault(task, set()).add(ssp)
        return {task: frozenset(ssps) for task, ssps in found.items()}

    def messages(
        self, model: JobModel, among: Collection[SystemStreamPartition] | None = None
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records that turn the stream's state into exactly the inputs of ``model``.

        Partitions that are gone first. ``among``: those to look at; None: all.
        """
        if among is not None and not among:
            return ()
        tasks_of: dict[SystemStreamPartition, list[str]] = {}
        for task in _tasks(model):
            for ssp in task.system_stream_partitions:
                if among is None or ssp in among:
                    tasks_of.setdefault(ssp, []).append(task.task_name)
        records = (wire.set_task_partition_assignment(s, sorted(t)) for s, t in tasks_of.items())
        names = None if among is None else [wire.partition_key(ssp) for ssp in among]
        return exactly(self._stream, MessageType.SET_TASK_PARTITION, records, names)


def _tasks(model: JobModel) -> Iterator[TaskModel]:
    for container in model.containers.values():
        yield from container.tasks.values()


class LocalityManager(RecordManager):
    """Where processors and tasks last ran: set-{task,container}-host-assignment.

    Hosts have the one spelling that is compared. They need not be in the cluster any more.
    """

    def read_tasks(self) -> dict[TaskName, Host]:
        """Return {task: host it last ran on}, tasks without a record left out."""
        found = read_all(self._stream, MessageType.SET_TASK_HOST, _host)
        return {TaskName(task): host for task, host in found.items()}

    def read_processors(self) -> dict[ProcessorId, Host]:
        """Return {processor: the host it is best placed on}, without those that have no record.

        It is the host where most of the processor's present tasks last ran, the first by name of
        equal ones. The processor's own record counts where none of its tasks has a record.
        """
        own = read_all(self._stream, MessageType.SET_CONTAINER_HOST, _host)
        hosts = {ProcessorId(processor_id): host for processor_id, host in own.items()}
        votes: dict[ProcessorId, Counter[Host]] = {}
        owners = self._stream.latest(MessageType.SET_TASK_CONTAINER)
        for task, host in self.read_tasks().items():
            owner = owners[task].value("containerId") if task in owners else None
            if owner is not None:
                votes.setdefault(ProcessorId(owner), Counter())[host] += 1
        for processor_id, counted in votes.items():
            hosts[processor_id] = min(counted, key=lambda host: (-counted[host], host))
        return hosts

    @staticmethod
    def messages(
        processor_id: ProcessorId, task_names: Iterable[TaskName], host: Host, epoch: int | None
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return the records by which incarnation ``epoch`` of the processor runs on ``host``."""
        return (
            *(wire.set_task_host_assignment(task, host, epoch) for task in sorted(task_names)),
            wire.set_container_host_assignment(processor_id, host, epoch),
        )

    @staticmethod
    def messages_to_forget(
        processor_id: ProcessorId, task_names: Iterable[TaskName]
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return the records after which the processor, and its tasks, have no preferred host."""
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
        """Write into the stream that the processor and its tasks run on ``host``.

        Source: HA-YARN, "every time they start-up successfully".
        """
        self._stream.write(self.messages(processor_id, task_names, host, epoch))


class UsedHostManager(RecordManager):
    """Where containers of the job have ever begun: set-used-host, in its time.

    Such a host may have directories of the job long after the job has left it.
    """

    def read(self) -> dict[Host, int]:
        """Return {host, as it was written: when it was last used, to a day}, in ms since 1970."""
        found = self._stream.latest(MessageType.SET_USED_HOST)
        return {Host(key): message.timestamp_ms for key, message in found.items()}

    def write(self, host: Host, now_ms: int) -> None:
        """Record that a container begins on ``host``; of too many hosts forget the oldest."""
        used = self.read()
        if now_ms - used.pop(host, 0) < _DAY_MS:
            return
        oldest = sorted(used, key=lambda each: used[each])[: max(0, len(used) + 1 - _MOST_HOSTS)]
        gone = (wire.tombstone(MessageType.SET_USED_HOST, each) for each in oldest)
        self._stream.write([*gone, CoordinatorStreamMessage(MessageType.SET_USED_HOST, host, {})])


def _host(message: CoordinatorStreamMessage) -> Host | None:
    name = wire.host(message)
    return host_of(name) if name else None
