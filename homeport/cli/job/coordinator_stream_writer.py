"""``coordinator-stream-writer``: puts one message into a job's coordinator stream.

Source: COORD, "Coordinator Stream Writer".
"""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.cli.job.job_view import CONFIGURED_BY_FILE, JobView, open_job
from homeport.cli.job.placement_request import NOT_LIVE, host_fault
from homeport.cli.options import ConfigPath, Overrides, described, loaded, new_app, note, warn
from homeport.cli.usage import run_app, run_program
from homeport.config.config import INT_MAX, Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import ListKey
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.loading.loader import declared_job
from homeport.config.secret_names import has_secret, shown_value
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.pipeline_section import has_pipeline
from homeport.job_coordinator.config_change import (
    AT_ONCE,
    FORCE,
    INPUTS,
    ConfigChange,
    check_deletion,
    check_key,
    checked_change,
    keys_with_inputs,
    require_model_here,
)
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.metadata.configuration import ConfigManager, change_list
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
)
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName, host_of
from homeport.job_coordinator.model.job_model import TaskMode
from homeport.job_coordinator.model.list_change import ListChange
from homeport.job_coordinator.planning.next_model import previous_assignment
from homeport.job_coordinator.ui.first_screen import listed


class WritableType(StrEnum):
    """Types that an operator may write; all others are the job's own."""

    SET_CONFIG = "set-config"
    SET_CHANGELOG = "set-changelog"
    SET_CONTAINER_HOST = "set-container-host-assignment"


@dataclass(frozen=True)
class How:
    """Options of a write.

    ``is_forced``: also of a key that no program reads. ``is_dry_run``: only a look, no write.
    ``is_at_once``: with the order to restart all containers together. ``also``: further keys of the
    same change, None: to be taken back. ``check`` raises ConfigError where the job's code does not
    fit a configuration.
    """

    is_forced: bool = False
    is_dry_run: bool = False
    is_at_once: bool = False
    also: Mapping[str, str | None] = field(default_factory=dict)
    check: Callable[[Config], object] | None = None

    @property
    def more(self) -> list[CoordinatorStreamMessage]:
        """The messages of the further keys."""
        kind = WritableType.SET_CONFIG
        return [
            wire.tombstone(kind, key) if value is None else wire.set_config(key, value)
            for key, value in self.also.items()
        ]


_PLAINLY = How()


def message_of(
    message_type: WritableType,
    key: str,
    value: str | None,
    job: Config | None = None,
    *,
    is_forced: bool = False,
) -> CoordinatorStreamMessage:
    """Return the message that the command line names; ``value`` None deletes the key.

    ``job``: its configuration, where it is at hand.

    ConfigError where key or value is not what the type takes.
    """
    if not key.strip():
        raise ConfigError("--key", key, "it must not be blank", "name what the message is about")
    if message_type is WritableType.SET_CONFIG:
        check_key(key, value, job, is_forced=is_forced)
    if value is None:
        return wire.tombstone(message_type, key)
    if message_type is WritableType.SET_CONFIG:
        return wire.set_config(key, value)
    if message_type is WritableType.SET_CHANGELOG:
        partition = whole_number(value, INT_MAX)
        if partition is None:
            rule = f"a changelog partition is a whole number from 0 to {INT_MAX}"
            raise ConfigError("--value", value, rule, "write the number of a partition")
        return wire.set_changelog(key, partition)
    host = host_of(value)
    if not host:
        raise ConfigError("--value", value, "it must name a host", "use --delete to remove one")
    return wire.set_container_host_assignment(key, host)


def messages_for(
    message: CoordinatorStreamMessage, assignment: TaskAssignmentManager
) -> tuple[CoordinatorStreamMessage, ...]:
    """Return ``message``; for a processor's host the same of its tasks, whose records decide."""
    if message.type != MessageType.SET_CONTAINER_HOST:
        return (message,)
    tasks = [t for t, processor in assignment.read().items() if processor == message.key]
    if message.is_tombstone:
        return LocalityManager.messages_to_forget(ProcessorId(message.key), tasks)
    host = host_of(wire.host(message) or "")
    return LocalityManager.messages(ProcessorId(message.key), tasks, host, epoch=None)


