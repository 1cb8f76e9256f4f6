"""Drain: decides when a container that is ordered to drain has processed its input."""

from collections.abc import Callable, Collection, Mapping

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class Drain:
    """One order to drain: the heads at the first call of ``is_done`` count, and no later ones.

    It connects at that call. Not thread-safe. ``pause``: waits the seconds given, or raises.
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
        self._left: dict[SystemStreamPartition, int] | None = None

    def is_done(
        self, processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]], *, is_quiet: bool
    ) -> bool:
        """Return whether everything below the heads is processed.

        ``is_quiet``: whether no input comes for now. The last offsets may be markers, which are no
        records: where a partition stands still, a request to Kafka shows it.

        Raises:
            UnavailableError: Kafka does not answer.
            PartitionError: a partition does not exist, or cannot be read.
        """
        following: dict[SystemStreamPartition, int] = {}
        for offsets in processed.values():
            for partition, offset in offsets.items():
                following[partition] = min(following.get(partition, offset + 1), offset + 1)
        if self._left is None:
            self._left = self.heads(following)
        for partition, head in list(self._left.items()):
            start = following[partition]
            if start >= head or (is_quiet and self.holds_nothing(partition, start, head)):
                del self._left[partition]
        if self._left:
            return False
        self.close()
        return True

    def heads(
        self, partitions: Collection[SystemStreamPartition]
    ) -> dict[SystemStreamPartition, int]:
        """Return the offset after the last record of each partition, undecided records included."""
        found: dict[SystemStreamPartition, int] = {}
        for system in sorted({partition.system for partition in partitions}):
            own = [partition for partition in partitions if partition.system == system]
            ends = self._reader(system).ends([(p.stream, p.partition) for p in own])
            found |= {p: ends[p.stream, p.partition].head for p in own}
        return found

    def holds_nothing(self, partition: SystemStreamPartition, start: int, head: int) -> bool:
        """Return whether [start, head) has no committed record, and will have none; do not wait."""
        reader, place = self._reader(partition.system), (partition.stream, partition.partition)
        if reader.stable_ends([place])[place] < head:
            return False
        # Records that retention has deleted cannot be read, and do not come back.
        start = max(start, reader.ends([place])[place].oldest)
        return start >= head or not any(reader.read(*place, start, head))

    def close(self) -> None:
        """End the reading."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _reader(self, system: str) -> LogReader:
        if system not in self._readers:
            self._readers[system] = self._connect(self._systems[system], self._pause)
        return self._readers[system]
