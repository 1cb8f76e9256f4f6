"""The job that ``run-job`` is about: configuration, applications, coordinator stream."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from homeport.appmaster.yarn.application_tags import JOB_TAG_PREFIX
from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.appmaster.yarn.submission import application_name, job_tag
from homeport.cli.yarn import preflight
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.config.settings.standalone_section import require_never_standalone
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.record_limit import producer_limit, record_limit
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager

SOURCE = "job-runner"
"""The source of the configuration in the coordinator stream, as Samza names it."""


@dataclass(frozen=True)
class Job:
    """One job and the cluster it runs on; ``file``: its configuration without written keys."""

    config: Config
    rest: ResourceManagerRest
    file: Config

    @property
    def name(self) -> str:
        """Its name on YARN, which another job may have too."""
        return application_name(self.config)

    def last_application(self, stream: CoordinatorStream | None = None) -> Application | None:
        """Return its newest application that has not ended, else its newest of all.

        An application is the job's by its tag. One without such a tag, which an older
        version submitted, is the job's where the coordinator stream names it. ``stream``:
        read to its head; None: it is opened if need be. UnavailableError: YARN does not
        answer; or Kafka, and there is an application that may be the job's.
        """
        found = self.rest.applications(self.name)
        tag = job_tag(self.config)
        own = [a for a in found if tag in a.tags]
        if not any(a.is_active for a in own):
            untagged = [a for a in found if not _has_job_tag(a)]
            try:
                named = self._named_applications(stream)
            except UnavailableError:
                if untagged:
                    raise
                named = frozenset()
            own = [a for a in found if a in own or (a in untagged and a.application_id in named)]
        newest = [a for a in own if a.is_active] or own
        return newest[-1] if newest else None

    def require_not_running(self, stream: CoordinatorStream | None = None) -> None:
        """Require that the job does not run; ``stream`` and errors as for ``last_application``."""
        preflight.require_not_running(self.config, self.last_application(stream))

    def require_free(self, store: CoordinatorStreamStore) -> None:
        """Require that the stream is the job's own, and that it runs neither here nor elsewhere."""
        store.require_own()
        require_never_standalone(ConfigManager(store).read())
        self.require_not_running(store)

    def _named_applications(self, stream: CoordinatorStream | None) -> Collection[str]:
        """The applications that the coordinator stream names as the job's last."""
        if stream is None:
            if not self.has_stream():
                return ()
            with self.stream() as opened:
                return self._named_applications(opened)
        epochs = EpochManager(stream)
        submission, epoch = epochs.read_submission(), epochs.read_am_epoch()
        named = {submission and submission.application, epoch and epoch.rank.application}
        return {application for application in named if application}

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
        """The coordinator stream, read to its head; ConfigError where it is another job's."""
        with CoordinatorStreamStore.of(self.config, source=SOURCE) as store:
            store.bootstrap()
            yield store


def _has_job_tag(application: Application) -> bool:
    return any(tag.startswith(JOB_TAG_PREFIX) for tag in application.tags)
