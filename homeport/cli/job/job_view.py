"""A job as its operator sees it: what runs, else what the coordinator stream has recorded."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from homeport.cli.options import FromJob, note
from homeport.config.config import Config, masked
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import with_own_places
from homeport.config.declarations.standalone_keys import LOCAL, ZOOKEEPER
from homeport.config.errors import (
    ConfigError,
    HomeportError,
    NoRightError,
    UnavailableError,
    WireError,
)
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.config.settings.standalone_section import coordinator_of
from homeport.job_coordinator.client_files import TOKEN_VARIABLE, application_secret, read_token
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import CONTACT_S, TopicAdmin
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.zookeeper.tool_session import registered_processors

TIMEOUT_S = 15.0
_AM_TIMEOUT_S = 5.0
_TRACKING_URL = keys.YARN_AM_TRACKING_URL.name
_CERTIFICATE = keys.YARN_AM_CERTIFICATE.name
_STANDALONE = frozenset({LOCAL, ZOOKEEPER})
_LOCAL = "homeport run-local"

PLACED_BY_USER = (
    "has no meaning for a standalone job, whose user places its processors",
    "start and stop processors instead; homeport explain shows where they are",
)
CONFIGURED_BY_FILE = (
    "has no effect on a standalone job, whose processors read their own files",
    "change the file of each processor, and restart them one after the other",
)


@dataclass(frozen=True)
class RunningJob:
    """A job whose AM, or leading processor, answers. ``model_version``: in force.

    ``application``: on YARN; of a standalone job its name for what runs.
    """

    client: CoordinatorClient
    application: str
    model_version: int

    def __str__(self) -> str:
        return f"the running job, {self.application} at {self.client.url}"


@dataclass(frozen=True)
class JobView:
    """One job: its coordinator stream, read to the head, and its AM if that answers.

    ``given``: the configuration that the operator named the job by.
    """

    given: Config
    topic: str
    stream: CoordinatorStream
    running: RunningJob | None

    @property
    def origin(self) -> str:
        """Name where what is shown comes from."""
        return str(self.running or f"the coordinator stream {self.topic}; the job does not run")

    def require_running(self, remedy: str = "start it with run-job, or try again") -> RunningJob:
        """Return the job as it answers; ConfigError where it does not."""
        if self.running is None:
            key = keys.JOB_NAME.name
            rule = "the job does not run, or its AM does not answer"
            raise ConfigError(key, self.given.get(key), rule, remedy)
        return self.running

    def require_on_yarn(self, command: str, rule: tuple[str, str] = PLACED_BY_USER) -> None:
        """Require that YARN runs the job. ``rule``: why ``command`` needs that, and the remedy."""
        require_on_yarn(self.given, self.stream, command, rule)

    def recorded_config(self) -> Config:
        """Return the stream's, secrets included; without what the AM writes about itself."""
        return ConfigManager(self.stream).deployed()

    def config(self, *, show_secrets: bool) -> Config:
        """Return what the job runs with, else what the stream has.

        A running job shows no secrets: secrets come from the stream.
        """
        recorded = self.recorded_config()
        if self.running is None:
            return recorded if show_secrets else masked(recorded)
        config = masked(Config(self.running.client.config()))
        if not show_secrets:
            return config
        hidden = masked(recorded)
        secret = {k for k, v in recorded.items() if hidden[k] != v and config.get(k) == hidden[k]}
        return config.merged({k: recorded[k] for k in secret})


def has_stream(config: Config) -> bool:
    """Return whether the job has a coordinator stream."""
    job = JobConfig.of(config)
    admin = TopicAdmin(SystemConfig.of(config, job.coordinator_system), CONTACT_S)
    return job.coordinator_topic in admin.partition_counts([job.coordinator_topic])


def stream_place(config: Config) -> tuple[SystemConfig, JobConfig]:
    """Return the system of the coordinator stream, and the job; ConfigError where it has none."""
    job = JobConfig.of(config)
    system = SystemConfig.of(config, job.coordinator_system)
    if not has_stream(config):
        raise keys.JOB_NAME.error(
            job.name,
            f"the job has no coordinator stream ({job.coordinator_topic!r} at "
            f"{system.bootstrap_servers})",
            "run the job once with run-job, or correct job.name and job.id",
        )
    return system, job


@contextlib.contextmanager
def open_stream(config: Config) -> Iterator[tuple[str, CoordinatorStreamStore]]:
    """Open the job's coordinator stream: its topic, and the stream, read to its head.

    ConfigError where the job has none, or another job has it; UnavailableError without Kafka.
    """
    _, job = stream_place(config)
    store = CoordinatorStreamStore.of(config, source=WRITER_SOURCE, timeout_s=TIMEOUT_S)
    with store:
        store.bootstrap()
        yield job.coordinator_topic, store


