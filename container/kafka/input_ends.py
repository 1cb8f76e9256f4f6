"""InputEnds: where the partitions of an input end, asked of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class InputEnds:
    """Connects when it is first asked. Not thread-safe.

    Args:
        systems: every system of an input, by name.
        pause: waits the seconds given; raises to give up.
        connect: makes the reader of a system.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemConfig],
        pause: Callable[[float], None],
        connect: Callable[[SystemConfig, Callable[[float], None]], LogReader] = LogReader,
    ) -> None:
        self._systems = systems
        self._pause = pause
        self._connect = connect
        self._readers: dict[str, LogReader] = {}

    def heads(
        self, partitions: Collection[SystemStreamPartition]
    ) -> dict[SystemStreamPartition, int]:
        """One past the last offset of each, undecided records included.

        Raises:
            UnavailableError: Kafka does not answer.
            PartitionError: a topic or partition does not exist.
        """
        found: dict[SystemStreamPartition, int] = {}
        for system in sorted({partition.system for partition in partitions}):
            own = [partition for partition in partitions if partition.system == system]
            ends = self._reader(system).ends([(p.stream, p.partition) for p in own])
            found |= {p: ends[p.stream, p.partition].head for p in own}
        return found

    def holds_nothing(self, partition: SystemStreamPartition, start: int, head: int) -> bool:
        """Whether [start, head) has no committed record and will have none; never waits for one.

        Raises:
            UnavailableError: Kafka does not answer.
            PartitionError: the partition cannot be read.
        """
        reader, place = self._reader(partition.system), (partition.stream, partition.partition)
        if reader.stable_ends([place])[place] < head:
            return False
        # What retention has deleted cannot be read, and comes no more.
        start = max(start, reader.ends([place])[place].oldest)
        return start >= head or not any(reader.read(*place, start, head))

    def close(self) -> None:
        """Nothing is read any more."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _reader(self, system: str) -> LogReader:
        if system not in self._readers:
            self._readers[system] = self._connect(self._systems[system], self._pause)
        return self._readers[system]
