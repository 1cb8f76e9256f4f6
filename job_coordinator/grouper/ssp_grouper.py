"""Groups input partitions into tasks, for the JobModel: SystemStreamPartitionGrouper.

PURE. A grouper is a function of the sets it is given: no order of arrival, no previous assignment.
Task names are identities (of state, of checkpoints), so a grouper must give the same partitions the
same name for ever.

Broadcast partitions take no part in the grouping: they are added to every task that the others gave
rise to, so a job whose inputs are all broadcast has no tasks.

Source: Samza 1.8, container.grouper.stream.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

TaskPartitions = Mapping[TaskName, Collection[SystemStreamPartition]]
"""{task name: its input partitions}, in any order."""

_BROADCAST = re.compile(
    r"(?P<system>[^.#]+)\.(?P<stream>[^#]+)"
    r"#(?:(?P<one>\d{1,6})|\[(?P<first>\d{1,6})-(?P<last>\d{1,6})\])",
    re.ASCII,
)


class SystemStreamPartitionGrouper(ABC):
    """A way to form tasks; a job's own one subclasses this."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @abstractmethod
    def group(
        self, partitions: Iterable[SystemStreamPartition], processor_ids: Sequence[ProcessorId]
    ) -> TaskPartitions:
        """Return every one of these input partitions in exactly one task, no task without any.

        Args:
            partitions: the input partitions that are not broadcast, sorted.
            processor_ids: the processors there are; only a grouper that makes tasks of them
                reads it.

        ConfigError: the configuration does not fit this grouper.
        """


class GroupByPartition(SystemStreamPartitionGrouper):
    """All partitions of one number, of whatever stream, make up one task: ``Partition <n>``.

    Streams that are to be joined must therefore be partitioned alike.
    """

    def group(
        self,
        partitions: Iterable[SystemStreamPartition],
        processor_ids: Sequence[ProcessorId],  # noqa: ARG002 - of the base class
    ) -> TaskPartitions:
        """Return the tasks ``Partition <n>``."""
        numbers: dict[int, set[SystemStreamPartition]] = {}
        for ssp in partitions:
            numbers.setdefault(ssp.partition, set()).add(ssp)
        return {TaskName(f"Partition {number}"): ssps for number, ssps in numbers.items()}


class GroupBySystemStreamPartition(SystemStreamPartitionGrouper):
    """Each partition of each stream is a task of its own, named as it: the most parallel way."""

    def group(
        self,
        partitions: Iterable[SystemStreamPartition],
        processor_ids: Sequence[ProcessorId],  # noqa: ARG002 - of the base class
    ) -> TaskPartitions:
        """Return the tasks ``SystemStreamPartition [<system>, <stream>, <n>]``."""
        return {TaskName(str(ssp)): {ssp} for ssp in partitions}


class AllSspToSingleTask(SystemStreamPartitionGrouper):
    """One task per processor, ``Task-<processor id>``, and each reads every partition."""

    def group(
        self, partitions: Iterable[SystemStreamPartition], processor_ids: Sequence[ProcessorId]
    ) -> TaskPartitions:
        """Return the tasks ``Task-<processor id>``.

        ConfigError: there are broadcast inputs, which would say the same thing twice, or there is
        no input partition.
        """
        if broadcast_partitions(self.config):
            raise keys.TASK_BROADCAST_INPUTS.error(
                self.config.get_str(keys.TASK_BROADCAST_INPUTS.name),
                "with the grouper all-ssp-to-single-task every task reads every partition already",
                f"name these streams in {keys.TASK_INPUTS.name}",
            )
        every = frozenset(partitions)
        if not every:
            rule = "the grouper all-ssp-to-single-task needs an input partition"
            remedy = "name an input stream"
            raise keys.TASK_INPUTS.error(self.config.get_str(keys.TASK_INPUTS.name), rule, remedy)
        return {TaskName(f"Task-{processor_id}"): every for processor_id in processor_ids}


def broadcast_partitions(config: Config) -> frozenset[SystemStreamPartition]:
    """Return the partitions that ``task.broadcast.inputs`` names.

    ConfigError: an item has neither form, or a range that ends before it begins (Samza warns and
    ignores that one, and the task then waits for input that never comes).
    """
    return frozenset(
        ssp for item in config.get_list(keys.TASK_BROADCAST_INPUTS.name) for ssp in _broadcast(item)
    )


def _broadcast(item: str) -> list[SystemStreamPartition]:
    match = _BROADCAST.fullmatch(item)
    if match is None:
        raise _error(item, "it must be system.stream#partition or system.stream#[first-last]")
    first = int(match["one"] or match["first"])
    last = int(match["one"] or match["last"])
    if last < first:
        raise _error(item, "the range must not end before it begins")
    system, stream = match["system"], match["stream"]
    return [SystemStreamPartition(system, stream, number) for number in range(first, last + 1)]


def _error(item: str, rule: str) -> ConfigError:
    remedy = "write it as in kafka.rules#0 or kafka.rules#[0-3]"
    return keys.TASK_BROADCAST_INPUTS.error(item, rule, remedy)
