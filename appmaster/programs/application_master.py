"""The driver's program: takes the job over, serves it by HTTP, and drives it to its end.

The supervisor runs it, again and again if need be. Exit code 0: the application's result is
reported. ``EXIT_FINAL``: the attempt is over for good. ``EXIT_UNFIT_HOST``: a port is taken here.
After that, and after any other code, the next process takes over, with the same rank on the same
port, and adopts the running containers.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib.metadata
import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    JobModelPublished,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.attempt.attempt_files import StartedLedger, inheritance
from homeport.appmaster.attempt.heartbeat import Heartbeat
from homeport.appmaster.attempt.inherited import Inheritance, charged_failures
from homeport.appmaster.attempt.supervision import EXIT_ENDED, EXIT_FINAL, exit_without_port
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager
from homeport.appmaster.driver.actions.operator_actions import DriverActions
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.driver.driver_settings import DriverSettings, allocator_settings
from homeport.appmaster.driver.http_backend import DriverBackend, DriverDecisions
from homeport.appmaster.driver.placement_requests import messages_of_a_new_run
from homeport.appmaster.driver.rollouts.am_environment import EnvironmentChangedError
from homeport.appmaster.driver.snapshot_sender import sending_snapshots
from homeport.appmaster.job_model import inputs_in_force, publication, takeover
from homeport.appmaster.job_model.input_acceptance import InputAcceptance
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration
from homeport.appmaster.job_model.live_job_coordinator import LiveJobCoordinator
from homeport.appmaster.job_model.model_change import (
    ModelChange,
    ModelPlanner,
    first_model,
    note_change,
)
from homeport.appmaster.job_model.topic_watch import TopicWatch
from homeport.appmaster.lease.fencing import fence_incarnation
from homeport.appmaster.lease.keeper_client import KeeperLink
from homeport.appmaster.programs.am_container import AmContainer, await_kafka, origin_of
from homeport.appmaster.report.job_status import JobIdentity
from homeport.appmaster.yarn.resource_manager_rest import ApplicationHosts, ResourceManagerRest
from homeport.appmaster.yarn.skein_resource_manager import (
    RequestLedger,
    SkeinResourceManager,
    connect,
)
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import CannotListenError, ConfigError, HomeportError, UnavailableError
from homeport.config.settings.log_section import LogConfig
from homeport.config.settings.sections import ClusterManagerConfig, JobConfig, YarnConfig
from homeport.job_coordinator import logs
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.config_change import require_model
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.history.writer import HistoryWriter, history_directory
from homeport.job_coordinator.http.actions import Operators
from homeport.job_coordinator.http.metrics import JobCoordinatorMetrics
from homeport.job_coordinator.http.pinned_tls import url_at
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.lifecycle import JobEndManager, RetryManager, StopManager
from homeport.job_coordinator.metadata.recorded_model import ModelRecords
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.planning.input_watch import inputs_now
from homeport.job_coordinator.python_environment import own_place

_YOUNG, _MIDDLE, _OLD = 20_000, 20, 50
"""Thresholds of Python's garbage collector, by generation."""
_KAFKA_TIMEOUT_S = 10.0

OpenCluster = Callable[[AmContainer], tuple[ClusterResourceManager, str]]
"""Returns the cluster manager for this container, and the URL of the application's page there."""

log = logging.getLogger("driver")


def history_of(container: AmContainer, job: JobConfig) -> HistoryWriter:
    """Return the writer of this driver's history."""
    base = container.environment.get("LOGGED_STORE_BASE_DIR") or job.logged_store_base_dir
    folder = history_directory(
        job.history_dir, base or container.folder / "state", job.directory_name
    )
    return HistoryWriter(folder, "driver", container.host, job.history_max_mb)


@dataclass(frozen=True, slots=True)
class Taken:
    """The values that a driver begins with, once it has taken the job over.

    ``url``: the URL of the application's page. ``found``: the permits of lower ranks.
    ``host_named``: returns the host that a locality value means. ``records``: what has made those
    of the JobModel in force.
    """

    container: AmContainer
    stream: CoordinatorStreamStore
    resources: ClusterResourceManager
    job_models: JobModelStore
    published: JobModelPublished
    url: str
    heartbeat: Heartbeat
    found: Inheritance
    host_named: Callable[[Host], Host]
    records: ModelRecords


def settings_of(
    container: AmContainer, stream: CoordinatorStreamStore, config: Config
) -> DriverSettings:
    """Return the driver's settings, from the configuration and from records of earlier drivers."""
    ending = JobEndManager(stream).read(container.rank.submission)
    return replace(
        DriverSettings.of(config),
        recorded_stops=frozenset(StopManager(stream).read()),
        ending=ShutdownRequested(ending.result, ending.diagnostics) if ending else None,
    )