def write(
    config: Config,
    message: CoordinatorStreamMessage,
    how: How = _PLAINLY,
    note_meaning: Callable[[str], object] = print,
) -> str:
    """Write ``message`` to the job's coordinator stream; return one line about it.

    ``note_meaning`` gets what it will mean, before it is written. ConfigError: the job has no
    coordinator stream yet, or must not be changed so. UnavailableError: Kafka did not answer.
    """
    with open_job(config) as job:
        return _write(job, message, how, note_meaning)


def _write(
    job: JobView, message: CoordinatorStreamMessage, how: How, note_meaning: Callable[[str], object]
) -> str:
    meaning, warnings = "used from the job's next start", list[str]()
    if message.type == MessageType.SET_CONFIG:
        how = _with_keys_of_inputs(job, message, how)
        change = _checked(job, message, how)
        meaning = change.meaning(
            is_running=job.running is not None, restarting=_actives(job), is_at_once=how.is_at_once
        )
        given = {message.key: message.value("value"), **how.also}
        warnings += [line for k, v in given.items() if v is not None for line in change.missing(k)]
    elif message.type == MessageType.SET_CHANGELOG:
        partition = None if message.is_tombstone else wire.changelog_partition(message)
        ChangelogPartitionManager(job.stream).refuse(TaskName(message.key), partition)
        warnings = task_warnings(job, message)
    else:
        warnings = placement_warnings(job, message)
    warn(warnings)
    what = f"{job.topic}: {message.type} {message.key}"
    changed = (message, *how.more)
    if all(m.is_tombstone and m.key not in job.stream.latest(m.type) for m in changed):
        return f"{what} was not there; nothing changes"
    note_meaning(meaning)
    if how.is_dry_run:
        return "nothing was written"
    messages = [*how.more, *messages_for(message, TaskAssignmentManager(job.stream))]
    if message.type == MessageType.SET_CONFIG:
        # A reader of the first few refuses them: an input comes last, and goes first. Without its
        # store its records would be those of the tasks.
        goes = any(m.is_tombstone for m in messages)
        messages.sort(key=lambda m: (m.key in INPUTS) is not goes)
        orders, value = RollingRestartManager(job.stream), message.value("value")
        messages += orders.at_once_messages(message.key, value, is_at_once=how.is_at_once)
    job.stream.write(messages)
    if message.is_tombstone:
        return f"{what} deleted: the deployment's value, if any, stands again"
    value = message.value("value", "Partition", "host") or ""
    return f"{what} = {shown_value(message.key, value)}"


def _with_keys_of_inputs(job: JobView, message: CoordinatorStreamMessage, how: How) -> How:
    """Return ``how`` with the keys that come and go with the inputs of the change; print each."""
    changed = {**how.also, message.key: message.value("value")}
    if not any(key in INPUTS for key in changed):
        return how
    recorded, by_hand = job.recorded_config(), ConfigManager(job.stream).written()
    if not recorded:
        return how
    values = {**recorded, **{k: job.given.get(k) if v is None else v for k, v in changed.items()}}
    after = Config({k: v for k, v in values.items() if v is not None})
    found = keys_with_inputs(recorded, after, job.given, by_hand)
    more = {k: v for k, v in found.items() if k not in changed}
    for key, value in more.items():
        warn(check_key(key, value, job.given))
        what = "goes" if value is None else f"= {shown_value(key, value)}, by the job's file"
        note(f"with it: {key} {what}")
    return replace(how, also={**more, **how.also})


