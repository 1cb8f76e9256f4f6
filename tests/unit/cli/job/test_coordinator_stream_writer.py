"""What the writer tool makes of its command line."""

from __future__ import annotations

import pytest
from stream_in_memory import InMemoryCoordinatorStream
from typer.testing import CliRunner

from homeport.cli.job.coordinator_stream_writer import WritableType, app, message_of, messages_for
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.task_assignment import TaskAssignmentManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName


def test_each_type_is_the_message_of_its_name() -> None:
    """A value becomes the record of the type, its absence the tombstone."""
    assert message_of(WritableType.SET_CONFIG, "a", "1") == wire.set_config("a", "1")
    assert message_of(WritableType.SET_CHANGELOG, "t", "3") == wire.set_changelog("t", 3)
    host = message_of(WritableType.SET_CONTAINER_HOST, "0", "NM1")
    assert host == wire.set_container_host_assignment("0", "nm1")
    assert message_of(WritableType.SET_CONFIG, "a", None) == wire.tombstone("set-config", "a")


@pytest.mark.parametrize(
    ("message_type", "key", "value"),
    [
        (WritableType.SET_CONFIG, " ", "1"),
        (WritableType.SET_CONFIG, "job.container.count", "many"),
        (WritableType.SET_CONFIG, "job.name", "another"),
        (WritableType.SET_CONFIG, "systems.kafka.samza.offset.default", "newest"),
        (WritableType.SET_CHANGELOG, "t", "-1"),
        (WritableType.SET_CHANGELOG, "t", "x"),
        (WritableType.SET_CONTAINER_HOST, "0", " "),
    ],
)
def test_a_value_that_would_stop_the_job_is_refused(
    message_type: WritableType, key: str, value: str
) -> None:
    """A value that its reader could not use never reaches the stream."""
    with pytest.raises(ConfigError):
        message_of(message_type, key, value)


def test_a_processors_host_is_that_of_its_tasks() -> None:
    """Tasks' records decide, so they are written, or deleted, with the processor's."""
    stream = InMemoryCoordinatorStream()
    assignment = TaskAssignmentManager(stream)
    owners = {TaskName("t0"): ProcessorId("0"), TaskName("t1"): ProcessorId("1")}
    stream.write(assignment.messages(owners))
    stream.catch_up()
    written = messages_for(wire.set_container_host_assignment("0", "nm1"), assignment)
    assert written == (
        wire.set_task_host_assignment("t0", "nm1"),
        wire.set_container_host_assignment("0", "nm1"),
    )
    deleted = messages_for(wire.tombstone("set-container-host-assignment", "0"), assignment)
    assert [(m.type, m.key, m.is_tombstone) for m in deleted] == [
        ("set-task-host-assignment", "t0", True),
        ("set-container-host-assignment", "0", True),
    ]
    assert messages_for(wire.set_config("a", "b"), assignment) == (wire.set_config("a", "b"),)


@pytest.mark.parametrize("extra", [[], ["--value", "1", "--delete"]])
def test_value_and_delete_exclude_each_other(extra: list[str]) -> None:
    """Exactly one of the two says what is wanted."""
    arguments = ["--config-path", "p", "--type", "set-config", "--key", "a", *extra]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert "exactly one of --value and --delete" in str(result.exception)


def test_help_names_the_types() -> None:
    """--help is enough to use the tool."""
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("set-config", "set-changelog", "set-container-host-assignment", "--delete"):
        assert word in result.output