def new_driver(taken: Taken) -> Driver:
    """Return the driver of this attempt, before its first event."""
    container, stream, job_models = taken.container, taken.stream, taken.job_models
    config = job_models.model.config
    job = JobConfig.of(config)
    history = history_of(container, job)
    reset = StateResetManager(stream).read()
    if reset is not None:
        history.event("state-reset", submission=reset.submission)
    adopt = () if taken.heartbeat.starts == 1 else permitted(taken.published, taken.found)
    # An earlier driver has waited if the attempt has permitted. The records of those stops may be
    # overwritten since, as a processor has one such record.
    inherited = replace(taken.found, permitted={}) if adopt else taken.found
    settings = replace(settings_of(container, stream, config), inherited=inherited, adopt=adopt)
    attempts, user = YarnConfig.of(config).am_max_attempts, container.environment.get("USER", "")
    python = own_place(container.environment) or sys.executable
    places = (taken.url, user, container.host, python, importlib.metadata.version("homeport"))
    return Driver(
        settings=settings,
        allocator=allocator_settings(config),
        identity=JobIdentity(job.name, job.id, container.rank, attempts, *places),
        published=taken.published,
        resources=taken.resources,
        stream=stream,
        history=history,
        keeper=KeeperLink(Path(), container.token),
        fence=lambda incarnation: fence_incarnation(job_models.model.config, incarnation),
        live=LiveJobCoordinator(
            configuration=LiveConfiguration(container.submission.submitted),
            job_models=job_models,
            planner=ModelPlanner(stream, job_models),
            look=inputs_now,
            history=history,
            topics=InputTopicManager(stream, container.rank.submission),
            look_for_topics=TopicWatch(stream, container.submission.submitted.file).look,
        ),
        publish=lambda change: publication.publish(
            *(change.model, stream, taken.host_named),
            restart_all=change.restarts_all,
            in_force=job_models.model,
            records=taken.records,
            is_by_itself=change.is_by_itself,
            also=(
                *change.messages,
                *inputs_in_force.records(
                    container.submission.submitted.config, change.model.config, stream
                ),
            ),
        ),
        started=StartedLedger(container.folder),
    )


async def serve(taken: Taken) -> JobResult:
    """Serve and drive the job until its end, and return how it ended.

    HomeportError: this attempt cannot go on.
    """
    container, stream, resources = taken.container, taken.stream, taken.resources
    config = taken.job_models.model.config
    driver = new_driver(taken)
    backend = DriverBackend(driver, container.attempt, resources)
    access = container.served(recorder_of_certificates(stream))
    access.exchange(keys.JOB_COORDINATOR_ACCESS_GENERATION.read(config))
    server = server_of(container, driver, backend, taken.heartbeat.port, access)
    address, port = await server.start()
    taken.heartbeat.send_port(port)
    url = url_at((address, port), container.tls)
    try:
        log.info("the job coordinator answers at %s", url)
        await asyncio.to_thread(announce, url, access.certificate, stream, resources)
        metrics = JobCoordinatorMetrics(backend.status, DriverDecisions(driver).metrics)
        with sending_snapshots(config, origin_of(container, config), metrics, backend.status):
            end = await driver.run(url)
    finally:
        await server.stop()
    return end.result


def recorder_of_certificates(stream: CoordinatorStreamStore) -> Callable[[str], None]:
    """Return a function that records a new certificate, in a thread: operators' tools trust it."""

    def write(certificate: str) -> None:
        try:
            stream.write([wire.set_config(keys.YARN_AM_CERTIFICATE.name, certificate)])
        except UnavailableError as e:  # the next driver records its own
            log.warning("the new certificate is not written down: %s", e)

    return lambda certificate: threading.Thread(target=write, args=(certificate,)).start()


def server_of(
    container: AmContainer,
    driver: Driver,
    backend: DriverBackend,
    port: int | None,
    access: ServedAccess,
) -> JobCoordinatorServer:
    """Return the driver's HTTP server; ``port``: None: the port in the configuration."""
    manager = ClusterManagerConfig.of(driver.live.job_models.model.config)
    actions = DriverActions(driver, container.submission.submitted.file, require_model)
    server = JobCoordinatorServer(
        backend,
        access,
        manager.url_host or container.names.address(container.host),
        port or manager.url_port,
        DriverDecisions(driver),
        operators=Operators(actions, driver.audit.trail),
        launchers=backend,
    )
    server.known_as(container.host)
    return server