def write_list(
    job: JobView,
    key: ListKey,
    wanted: Callable[[tuple[str, ...]], ListChange],
    note_meaning: Callable[[str], object],
) -> bool:
    """Change the items of the key as ``wanted`` has them; no other writer's change is lost.

    ``note_meaning``, and errors, as of ``write``. Returns whether anything was to be changed.
    """

    def write_record(record: CoordinatorStreamMessage) -> None:
        check_key(key.name, record.value("value"))
        _write(job, record, _PLAINLY, note_meaning)

    return change_list(job.stream, key, wanted, write_record, secrets.token_hex(8), job.given)


def _actives(job: JobView) -> frozenset[str]:
    modes = TaskModeManager(job.stream).read()
    owners = TaskAssignmentManager(job.stream).read().items()
    return frozenset(p for t, p in owners if modes.get(t) is not TaskMode.STANDBY)


def task_warnings(job: JobView, message: CoordinatorStreamMessage) -> list[str]:
    """Return one line where the job has no task of that name."""
    known = sorted(TaskAssignmentManager(job.stream).read())
    return [] if message.is_tombstone else _unknown(message, known, "task of that name")


def placement_warnings(job: JobView, message: CoordinatorStreamMessage) -> list[str]:
    """Return one line where the job lacks that processor, or cannot place it on that host.

    The line has the host from which the record takes the processor's home.
    """
    job.require_on_yarn(message.type)
    if message.is_tombstone:
        return []
    status = None if job.running is None else job.running.client.status()
    if status is None:
        known = sorted({*TaskAssignmentManager(job.stream).read().values()})
    else:
        known = [container.processor_id for container in status.containers]
    missing = _unknown(message, known, "processor of that id")
    if missing:
        return missing
    host = host_of(wire.host(message) or "")
    fault = _fault_by_yarn(host) if status is None else host_fault(status, host)
    if fault is None:
        return []
    former = LocalityManager(job.stream).read_processors().get(ProcessorId(message.key), host)
    place = "" if former == host else f"; its home was {former}"
    return [f"--value = {host!r}: {fault}: the processor starts elsewhere while it is so{place}"]


def _unknown(message: CoordinatorStreamMessage, known: Sequence[str], what: str) -> list[str]:
    if not known or message.key in known:
        return []
    rule = f"the job has no {what}, but {listed(known)}"
    return [f"--key = {message.key!r}: {rule}: the record is read once there is one"]


def _fault_by_yarn(host: Host) -> str | None:
    """Return why YARN has no place on ``host`` now; None: it has, or cannot be asked from here."""
    try:
        hosts = ResourceManagerRest.from_environment(os.environ).running_hosts()
    except UnavailableError as error:
        note(f"note: whether the cluster has the host {host!r} is not checked: {error}")
        return None
    return None if host in hosts else f"{NOT_LIVE}; there are {listed(sorted(hosts))}"


def _checked(job: JobView, message: CoordinatorStreamMessage, how: How) -> ConfigChange:
    job.require_on_yarn("config set", CONFIGURED_BY_FILE)
    key, value = message.key, message.value("value")
    by_hand = ConfigManager(job.stream).written()
    for name, text in {key: value, **how.also}.items():
        if text is None:
            check_deletion(name, is_set_by_hand=name in by_hand)
    check_model = require_model_here(
        *(job.given, key, value, lambda line: warn([line])),
        *(previous_assignment(job.stream), InputTopicManager(job.stream).ids()),
    )

    def check(config: Config) -> None:
        check_model(config)
        try:
            if how.check is not None:
                how.check(config)
        except ConfigError as error:
            remedy = "write one, let the job run that code (homeport upgrade), then set the key"
            raise ConfigError(error.key, error.value, error.rule, remedy) from None

    return checked_change(
        key,
        value,
        job.recorded_config(),
        job.given,
        has_state=bool(ChangelogPartitionManager(job.stream).read()),
        check_model=check,
        also=how.also,
    )


