"""StreamMetadataCache: how many partitions each input stream has.

SHELL. One administration client per system, made when the system is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.job_model import SystemStream


class PartitionCounts(Protocol):
    """Metadata of a system's streams; ``TopicAdmin`` has it for Kafka."""

    def partition_counts(self, streams: Collection[str]) -> Mapping[str, int]:
        """{stream: number of partitions}; a stream that does not exist is absent."""


class StreamMetadataCache:
    """Partition counts of the streams of one job."""

    def __init__(
        self, config: Config, admin_of: Callable[[SystemConfig], PartitionCounts] = TopicAdmin
    ) -> None:
        """No request is sent yet.

        Args:
            config: the job's configuration, which describes its systems.
            admin_of: makes the client of one system.
        """
        self._config = config
        self._admin_of = admin_of
        self._admins: dict[str, PartitionCounts] = {}

    def partition_counts(self, streams: Iterable[SystemStream]) -> dict[SystemStream, int]:
        """{stream: number of partitions} as of now; a stream that does not exist is absent.

        Raises:
            ConfigError: a system is not described in the configuration.
            UnavailableError: a system did not answer.
        """
        wanted: dict[str, list[str]] = {}
        for stream in sorted(set(streams)):
            wanted.setdefault(stream.system, []).append(stream.stream)
        return {
            SystemStream(system, name): count
            for system, names in wanted.items()
            for name, count in sorted(self._admin(system).partition_counts(names).items())
        }

    def _admin(self, system: str) -> PartitionCounts:
        if system not in self._admins:
            self._admins[system] = self._admin_of(SystemConfig.of(self._config, system))
        return self._admins[system]