def permitted(published: JobModelPublished, found: Inheritance) -> tuple[Incarnation, ...]:
    """Return the last incarnation of each processor that this attempt has permitted.

    The driver does not adopt incarnations of lower ranks: it waits for them.
    """
    last = (Incarnation(p, e) for p, e in {**published.retired, **published.epochs}.items() if e)
    return tuple(i for i in last if i not in found.permitted)


def announce(
    url: str,
    certificate: str | None,
    stream: CoordinatorStreamStore,
    resources: ClusterResourceManager,
) -> None:
    """Write the job coordinator's URL into the coordinator stream, and link it in YARN's page.

    YARN's proxy does not trust ``certificate``, so with https there is no link.
    """
    records = [wire.set_config(keys.YARN_AM_TRACKING_URL.name, url)]
    if certificate is not None:
        records.append(wire.set_config(keys.YARN_AM_CERTIFICATE.name, certificate))
    stream.write(records)
    if certificate is not None:
        return
    try:
        resources.add_page(url)
    except UnavailableError as e:
        log.warning("the page of the application has no link to the job coordinator: %s", e)


def begin(
    container: AmContainer,
    stream: CoordinatorStreamStore,
    job_models: JobModelStore,
    host_named: Callable[[Host], Host],
    records: ModelRecords,
    *,
    is_submission: bool,
) -> JobModelPublished:
    """Put the JobModel that the stream names into force, or the first one of this attempt."""
    named = EpochManager(stream).read_job_model_version()
    model = job_models.find(named) if named else None
    if model is None:
        submitted = container.submission.submitted
        model = first_model(submitted, stream, is_submission=is_submission)
        with closing(history_of(container, JobConfig.of(model.config))) as history:
            accept_inputs(model.config, stream, container.rank.submission, history)
            version = publication.version_of(model, stream).version
            job_models.save(version, model)
            change = ModelChange(version, model, "an attempt begins", restarts_all=True)
            note_change(history, None, change)
    also = inputs_in_force.records(container.submission.submitted.config, model.config, stream)
    published = publication.publish(model, stream, host_named, records=records, also=tuple(also))
    job_models.enter(published.version, model)
    job_models.remember({*published.epochs, *published.retired})
    log.info("JobModel version %d: %d containers", published.version, len(model.containers))
    return published


def accept_inputs(
    config: Config, stream: CoordinatorStreamStore, submission: int, history: HistoryWriter
) -> None:
    """Write the topic ids of the inputs; log inputs that begin again, also in the history.

    ConfigError: an input was recreated since the job has read it, and may not begin again.
    UnavailableError: Kafka did not answer.
    """
    inputs = InputAcceptance(config, stream)
    for line in inputs.check():
        log.warning("%s", line)
    # Before the acceptance: a driver that dies in between leaves a line too many, not too few.
    for name in inputs.recreated:
        history.event("input-begun-anew", input=str(name), submission=submission)
    inputs.accept(submission)


def host_names(container: AmContainer, resources: ClusterResourceManager) -> Callable[[Host], Host]:
    """Return a function from a locality value to the name that the cluster has for its host.

    It asks for the hosts once, where there is such a value.
    """

    @functools.cache
    def hosts() -> frozenset[Host]:
        try:
            return frozenset(report.host for report in resources.hosts())
        except UnavailableError as error:
            log.warning("homes are looked for by the names of their records: %s", error)
            return frozenset()

    return lambda host: container.host_named(host, hosts())


def _skein_of(
    container: AmContainer, hosts: ApplicationHosts | ResourceManagerRest
) -> SkeinResourceManager:
    address = container.environment.get("SKEIN_APPMASTER_ADDRESS", "")
    client = connect(container.application_id, container.names.with_known_address(address))
    ledger = RequestLedger(container.folder)
    return SkeinResourceManager(client, hosts, ledger)


def skein_cluster(container: AmContainer) -> tuple[ClusterResourceManager, str]:
    """Return YARN, through Skein's AM; UnavailableError: the RM's address is not known."""
    # The ResourceManager is found by the localised yarn-site.xml: no Hadoop client is needed here.
    rest = ResourceManagerRest.from_folder(container.folder)
    yarn = YarnConfig.of(container.submission.submitted.config)
    hosts = ApplicationHosts(
        rest, yarn.queue, yarn.container_label, container.names.with_known_address
    )
    return _skein_of(container, hosts), f"{rest.url}/proxy/{container.application_id}/"


