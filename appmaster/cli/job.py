"""The job that ``run-job`` is about: configuration, applications, coordinator stream."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from homeport.appmaster.cli import preflight
from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.appmaster.yarn.submission import application_name
from homeport.config.config import Config
from homeport.config.sections import JobConfig, SystemConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.record_limit import producer_limit, record_limit
from homeport.job_coordinator.kafka.topics import TopicAdmin

SOURCE = "job-runner"
"""Who writes the configuration into the coordinator stream, in Samza's words."""


@dataclass(frozen=True)
class Job:
    """One job and the cluster it runs on; ``file``: its configuration without written keys."""

    config: Config
    rest: ResourceManagerRest
    file: Config

    @property
    def name(self) -> str:
        """Its name on YARN."""
        return application_name(self.config)

    def last_application(self) -> Application | None:
        """Its newest application that has not ended, else its newest of all."""
        return preflight.last_application(self.rest, self.name)

    def has_stream(self) -> bool:
        """Whether there is a coordinator stream; UnavailableError where Kafka does not answer."""
        job = JobConfig.of(self.config)
        admin = TopicAdmin(SystemConfig.of(self.config, job.coordinator_system))
        return job.coordinator_topic in admin.partition_counts([job.coordinator_topic])

    def record_limit(self) -> int:
        """Bytes of the largest record that its coordinator stream takes, or would take."""
        job = JobConfig.of(self.config)
        system = SystemConfig.of(self.config, job.coordinator_system)
        if self.has_stream():
            return record_limit(system, job.coordinator_topic)
        return producer_limit(system)

    @contextlib.contextmanager
    def stream(self) -> Iterator[CoordinatorStreamStore]:
        """The coordinator stream, read to its head."""
        job = JobConfig.of(self.config)
        system = SystemConfig.of(self.config, job.coordinator_system)
        with CoordinatorStreamStore(system, job.coordinator_topic, source=SOURCE) as store:
            store.bootstrap()
            yield store
