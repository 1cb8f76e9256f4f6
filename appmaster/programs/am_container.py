"""The AM's container, for the programs that run in it."""

from __future__ import annotations

import importlib.metadata
import logging
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.appmaster.report.metrics_snapshots import Origin
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.submission_file import SUBMISSION_FILE_NAME, SubmissionFile
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.access.job_access import JobSecret
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.http.messages import TOKEN_FILE_NAME
from homeport.job_coordinator.http.pinned_tls import (
    certificate_beside,
    secret_beside,
    server_context,
)
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host, host_of, known_as


@dataclass(frozen=True)
class AmContainer:
    """The environment of the AM's container, and the files localised into its folder."""

    environment: Mapping[str, str]
    folder: Path
    submission: SubmissionFile
    token: str
    names: NodeNames
    application_id: str
    attempt: int
    tls: ssl.SSLContext | None
    certificate: str | None
    secret: JobSecret | None

    @classmethod
    def read(cls, environment: Mapping[str, str], folder: Path) -> AmContainer:
        """Return the container that this process runs in.

        ConfigError: not a container that Skein started, or an older version has submitted the job.
        WireError: the submission file is damaged.
        """
        container = environment.get("CONTAINER_ID", "")
        parts = container.split("_")
        application_id = environment.get("SKEIN_APPLICATION_ID", "")
        if len(parts) < 5 or not application_id:  # noqa: PLR2004 - container_<time>_<app>_<attempt>_<n>
            raise ConfigError(
                "CONTAINER_ID", container, "Skein's AM sets it", "start the job by run-job"
            )
        return cls(
            environment=environment,
            folder=folder,
            submission=SubmissionFile.from_bytes((folder / SUBMISSION_FILE_NAME).read_bytes()),
            token=(folder / TOKEN_FILE_NAME).read_text(encoding="utf-8").strip(),
            names=NodeNames.from_environment(environment),
            application_id=application_id,
            attempt=int(parts[-2]),
            tls=server_context(folder),
            certificate=certificate_beside(folder / TOKEN_FILE_NAME),
            secret=secret_beside(folder / TOKEN_FILE_NAME),
        )

    def served(self, on_certificate: Callable[[str], None] = lambda _: None) -> ServedAccess:
        """Return the access of a server of this container, from the submission's secrets."""
        return ServedAccess(self.token, self.secret, self.tls, self.certificate, on_certificate)

    @property
    def rank(self) -> Rank:
        """The rank of this attempt."""
        return Rank(self.submission.number, self.application_id, self.attempt)

    @property
    def host(self) -> Host:
        """The host that the AM runs on."""
        return host_of(self.environment.get("NM_HOST", "localhost"))

    def host_named(self, host: Host, hosts: Collection[Host]) -> Host:
        """Return the one of ``hosts`` for a value of locality; of another the value itself.

        The value is a name, short or full, or an address that a table knows. Samza's containers
        write the name that their machine has for itself.
        """
        return known_as(host_of(self.names.known_name(host) or host), hosts)


_LOOK_S = 10.0


def await_kafka(config: Config, log: logging.Logger) -> None:
    """Wait until the coordinator stream's Kafka answers, without a limit, and log it.

    A program that went on would fail again and again, until its supervisor gave the attempt up.
    """
    system = SystemConfig.of(config, JobConfig.of(config).coordinator_system)
    TopicAdmin(system, _LOOK_S).await_reachable(log)


def origin_of(container: AmContainer, config: Config) -> Origin:
    """Return the origin of this driver's snapshots of metrics."""
    job, resource = JobConfig.of(config), container.environment.get("CONTAINER_ID", "")
    version = importlib.metadata.version("homeport")
    return Origin(job.name, job.id, resource, container.host, version, wall_ms())
