"""``run-job``: submits a job to YARN, and asks about, waits for or ends one.

Order of ``run``: everything that can be checked is checked, then the coordinator stream is made and
the submission number taken, the configuration written, the application submitted, and the AM waited
for.
"""

import contextlib
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path

import typer

from homeport.appmaster.environment.job_python import job_python, published
from homeport.appmaster.yarn.ended_tokens import forget_ended_tokens
from homeport.appmaster.yarn.hadoop_files import hadoop_files
from homeport.appmaster.yarn.host_affinity import warnings
from homeport.appmaster.yarn.job_package import PreparedPackage, digest_of, package_path, prepared
from homeport.appmaster.yarn.kerberos import kerberos_login
from homeport.appmaster.yarn.resource_manager_rest import (
    CONF_DIR_VARIABLE,
    Application,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.skein_driver import SkeinDriver, starting_driver
from homeport.appmaster.yarn.submission import NodePython, Submission, submit
from homeport.cli.job.failure_reasons import with_reasons
from homeport.cli.job.kafka_check import check_kafka
from homeport.cli.options import ALLOWED, Named, described, new_app, note, warn
from homeport.cli.usage import interrupt_on_sigterm, run_app, run_program
from homeport.cli.yarn import preflight, state_check, state_reset, submission_claim
from homeport.cli.yarn.application import am_address, end_of, is_answering, log_place, samza_status
from homeport.cli.yarn.cluster_check import cluster_facts, require_fit
from homeport.cli.yarn.job import SOURCE, Job, order_drain, order_shutdown
from homeport.cli.yarn.waiting import Waiter, log_shortage
from homeport.config.config import Config
from homeport.config.declarations.operators_file import taking_back
from homeport.config.declarations.standalone_keys import YARN
from homeport.config.declarations.unknown_keys import ALLOW, require_known
from homeport.config.errors import ConfigError, HomeportError, UnavailableError
from homeport.config.secret_names import shown_value
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig, YarnConfig
from homeport.config.settings.standalone_section import check_mixed_roles, require_coordinator
from homeport.config.settings.validation import validate
from homeport.job_coordinator.client_files import forget_token
from homeport.job_coordinator.config_change import refuse_written
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.output_topics import create_outputs
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec, topics_of
from homeport.job_coordinator.metadata import epochs
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.lifecycle import RetryManager
from homeport.job_coordinator.metadata.state_facts import StoreSchemas
from homeport.job_coordinator.metadata.state_reset import OPTION
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.own_folders import cache_folder

_ANSWER_LIMIT_S = 180.0
_CLAIM_LIMIT_S = 30.0
_KILL_MARGIN_S = 15.0
_YARN_KILL_LIMIT_S = 60.0
_SILENCE_S = 300.0
"""The ResourceManager may be silent for so long; one that starts again answers sooner."""
_ADVICE = "see the log of the AM"


class Operation(StrEnum):
    """What ``run-job`` can do."""

    RUN = "run"
    STATUS = "status"
    KILL = "kill"
    WAIT = "wait"
    DRAIN = "drain"


# ---------------------------------------------------------------------------------------- run


def run(job: Job, *, reset_state: bool = False, other_package: bool = False) -> None:
    """Submit the job, whose configuration is valid; return when its AM answers.

    Prints id and URLs. ``reset_state``: whatever state and input positions it has are thrown
    away before. ``other_package``: it may have other code, or another environment, than the last
    upgrade has left it with. HomeportError: refused, in which case nothing has been written, or
    failed.
    """
    job = with_written_keys(job)
    config = job.config
    pipeline = PipelineConfig.of(config)
    may_be_none = pipeline is not None and not pipeline.needs_package
    path = package_path(YarnConfig.of(config).package_path, may_be_none=may_be_none)
    files = partial(hadoop_files, os.environ, kerberos_login(config))
    python = job_python(config, os.environ, files, note)
    log = cache_folder(os.environ) / "logs" / f"skein-{job.name}.log"
    # Skein's JVM starts beside the checks.
    with starting_driver(log, os.environ, kerberos_login(config)) as driver:
        model, schemas = check_job(job, reset_state=reset_state)
        facts = cluster_facts(config, job.yarn, os.environ)
        require_fit(config, facts, job.yarn.url)
        with job.connecting() as store, prepared(path, files) as package:
            digest = digest_of(package)
            state_check.check_package(job, digest, python, is_other_meant=other_package)
            imports = package.import_path
            forms = preflight.check_classes(config, python, imports, note, schemas)
            preflight.check_own_groupers(config, python, imports)
            warn(warnings(config, facts))
            note("checked: configuration, Kafka, YARN, package, classes")
            preflight.check_pipeline(config, python, imports, note)
            python = published(python, files, note)
            state_check.announce(job, forms)
            reset = partial(reset_state_of, config, model) if reset_state else None
            number, application_id = submit_once(job, store, package, python.node, driver, reset)
    note(f"submitted {application_id}")
    url = await_am(job, number, application_id, digest)
    print(f"application {application_id}")
    print(f"JobModel    {url}")
    print(f"status      {url}v1/status")
    print(f"dashboard   {url}ui/")
    print(f"YARN        {job.yarn.url}/cluster/app/{application_id}")


def check_job(job: Job, *, reset_state: bool) -> tuple[JobModel | None, Mapping[str, StoreSchemas]]:
    """Require that Kafka, the state and YARN let the job run.

    Returns its JobModel, where that is known already, and by what its stores were written.
    """
    check_kafka(job.config)
    preflight.warn_of_reporters(job.config, note)
    model = preflight.check_job_model(job.config, note, is_reset=reset_state)
    state_check.check_record_sizes(job.config, model, job.record_limit())
    schemas = state_check.check_state(job, reset_state=reset_state)
    preflight.check_token_folder(os.environ)
    job.yarn.require_reachable()
    forget_ended_tokens(os.environ, job.yarn)
    job.require_not_running()
    return model, schemas


def with_written_keys(job: Job) -> Job:
    """Lay what coordinator-stream-writer set over the job's file, and print it, key by key.

    ConfigError where the configuration breaks a rule with it.
    """
    if not job.has_stream():
        return job
    with job.stream() as store:
        written = ConfigManager(store).written()
    refuse_written(written, job.config)
    for key, value in written.items():
        if job.config.get(key, "") != value:
            shown = shown_value(key, value)
            note(
                f"note: {key} = {shown} was set by hand and stands; "
                f"{taking_back(key)} takes it back"
            )
    config = job.config.merged(written)
    if config != job.config:
        validate(config)
    return replace(job, config=config)


def submit_once(
    job: Job,
    store: CoordinatorStreamStore,
    package: PreparedPackage,
    python: NodePython,
    driver: Callable[[], SkeinDriver],
    reset: Callable[[int, CoordinatorStreamStore], None] | None,
) -> tuple[int, str]:
    """Submit the job, once, however many run-jobs try; return number and application.

    ``store``: not read yet. ``driver``: of Skein, once it serves. ``reset``: throws its state away
    before; None: it stays.
    ConfigError: it runs already, perhaps because another run-job was a moment earlier.
    """
    config = job.config
    section = JobConfig.of(config)
    system = SystemConfig.of(config, section.coordinator_system)
    TopicAdmin(system).ensure(coordinator_topic_spec(section))
    store.bootstrap()
    number = submission_claim.take_number(
        store,
        uuid.uuid4().hex,
        lambda: Waiter(_CLAIM_LIMIT_S).polls_logging("another run-job is submitting this job"),
        lambda: job.require_free(store),
        partial(submission_claim.fence_command, config),
    )
    try:
        store.require_own()
        if reset is None:
            # Once more: another run-job may have been here since the first look.
            state_check.require_unchanged(store, config)
            ConfigManager(store).replace(config, SOURCE)
        else:
            reset(number, store)
        if created := create_outputs(config, store):
            note(f"created: {', '.join(created)}")
        submission = Submission(
            config=config,
            file=job.file,
            number=number,
            package=str(package.archive),
            python=python,
            hadoop_conf_dir=Path(os.environ[CONF_DIR_VARIABLE]),
        )
        served = driver()
        submission_claim.require_newest(store, number)
        application_id = submit(submission, served, os.environ)
    except BaseException:
        # Also when interrupted: the next run-job need not wait for this one.
        submission_claim.withdraw(store, number)
        raise
    return number, application_id


def reset_state_of(
    config: Config, model: JobModel | None, number: int, store: CoordinatorStreamStore
) -> None:
    """Take state and input positions from the job; its stream gets the new configuration.

    ``model``: what runs then, where that is known already.
    """
    note("resetting the state of the job")
    require_newest = partial(submission_claim.require_newest, store, number)
    topics = state_reset.reset(config, model, number, SOURCE, require_newest)
    note(f"reset: recreated: {', '.join(str(topic) for topic in topics) or 'no topics'}")


def await_am(job: Job, number: int, application_id: str, package: str) -> str:
    """Wait for the URL at which the AM of this application answers, and return it.

    The stream names the application, and the sha256 of its ``package``. The job is submitted: a
    Kafka or a ResourceManager that is away for a while is waited for.
    """
    waiter, state = Waiter(_ANSWER_LIMIT_S), "unknown to YARN"
    with contextlib.ExitStack() as opened:
        store: CoordinatorStreamStore | None = None
        for _ in waiter.polls():
            try:
                application = job.yarn.application(application_id)
                state = application.state if application else state
                if application is not None and not application.is_active:
                    break
                if store is None:
                    store = opened.enter_context(job.stream())
                    named = epochs.Submission(number, application_id)
                    epochs.EpochManager(store).write_submission(named)
                    store.write([UpgradeManager.submitted_message(application_id, package)])
                address = am_address(store, application_id)
            except UnavailableError as e:
                waiter.log_progress(str(e))
                continue
            if address is not None and is_answering(address):
                return address.url
            waiter.log_progress(f"waiting for the AM ({state})")
        else:
            raise UnavailableError(
                f"the AM of {application_id} does not answer after {_ANSWER_LIMIT_S:.0f} s "
                f"({state}): see {job.yarn.url}/cluster/app/{application_id}"
            )
    raise UnavailableError(_story(job, application))


# ---------------------------------------------------------------------------------------- others


def status(job: Job) -> None:
    """Print one of Samza's words; a job that YARN does not know has not begun."""
    application = job.last_application()
    print(samza_status(application))
    if application is not None and application.is_active:
        log_shortage(job.config)


def wait(job: Job) -> int:
    """Return when the job has ended: 0 where it succeeded."""
    application = job.last_application()
    if application is None:
        raise UnavailableError(f"YARN knows no application {job.name!r}: run the job first")
    last = await_end(job, application, None)
    if last.final_status in ("SUCCEEDED", "KILLED"):
        note(end_of(last))
    else:
        note(_story(job, last))
    return 0 if last.final_status == "SUCCEEDED" else 1


def _story(job: Job, application: Application) -> str:
    """Return how the application failed, why its containers did, and the place of its log.

    Without Kafka the second is left out: YARN alone knows the end too.
    """
    story = end_of(application)
    with contextlib.suppress(HomeportError), job.stream() as stream:
        story = with_reasons(story, RetryManager(stream).reasons())
    return f"{story}; {_ADVICE}: {log_place(application)}"


def await_end(job: Job, application: Application, limit_s: float | None) -> Application:
    """Return the application as it has ended; raise UnavailableError at the limit."""
    last = application
    waiter, heard_s = Waiter(limit_s), 0.0
    for _ in waiter.polls():
        try:
            last = job.yarn.application(application.application_id) or last
        except UnavailableError as error:
            # The job goes on without the ResourceManager: that does not say how it ends.
            if waiter.elapsed_s - heard_s >= _SILENCE_S:
                raise
            waiter.log_progress(f"{error}")
            continue
        heard_s = waiter.elapsed_s
        if not last.is_active:
            forget_token(os.environ, last.application_id)
            return last
        waiter.log_progress(f"{last.application_id} is {last.state}")
    raise UnavailableError(f"{last.application_id} has not ended after {waiter.elapsed_s:.0f} s")


def kill(job: Job) -> None:
    """End the job: in order where its AM answers, else by YARN."""
    application = job.last_application()
    if application is None or not application.is_active:
        print(f"{job.name} is not running")
        return
    limit_s = TaskConfig.of(job.config).shutdown_ms / 1000 + _KILL_MARGIN_S
    try:
        order_shutdown(job, application)
        note(f"ordered {application.application_id} to stop; waiting up to {limit_s:.0f} s")
        last = await_end(job, application, limit_s)
    except HomeportError as e:
        note(f"no orderly stop ({e}): killing it by YARN")
        job.yarn.kill(application.application_id)
        await_end(job, application, _YARN_KILL_LIMIT_S)
        print(f"killed {application.application_id} by YARN")
    else:
        if last.final_status == "KILLED":
            print(f"stopped {application.application_id} in order")
        else:  # by itself, before the order reached it
            print(end_of(last))


# ---------------------------------------------------------------------------------------- command

_EPILOG = """\
HADOOP_CONF_DIR names the folder with the cluster's yarn-site.xml; of a local cluster it is set by
eval "$(homeport local env --name NAME)".

Progress and errors go to standard error: an error is one line with key, value, rule and remedy,
and exit code 1. run refuses before it writes anything, and a job that runs already is refused.

--reset-state throws away the job's state and its input positions, and runs it: changelogs and
checkpoints are recreated, and every task begins where samza.offset.default says. A change that
would mix up state, such as another grouper, is refused without it. Output topics stay as they are.

\b
Examples:
  run-job --config-path=my.properties --config=yarn.package.path=my_job
  run-job --config-path=my.properties --operation=status
  run-job --config-path=my.properties --operation=drain
  run-job --config-path=my.properties --operation=kill
"""

app = new_app()


@app.command(epilog=_EPILOG)
@described(
    operation=typer.Option(
        case_sensitive=False,
        help="run: submit, and return when the job's AM answers. status: print New, Running, "
        "SuccessfulFinish or UnsuccessfulFinish. wait: until the job ends; exit code 0 where "
        "it succeeded. drain: have it end by itself, as succeeded, once it has processed what "
        "its inputs hold; wait waits for that. kill: end it in order, or by YARN where that "
        "fails.",
    ),
    reset_state=typer.Option(OPTION, help="With run: begin with no state and no input position."),
    other_package=typer.Option(
        state_check.OTHER_PACKAGE,
        help="With run: submit although the last upgrade left other code or another environment.",
    ),
    allow_unknown_keys=typer.Option(ALLOW, help=f"With run: {ALLOWED}"),
)
def command(
    *,
    named: Named,
    operation: Operation = Operation.RUN,
    reset_state: bool = False,
    other_package: bool = False,
    allow_unknown_keys: bool = False,
) -> None:
    """Runs a stream job on YARN, or asks about, waits for, drains or ends one."""
    others = {state_check.OTHER_PACKAGE: other_package, ALLOW: allow_unknown_keys}
    options = {OPTION: reset_state, **others}
    for option in (name for name, is_given in options.items() if is_given):
        if operation is not Operation.RUN:
            raise ConfigError(
                option, None, "it is for run alone", f"leave --operation={operation} out"
            )
    is_run = operation is Operation.RUN
    config = named.config(topics_of if is_run else None)
    if is_run:
        require_coordinator(config, YARN)
        check_mixed_roles(config)
        if not allow_unknown_keys:
            require_known(config)
        warn(validate(config))
    job = Job(config, ResourceManagerRest.from_environment(os.environ), config)
    if is_run:
        run(job, reset_state=reset_state, other_package=other_package)
    elif operation is Operation.STATUS:
        status(job)
    elif operation is Operation.WAIT:
        sys.exit(wait(job))
    elif operation is Operation.DRAIN:
        print(order_drain(job))
    else:
        kill(job)


def main() -> None:
    """Run the command line; an error is one line on standard error and its exit code."""
    interrupt_on_sigterm()
    run_program(
        lambda: run_app(app),
        "run-job",
        "interrupted; a job that was submitted goes on: ask by --operation=status",
    )


if __name__ == "__main__":
    main()