def change_config(
    config: Config, key: str, value: str | None, how: How = _PLAINLY, *, is_typed: bool = True
) -> None:
    """Give the key that value in the coordinator stream, None: delete it; print what it means.

    ``is_typed``: the value stands on the command line. Errors as of ``write``.
    """
    message = message_of(WritableType.SET_CONFIG, key, value, config, is_forced=how.is_forced)
    beside = config.merged({k: v for k, v in how.also.items() if v is not None})
    for name, text in {key: value, **how.also}.items():
        warn(check_key(name, text, beside, is_forced=how.is_forced))
    if is_typed and value is not None and has_secret(key, value):
        line = (
            f"the value of {key} is on the command line, where everybody on this machine can read "
            f"it: homeport config set {key} - reads it from standard input"
        )
        warn([line])
    print(write(config, message, how))


def require_functions(path: str, config: Config) -> None:
    """Require that a Python file has functions for the records of the configuration's inputs.

    ``path``: the job's file. Where another task class gets the records, none is needed.
    """
    job, name = declared_job(path), keys.TASK_CLASS.name
    is_own = job is not None and config.get(name) == job.config_of(None).get(name)
    if job is not None and is_own and not keys.TASK_PIPELINE_OUTPUT.is_set(config):
        job.task_class(streams_of_tasks(config), has_pipeline=has_pipeline(config))


def require_one(option: str, key: str, value: str | None, what: str = "", *, delete: bool) -> None:
    """Require a value of ``key`` or ``--delete``; ``what``: the value, where ``option`` is none."""
    if (value is None) != delete:
        shown = None if value is None else shown_value(key, value)
        rule = f"exactly one of {what or option} and --delete is needed"
        raise ConfigError(option, shown, rule, "give one of them")


_EPILOG = """\
set-config: a configuration key. set-changelog: a task's changelog partition.
set-container-host-assignment: the host that a processor, and its tasks, should start on.

\b
Examples:
  coordinator-stream-writer --config-path=my.properties \\
    --type=set-config --key=task.commit.ms --value=5000
  coordinator-stream-writer --config-path=my.properties \\
    --type=set-config --key=task.commit.ms --delete
  coordinator-stream-writer --config-path=my.properties \\
    --type=set-container-host-assignment --key=0 --value=nm2
"""

Force = Annotated[
    bool,
    typer.Option(FORCE, help="Write a configuration key that no program reads; nothing restarts."),
]
AtOnce = Annotated[
    bool,
    typer.Option(
        AT_ONCE,
        help="Restart all active containers together where the key needs it, unwatched; else one "
        "container restarts after the other, and all go back where one fails.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only print what it would mean; write nothing.")
]

app = new_app()


@app.command(epilog=_EPILOG)
@described(
    message_type=typer.Option("--type", help="Kind of the message."),
    key=(
        "Configuration key (set-config), task name (set-changelog) or processor id "
        "(set-container-host-assignment)."
    ),
    value="Value, changelog partition or host name.",
    delete="Delete the key instead.",
)
def command(  # noqa: PLR0913 - one for each option
    *,
    config_path: ConfigPath,
    message_type: WritableType,
    key: str,
    value: str | None = None,
    delete: bool = False,
    config: Overrides = None,
    force: Force = False,
    at_once: AtOnce = False,
    dry_run: DryRun = False,
) -> None:
    """Writes one message to a job's coordinator stream.

    A configuration key set here stands above the properties file, in later deployments too, until
    it is deleted here; run-job says so. Whether a running job takes it at once, restarts its
    containers, and which, or waits for its next deployment is printed before it is written. Other
    types are used from its next start. A task keeps the changelog partition that has its state.
    A task, processor, host, store or system that the job does not have is warned of.
    """
    require_one("--value", key, value, delete=delete)
    given = loaded(config_path, config)
    how = How(force, dry_run, at_once, check=partial(require_functions, config_path))
    if message_type is WritableType.SET_CONFIG:
        change_config(given, key, value, how)
    else:
        print(write(given, message_of(message_type, key, value), how))


def main() -> None:
    """Run the command line; a user's error is one line on standard error and its exit code."""
    run_program(lambda: run_app(app), "coordinator-stream-writer")


if __name__ == "__main__":
    main()