@contextlib.contextmanager
def open_job(config: Config) -> Iterator[JobView]:
    """Open the job that ``config`` names; errors as of ``open_stream``."""
    with open_stream(config) as (topic, store):
        yield JobView(config, topic, store, running_job(config, store))


OpenJob = Annotated[JobView, FromJob(lambda job: open_job(job.config()))]


def require_running(
    config: Config, on_yarn: str = "", rule: tuple[str, str] = PLACED_BY_USER
) -> RunningJob:
    """Return the job that ``config`` names, as its AM, or leading processor, answers.

    ``on_yarn``: the command, where only a job on YARN can take it: ConfigError for another job.
    ``rule``: why, and the remedy. UnavailableError where the job does not answer; else errors as
    of ``open_stream``.
    """
    with open_stream(config) as (_, store):
        if on_yarn:
            require_on_yarn(config, store, on_yarn, rule)
        running = running_job(config, store)
    if running is None:
        name = JobConfig.of(config).name
        if coordinator_in(store, config) in _STANDALONE:
            raise UnavailableError(
                f"the job {name} does not run: no processor of it answers as its leader; homeport "
                "job-model shows what the coordinator stream has"
            )
        raise UnavailableError(
            f"the job {name} does not run: only what runs has an allocator to ask; homeport "
            "locality shows where its containers last ran"
        )
    return running


def running_job(config: Config, stream: CoordinatorStream) -> RunningJob | None:
    """Return the job, if its own AM answers at its last address.

    Of a standalone job the leading processor answers, which ZooKeeper names, or the stream that of
    run-local. NoRightError where it needs a token for reading.
    """
    recorded, coordinator = ConfigManager(stream).read(), coordinator_in(stream, config)
    if coordinator == ZOOKEEPER:
        url, certificate = _leader_url(with_own_places(recorded, config).merged(config)), None
    else:
        url, certificate = recorded.get_str(_TRACKING_URL), recorded.get_str(_CERTIFICATE)
    if url is None:
        return None
    job = JobConfig.of(config)
    try:
        client = (
            CoordinatorClient(url, None, _AM_TIMEOUT_S)
            if coordinator in _STANDALONE
            else _client(stream, url, certificate)
        )
        found = client.status().job
    except (NoRightError, ConfigError):
        raise
    except HomeportError:  # no server, or another one
        return None
    if (found.name, found.id) != (job.name, job.id) or found.model_version is None:
        return None
    application = _LOCAL if coordinator == LOCAL else str(found.application)
    return RunningJob(client, application, found.model_version)


def _client(stream: CoordinatorStream, url: str, certificate: str | None) -> CoordinatorClient:
    """Return a client with the operator's token, unless the server is seen to be another."""
    named = os.environ.get(TOKEN_VARIABLE, "")
    token = read_token(Path(named)) if named else None
    client = CoordinatorClient(url, token, _AM_TIMEOUT_S, certificate)
    epoch = EpochManager(stream).read_am_epoch()
    if token is None or epoch is None:
        return client
    secret = application_secret(os.environ, epoch.rank.application)
    try:
        if secret is not None:
            client.require_proof(secret)
    except WireError as error:
        note(f"note: without the token: {error}")
        return CoordinatorClient(url, None, _AM_TIMEOUT_S, certificate)
    return client


def coordinator_in(stream: CoordinatorStream, config: Config) -> str | None:
    """Return the short name of what runs the job, by its stream, else by its file."""
    return coordinator_of(ConfigManager(stream).read()) or coordinator_of(config)


def is_standalone(config: Config, stream: CoordinatorStream) -> bool:
    """Return whether processors under ZooKeeper run the job."""
    return coordinator_in(stream, config) == ZOOKEEPER


def require_on_yarn(
    config: Config, stream: CoordinatorStream, command: str, rule: tuple[str, str]
) -> None:
    """Require that YARN runs the job. ``rule``: why ``command`` needs that, and the remedy."""
    found = coordinator_in(stream, config)
    if found in _STANDALONE:
        why, remedy = rule
        raise keys.JOB_COORDINATOR_FACTORY.error(found, f"homeport {command} {why}", remedy)


def _leader_url(config: Config) -> str | None:
    """Return where the leader answers; None where there is none, or ZooKeeper does not answer."""
    try:
        found = registered_processors(config, _AM_TIMEOUT_S)
    except (UnavailableError, WireError):
        return None
    return found[0].url or None if found else None
