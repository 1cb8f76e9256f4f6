"""``coordinator-stream-writer``: puts one message into a job's coordinator stream.

Source: COORD, "Coordinator Stream Writer".
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from homeport.config import keys
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.loader import load
from homeport.config.secret_names import shown_value
from homeport.config.sections import JobConfig, SystemConfig
from homeport.job_coordinator.cli.usage import run_app, usage_error
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE
from homeport.job_coordinator.metadata.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.metadata.task_assignment import TaskAssignmentManager
from homeport.job_coordinator.model.ids import ProcessorId, host_of

_TIMEOUT_S = 15.0
_IDENTITY = (keys.JOB_NAME.name, keys.JOB_ID.name, keys.JOB_COORDINATOR_SYSTEM.name)


class WritableType(StrEnum):
    """Types that an operator may write; all others are the job's own."""

    SET_CONFIG = "set-config"
    SET_CHANGELOG = "set-changelog"
    SET_CONTAINER_HOST = "set-container-host-assignment"


def message_of(message_type: WritableType, key: str, value: str | None) -> CoordinatorStreamMessage:
    """The message that the command line asks for; ``value`` None deletes the key.

    Raises:
        ConfigError: the key or the value is not what the type takes.
    """
    if not key.strip():
        raise ConfigError("--key", key, "it must not be blank", "name what the message is about")
    if value is None:
        return wire.tombstone(message_type, key)
    if message_type is WritableType.SET_CONFIG:
        _check_known_key(key, value)
        return wire.set_config(key, value)
    if message_type is WritableType.SET_CHANGELOG:
        if not (value.isascii() and value.isdecimal()):
            raise ConfigError(
                "--value", value, "a changelog partition is a whole number", "write 0 or more"
            )
        return wire.set_changelog(key, int(value))
    host = host_of(value)
    if not host:
        raise ConfigError("--value", value, "it must name a host", "use --delete to remove one")
    return wire.set_container_host_assignment(key, host)


def _check_known_key(key: str, value: str) -> None:
    """A value that the job could not read is refused: it would stop the next start."""
    if key in _IDENTITY:
        raise ConfigError(
            "--key",
            key,
            "it says which job this is and where its coordinator stream is",
            "change it in the properties file",
        )
    given = Config({key: value})
    known = keys.declared(key)
    if known is not None:
        known.check(given, key)


def messages_for(
    message: CoordinatorStreamMessage, assignment: TaskAssignmentManager
) -> tuple[CoordinatorStreamMessage, ...]:
    """``message``; for a processor's host the same of its tasks, whose records decide."""
    if message.type != MessageType.SET_CONTAINER_HOST:
        return (message,)
    tasks = [t for t, processor in assignment.read().items() if processor == message.key]
    if message.is_tombstone:
        return (
            *(wire.tombstone(MessageType.SET_TASK_HOST, task) for task in sorted(tasks)),
            message,
        )
    host = host_of(wire.host(message) or "")
    return LocalityManager.messages(ProcessorId(message.key), tasks, host, epoch=None)


def write(config: Config, message: CoordinatorStreamMessage) -> tuple[str, bool]:
    """``message`` is in the coordinator stream of the job that ``config`` describes.

    Returns:
        The stream's topic, and whether its key had a value before.

    Raises:
        ConfigError: the job has no coordinator stream yet.
        UnavailableError: Kafka did not answer in time.
    """
    job = JobConfig.of(config)
    system = SystemConfig.of(config, job.coordinator_system)
    topic = job.coordinator_topic
    if not TopicAdmin(system, _TIMEOUT_S).partition_counts([topic]):
        raise ConfigError(
            keys.JOB_NAME.name,
            job.name,
            f"the job has no coordinator stream ({topic!r} at {system.bootstrap_servers})",
            "run the job once with run-job, or correct job.name and job.id",
        )
    with CoordinatorStreamStore(system, topic, source=WRITER_SOURCE, timeout_s=_TIMEOUT_S) as store:
        store.bootstrap()
        known = message.key in store.latest(message.type)
        store.write(messages_for(message, TaskAssignmentManager(store)))
    return topic, known


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

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(epilog=_EPILOG)
def command(
    *,
    config_path: Annotated[
        str, typer.Option(help="The job's properties file: a path or a file: URL.")
    ],
    message_type: Annotated[WritableType, typer.Option("--type", help="Kind of the message.")],
    key: Annotated[
        str,
        typer.Option(
            help="Configuration key (set-config), task name (set-changelog) or processor id "
            "(set-container-host-assignment)."
        ),
    ],
    value: Annotated[
        str | None, typer.Option(help="Value, changelog partition or host name.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the key instead.")] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(help="key=value, laid over the properties file; may be given many times."),
    ] = None,
) -> None:
    """Writes one message to a job's coordinator stream.

    The job uses it from its next start. A configuration key set here stands above the properties
    file, in later deployments too, until it is deleted here; run-job says so.
    """
    if (value is None) != delete:
        raise ConfigError(
            "--value",
            None if value is None else shown_value(key, value),
            "exactly one of --value and --delete is needed",
            "give one of them",
        )
    message = message_of(message_type, key, value)
    topic, known = write(load(config_path, config or ()), message)
    if delete and not known:
        print(f"{topic}: {message_type.value} {key} was not there; nothing changes")
        return
    what = "deleted" if value is None else f"= {shown_value(key, value)}"
    print(f"{topic}: {message_type.value} {key} {what}")
    if message_type is WritableType.SET_CONFIG:
        said = "the properties file's value, if any," if delete else "this value"
        print(f"from the job's next start {said} is used")


def main() -> None:
    """Runs the command line; a user's error is one line on stderr and exit code 1."""
    try:
        run_app(app)
    except HomeportError as error:
        sys.exit(f"error: {error}")
    except typer.TyperException as error:
        sys.exit(f"error: {usage_error(error)}; see coordinator-stream-writer --help")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)


if __name__ == "__main__":
    main()
