"""The coordinator stream of a leader, open from one computation of a JobModel to the next.

Its clients take a third of a second to connect, in which the tasks of a processor that is back
stand still; a further read takes some hundredths.
"""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec

_SOURCE = "homeport"


class KeptStream:
    """To be used from one thread; ``close`` in any case, and after a fault."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._store: CoordinatorStreamStore | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has clients."""
        return self._store is not None

    def read(self) -> CoordinatorStreamStore:
        """Return the job's own stream, read to its head as it is now.

        ConfigError: it is not one compacted partition, or is another job's. UnavailableError: no
        answer.
        """
        if self._store is None:
            job = JobConfig.of(self._config)
            system = SystemConfig.of(self._config, job.coordinator_system)
            TopicAdmin(system).ensure(coordinator_topic_spec(job))
            self._store = CoordinatorStreamStore.of(self._config, source=_SOURCE)
            self._store.connect()  # beside what is read: a first record would wait half a second
        self._store.bootstrap()
        return self._store

    def close(self) -> None:
        """It has no clients; the next ``read`` makes others."""
        store, self._store = self._store, None
        if store is not None:
            store.close()
