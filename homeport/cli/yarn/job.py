"""The job that ``run-job`` is about: configuration, applications, stream, orders to end it.

Also a job that does not run, for commands that change what it has left behind.
"""

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from homeport.appmaster.lease.fencing import fence_all
from homeport.appmaster.yarn.resource_manager_rest import (
    CONF_DIR_VARIABLE,
    JOB_TAG_PREFIX,
    Application,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.submission import application_name, job_tag
from homeport.cli.job.job_view import TIMEOUT_S, has_stream, is_standalone, open_stream, running_job
from homeport.cli.yarn.application import am_address
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import taking_back, with_own_places
from homeport.config.declarations.standalone_keys import LOCAL
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig, repartitions
from homeport.config.settings.standalone_section import (
    require_never_standalone,
    require_no_migration,
)
from homeport.job_coordinator.client_files import (
    application_secret,
    is_application,
    read_token,
    token_path,
)
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.record_limit import producer_limit, record_limit
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.standalone.handover import (
    last_plan,
    require_none_registered,
    to_fence,
)
from homeport.job_coordinator.zookeeper.handover_nodes import HandoverNodes, handover_nodes

SOURCE = "job-runner"
"""The source of the configuration in the coordinator stream, as Samza names it."""


@dataclass(frozen=True)
class Job:
    """One job and the cluster it runs on; ``file``: its configuration without written keys."""

    config: Config
    yarn: ResourceManagerRest
    file: Config

    @property
    def name(self) -> str:
        """Return its name on YARN, which another job may have too."""
        return application_name(self.config)

    def last_application(self, stream: CoordinatorStream | None = None) -> Application | None:
        """Return its newest application that has not ended, else its newest of all.

        An application is the job's by its tag. One without such a tag, which an older
        version submitted, is the job's where the coordinator stream names it. ``stream``:
        read to its head; None: it is opened if need be. UnavailableError: YARN does not
        answer; or Kafka, and there is an application that may be the job's.
        """
        found = self.yarn.applications(self.name)
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
        last = self.last_application(stream)
        if last is not None and last.is_active:
            job = JobConfig.of(self.config)
            raise keys.JOB_NAME.error(
                job.name,
                f"the job {job.name!r} with {keys.JOB_ID.name}={job.id} runs already as "
                f"{last.application_id} ({last.state})",
                "stop it by --operation=kill, or give this job another job.id",
            )

    def require_no_namesake(self) -> None:
        """Require that YARN runs no application of the job's name but Homeport's own.

        ConfigError: it does: perhaps the job, as Samza has submitted it.
        """
        for other in self.yarn.applications(self.name):
            if other.is_active and not _has_job_tag(other):
                raise keys.JOB_NAME.error(
                    JobConfig.of(self.config).name,
                    f"YARN runs {other.application_id} ({other.state}) of the name {self.name!r}, "
                    "which Homeport has not submitted: it may be the job, as Samza's",
                    "stop it first",
                )

    def ended_applications(self, stream: CoordinatorStream) -> list[str]:
        """Return its applications that have ended, also those that YARN has forgotten.

        ``stream``: read to its head; the job does not run.
        """
        tag = job_tag(self.config)
        known = (a for a in self.yarn.applications(self.name) if tag in a.tags)
        ended = {a.application_id for a in known if not a.is_active}
        return sorted({*ended, *filter(is_application, self._named_applications(stream))})

    def require_free(self, store: CoordinatorStreamStore) -> None:
        """Require that the stream is the job's own, and that it runs neither here nor elsewhere."""
        store.require_own()
        require_never_standalone(ConfigManager(store).read())
        self.require_not_running(store)

    def _named_applications(self, stream: CoordinatorStream | None) -> Collection[str]:
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
        """Return whether there is a coordinator stream."""
        return has_stream(self.config)

    def record_limit(self) -> int:
        """Return the bytes of the largest record that its coordinator stream takes."""
        job = JobConfig.of(self.config)
        system = SystemConfig.of(self.config, job.coordinator_system)
        if self.has_stream():
            return record_limit(system, job.coordinator_topic)
        return producer_limit(system)

    @contextlib.contextmanager
    def stream(self) -> Iterator[CoordinatorStreamStore]:
        """Open the coordinator stream, read to its head; ConfigError where it is another job's."""
        with CoordinatorStreamStore.of(self.config, source=SOURCE) as store:
            store.bootstrap()
            yield store

    @contextlib.contextmanager
    def connecting(self) -> Iterator[CoordinatorStreamStore]:
        """Open it beside other work; it needs ``bootstrap`` once the topic is there.

        The first record of a client that has only begun to connect waits half a second.
        """
        with CoordinatorStreamStore.of(self.config, source=SOURCE) as store:
            store.connect()
            yield store


def _has_job_tag(application: Application) -> bool:
    return any(tag.startswith(JOB_TAG_PREFIX) for tag in application.tags)


def order_drain(job: Job) -> str:
    """Write the order to the stream, until the next deployment; return a line about it.

    UnavailableError: the job does not run, or YARN or Kafka does not answer.
    """
    application = job.last_application()
    if application is None or not application.is_active:
        raise UnavailableError(f"{job.name} is not running: there is nothing to drain")
    with job.stream() as store:
        is_new = write_order(store)
    id_ = application.application_id
    line = f"ordered {id_} to drain" if is_new else f"{id_} drains already, by an earlier order"
    return f"{line}; it ends by itself: --operation=wait waits for that"


def write_order(stream: CoordinatorStream) -> bool:
    """Write the order to the stream, read to its head; return False where it was there.

    A deployment removes what is neither in its file nor set by hand, and so the order.
    ConfigError: the key of the order was set by hand to something else, or the job never drains.
    """
    manager, key = ConfigManager(stream), keys.JOB_DRAIN.name
    config = manager.read()
    if keys.JOB_DRAIN.read(config):
        return False
    own = repartitions(config)
    if own:
        raise ConfigError(
            key,
            "true",
            f"the job has the repartition {own[0].name!r}, and no container knows when others have "
            "sent",
            "end the job by --operation=kill once its lag is 0: what waits stays",
        )
    by_hand = manager.written().get(key)
    if by_hand is not None:
        rule = "it was set by hand, which stands above this order"
        raise ConfigError(key, by_hand, rule, f"take it back: {taking_back(key)}")
    manager.set(key, "true", SOURCE)
    return True


def order_shutdown(job: Job, application: Application) -> None:
    """Order the AM to end the job.

    ConfigError: there is no token. UnavailableError: no AM answers. WireError: what answers is
    not the AM of this submission; it gets no token.
    """
    token = read_token(token_path(os.environ, application.application_id))
    with job.stream() as store:
        address = am_address(store, application.application_id)
    if address is None:
        raise UnavailableError("its AM has published no address")
    secret = application_secret(os.environ, application.application_id)
    client = CoordinatorClient(address.url, token, certificate=address.certificate, secret=secret)
    if secret is not None:
        client.require_proof(secret)
    client.shutdown()


@dataclass
class StoppedJob:
    """One job. ``stream``: read to its head.

    ``nodes``: None: it never had a tree. ``yarn``: None: it ran elsewhere, and no YARN is named.
    """

    config: Config
    stream: CoordinatorStream
    nodes: HandoverNodes | None
    yarn: Job | None

    @property
    def job(self) -> JobConfig:
        """Return the job as the operator's file has it."""
        return JobConfig.of(self.config)

    @property
    def recorded(self) -> Config:
        """Return what the job ran with last, at the places of the operator's file."""
        found = with_own_places(ConfigManager(self.stream).read(), self.config)
        reach = {key: value for key, value in self.config.items() if key.startswith("systems.")}
        return found.merged(reach)

    @property
    def is_local(self) -> bool:
        """Return whether run-local has run it last."""
        return keys.JOB_COORDINATOR_FACTORY.read(ConfigManager(self.stream).read()) == LOCAL

    def require_at_rest(self) -> None:
        """Require that nothing of the job runs, and no migration is under way; else ConfigError."""
        self.stream.catch_up()
        require_no_migration(ConfigManager(self.stream).read())
        if self.yarn is not None:
            self.yarn.require_not_running(self.stream)
            self.yarn.require_no_namesake()
        if self.nodes is not None:
            require_none_registered(self.job.name, self.nodes.read().processors)
        running = running_job(self.config, self.stream)
        if running is not None:
            remedy = "stop it: on YARN by run-job --operation=kill, else its processor by SIGTERM"
            raise keys.JOB_NAME.error(self.job.name, f"it is {running}", remedy)

    def fence_standalone(self) -> None:
        """Keep all incarnations from further commits that ran under ZooKeeper or run-local."""
        config, found = self.recorded, set[Incarnation]()
        if self.nodes is not None:
            kept = self.nodes.read()
            found |= set() if kept.plan is None else {*to_fence(last_plan(kept.plan, kept.fenced))}
        reports = EpochManager(self.stream).read_fenced().items()
        found |= {Incarnation(processor, report.epoch) for processor, report in reports}
        fence_all(config, sorted(found))


@contextlib.contextmanager
def open_stopped(config: Config) -> Iterator[tuple[CoordinatorStreamStore, StoppedJob]]:
    """Yield the job's stream, and the job, which is not looked at yet; errors as of its parts."""
    with contextlib.ExitStack() as opened:
        _, store = opened.enter_context(open_stream(config))
        standalone = is_standalone(config, store)
        found = StoppedJob(config, store, None, None)
        # A job that runs elsewhere may have been under a ZooKeeper before.
        if standalone or keys.JOB_COORDINATOR_ZK_CONNECT.is_set(config):
            factory = keys.JOB_COORDINATOR_FACTORY.name
            recorded = ConfigManager(store).read().merged(dict(config))
            named = Config({key: value for key, value in recorded.items() if key != factory})
            found.nodes = opened.enter_context(handover_nodes(named, TIMEOUT_S))
        if not (standalone or found.is_local) or CONF_DIR_VARIABLE in os.environ:
            found.yarn = Job(config, ResourceManagerRest.from_environment(os.environ), config)
        yield store, found
