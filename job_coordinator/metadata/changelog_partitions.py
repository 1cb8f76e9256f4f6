"""Which partition of the changelogs belongs to which task, in the coordinator stream."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.state_facts import StateFactManager
from homeport.job_coordinator.metadata.task_assignment import TaskModeManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskMode

_LOG = logging.getLogger(__name__)
_TYPE = MessageType.SET_CHANGELOG.value


class ChangelogPartitionManager:
    """Which partition of the changelogs belongs to which task: set-changelog.

    Samza's programs and the writer tool write such records too. Where one contradicts the job's own
    record of the partition, which has the task's state, it does not count.
    """

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream
        self._facts = StateFactManager(stream)

    def read(self) -> dict[TaskName, int]:
        """{task: changelog partition}.

        A record that cannot be read is not left out but stops the caller, unless the job's own
        record has the task.

        Raises:
            WireError: a record is damaged; going on would give its task another task's state.
        """
        own = self._facts.partitions()
        return {**self._recorded(own), **own}

    def contradictions(self) -> Iterator[ConfigError]:
        """Yield an error for each set-changelog record that contradicts the job's own record.

        The remedy of each is the record to write.
        """
        said = self._stream.latest(MessageType.SET_CHANGELOG)
        for task, partition in self._facts.partitions().items():
            message = said.get(task)
            text = None if message is None else message.value("Partition", "partition")
            if text != str(partition):
                yield ConfigError(
                    f"{_TYPE} {task}",
                    text,
                    f"the state of task {task!r} is in changelog partition {partition}",
                    repair(task, str(partition)),
                )

    def messages(
        self, partitions: Mapping[TaskName, int], standbys: Collection[TaskName] = ()
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Records of those tasks of ``partitions`` whose partition the stream does not yet say.

        ``standbys``: those of them that keep copies of the state of others.
        """
        for error in self.contradictions():
            _LOG.warning("coordinator stream: a record is put right: %s", error)
        known = self._recorded(partitions)
        active = {task: n for task, n in partitions.items() if task not in standbys}
        return (
            *(
                wire.set_changelog(task, partition)
                for task, partition in sorted(partitions.items())
                if known.get(task) != partition
            ),
            *self._facts.partition_messages(active),
        )

    def write(self, partitions: Mapping[TaskName, int]) -> None:
        """The stream says the partition of every task of ``partitions``.

        What it says of others stays for ever.
        """
        self._stream.write(self.messages(partitions))

    def refuse(self, task: TaskName, partition: int | None) -> None:
        """Refuse a tool's record of ``task`` that contradicts its state; None deletes the record.

        Raises:
            ConfigError: the task has another partition, or another task has this one.
        """
        own, known = self._facts.partitions().get(task), self.read()
        has = known.get(task)
        modes = TaskModeManager(self._stream).read()
        known = {t: n for t, n in known.items() if modes.get(t) is not TaskMode.STANDBY}
        value = None if partition is None else str(partition)
        if partition is not None and partition == own:
            return  # the record is so already
        sharer = None if has is None else _other(known, task, has)
        if has not in {None, partition} and (own is not None or sharer is None):
            raise ConfigError(
                _TYPE,
                value,
                f"task {task!r} has changelog partition {has}, and its state is there",
                "leave it, or begin from nothing by run-job --reset-state",
            )
        if partition is None:
            return
        other = _other(known, task, partition)
        if other is not None and has != partition:
            free = ", ".join(str(n) for n in free_partitions(known)) or max(known.values()) + 1
            raise ConfigError(
                _TYPE,
                value,
                f"task {other!r} has this changelog partition, and its state is there",
                f"write a free one: {free}",
            )

    def _recorded(self, but: Mapping[TaskName, int]) -> dict[TaskName, int]:
        found: dict[TaskName, int] = {}
        for name, message in self._stream.latest(MessageType.SET_CHANGELOG).items():
            task = TaskName(name)
            try:
                found[task] = wire.changelog_partition(message)
            except WireError:
                if task not in but:
                    raise
        return found


def repair(task: str, partition: str) -> str:
    """Return the command that gives ``task`` its changelog partition back."""
    return (
        f"write it back: coordinator-stream-writer --type={_TYPE} --key='{task}' "
        f"--value={partition}"
    )


def free_partitions(known: Mapping[TaskName, int]) -> list[int]:
    """Return the numbers below the highest of ``known`` that no task has."""
    return sorted(set(range(max(known.values(), default=-1))) - set(known.values()))


def _other(known: Mapping[TaskName, int], task: TaskName, partition: int) -> TaskName | None:
    return next((t for t, n in sorted(known.items()) if n == partition and t != task), None)