def run(container: AmContainer, heartbeat: Heartbeat, open_cluster: OpenCluster) -> JobResult:
    """Take the job over, drive it to its end, and return how it ended.

    HomeportError: this attempt cannot go on.
    """
    resources, url = open_cluster(container)
    config = container.submission.config
    await_kafka(config, log)
    with takeover.outranking(config, container.rank, _KAFKA_TIMEOUT_S) as stream:
        StateResetManager(stream).require_finished()
        found = inheritance(container.folder, left_behind(container, stream))
        job_models = JobModelStore(container.folder)
        is_new = container.attempt == 1 and heartbeat.starts == 1
        named = host_names(container, resources)
        records = ModelRecords(stream)
        published = begin(container, stream, job_models, named, records, is_submission=is_new)
        logs.set_level(LogConfig.of(job_models.model.config).level)
        published = replace(
            published, failures=failures(stream, job_models.model.config, is_first=is_new)
        )
        if is_new:
            running, now_ms = job_models.model.config, wall_ms()
            stream.write(messages_of_a_new_run(stream, container.application_id, running, now_ms))
            stream.write(UpgradeManager(stream).messages_of_a_new_run(container.application_id))
            # Not by run-job: where that fails, the next one is judged by them once more.
            JobPackageManager(stream).forget()
        places = (container, stream, resources, job_models)
        return asyncio.run(serve(Taken(*places, published, url, heartbeat, found, named, records)))


def left_behind(container: AmContainer, stream: CoordinatorStreamStore) -> Inheritance:
    """Return the permits of lower ranks; their records have for how long they can run on."""
    own = DriverSettings.of(container.submission.submitted.config)
    return Inheritance(boot_ms(), takeover.permits(stream, own.unseen_ms))


def failures(
    stream: CoordinatorStreamStore, config: Config, *, is_first: bool
) -> dict[ProcessorId, ChargedFailures]:
    """Return the charges of earlier drivers that still count; a new application has none."""
    retries = RetryManager(stream)
    if is_first:
        retries.forget()
        return {}
    manager = ClusterManagerConfig.of(config)
    return charged_failures(
        retries.read(),
        retry_count=manager.retry_count,
        window_ms=manager.retry_window_ms,
        now_ms=wall_ms(),
    )


def report_failure(container: AmContainer, error: HomeportError) -> None:
    """Report to YARN that the application has failed with the error, if Skein can be reached."""
    try:
        skein = _skein_of(container, ResourceManagerRest((), ""))
        skein.finish(JobResult.FAILED, str(error))
    except HomeportError as e:
        log.warning("the failure cannot be reported to YARN: %s", e)


def main(open_cluster: OpenCluster = skein_cluster) -> int:
    """Drive the job of this YARN container; return the exit code: see the module's text."""
    logs.begin(sys.stdout, os.environ)
    heartbeat = Heartbeat(os.environ)
    heartbeat.await_turn()
    heartbeat.start()
    try:
        container = AmContainer.read(os.environ, Path.cwd())
    except (HomeportError, OSError) as e:
        log.error("the AM cannot start: %s", e)  # noqa: TRY400 - one line says it all
        return EXIT_FINAL
    try:
        result = run(container, heartbeat, open_cluster)
    except takeover.OutrankedError as e:
        log.error("%s", e)  # noqa: TRY400 - one line says it all
        if e.by.application != container.application_id:
            # No attempt of this application will ever be the highest again.
            report_failure(container, e)
        return EXIT_FINAL
    except ConfigError as e:
        # Any other attempt would fail the same way: the application ends with the reason.
        log.error("%s", e)  # noqa: TRY400 - one line says it all
        report_failure(container, e)
        return EXIT_FINAL
    except CannotListenError as e:
        log.error("%s", e)  # noqa: TRY400 - one line says it all
        heartbeat.log_cause(str(e))
        return exit_without_port(heartbeat.port)
    except HomeportError as e:
        is_fault = not isinstance(e, EnvironmentChangedError)
        level = logging.ERROR if is_fault else logging.INFO
        log.log(level, "this driver is over, the next one takes over: %s", e, exc_info=is_fault)
        heartbeat.log_cause(str(e))
        return 1
    log.info("the job has ended: %s", result.value)
    heartbeat.report_ended()
    return EXIT_ENDED


def look_less_often() -> None:
    """Let the garbage collector look through the state of a job fifty times less often.

    The state lives long and has no cycles, so each look is in vain: with 20,000 containers a look
    delayed one event by a third of a second, and all looks took a quarter of the driver's time.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


if __name__ == "__main__":
    look_less_often()
    sys.exit(main())
