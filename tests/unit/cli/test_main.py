"""The operator's tool: what it says without a job, and what it makes of records."""

from __future__ import annotations

import json
from importlib import metadata

import pytest
import typer
from json_answers import require_promised

from homeport import __version__
from homeport.cli import completion_command
from homeport.cli import main as homeport
from homeport.cli.job import stream_commands
from homeport.cli.options import described, new_app
from homeport.config.errors import ConfigError, HomeportError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.kafka.coordinator_stream_log import LoggedRecord
from homeport.job_coordinator.metadata.job_packages import JobPackageManager


def _stamped(message: CoordinatorStreamMessage) -> CoordinatorStreamMessage:
    return message.stamped(source="job-runner", host="h1", username="u", timestamp_ms=1_000)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without words and with --help; it is enough to begin."""
    for arguments in ([], ["--help"], ["help"]):
        homeport.run(arguments)
        shown = capsys.readouterr().out
        assert all(f"  {name} " in shown for name in homeport.COMMANDS)
        assert all(command.summary in shown for command in homeport.COMMANDS.values())


@pytest.mark.parametrize(
    "name", [*homeport.COMMANDS, "config get", "config set", "config diff", "config reference"]
)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its module is there, and says how it is used under the name it is called by."""
    homeport.run([*name.split(), "--help"])
    assert f"Usage: homeport {name} " in capsys.readouterr().out


def test_an_unknown_command_gives_one_line() -> None:
    """It names the one that may have been meant, else those that there are."""
    expected = r"no command 'jobmodel': did you mean job-model\?; see homeport --help$"
    with pytest.raises(HomeportError, match=expected):
        homeport.run(["jobmodel"])
    with pytest.raises(HomeportError, match=r"no command 'xyz': it has audit, .*upgrade, what"):
        homeport.run(["xyz"])


def test_an_unknown_option_is_typers_error() -> None:
    """The program turns it into one line."""
    with pytest.raises(typer.TyperException, match="No such option"):
        homeport.run(["locality", "--nothing"])


def test_an_unknown_command_below_another_gives_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also there the nearest one is offered; exit code as of any usage error."""
    monkeypatch.setattr("sys.argv", ["homeport", "state", "lsit"])
    with pytest.raises(SystemExit, match="1"):
        homeport.main()
    line = "error: No such command 'lsit'. Did you mean 'ls'?; see homeport state --help\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["coordinator-stream", "tail", "--lines=1_0"], "a whole number from 0 to 2147483647"),
        (["coordinator-stream", "tail", "--lines=\u0663"], "a whole number from 0 to 2147483647"),
        (["explain", "0", "--last= 5"], "a whole number from 1 to 1000"),
        (["explain", "0", "--last=1001"], "a whole number from 1 to 1000"),
        (["job-model", "--version=+1"], "a whole number of at least 1"),
        (["local", "slow-node", "nm1", "1_0"], "a whole number"),
        (["local", "up", "--nodes=1_0"], "a whole number"),
        (["status", "--watch=nan"], "a number of at least 0.2"),
        (["status", "--watch=1_0"], "a number of at least 0.2"),
        (["doctor", "--free-mb=1_0"], "a whole number of at least 1"),
    ],
)
def test_numbers_of_options_are_those_of_the_configuration(arguments: list[str], rule: str) -> None:
    """Python's own reader takes more: underscores, digits of all scripts, blanks, nan."""
    with pytest.raises(typer.TyperException) as refused:
        homeport.run(arguments)
    assert refused.value.format_message().endswith(f"it must be {rule}")


def test_a_declared_parameter_is_one_of_the_command() -> None:
    """A wrong name ends the import, and so every test of the command."""
    with pytest.raises(TypeError, match=r"command has no parameters \{'wait'\}"):

        @new_app().command()
        @described(wait="How long.")
        def command(*, waits: int = 1) -> None:
            assert waits


def test_the_reference_needs_no_job(capsys: pytest.CaptureFixture[str]) -> None:
    """All keys, some keys, or a word that there are none."""
    homeport.run(["config", "reference", "catch-up", "--format=json"])
    printed = capsys.readouterr().out
    require_promised(["config", "reference"], printed)
    body = json.loads(printed)
    assert [row["key"] for row in body["keys"]] == ["job.coordinator.catch-up.interval.ms"]
    with pytest.raises(ConfigError, match="no key's name holds this text"):
        homeport.run(["config", "reference", "no.such.key"])


@pytest.mark.parametrize("arguments", [["k"], ["k", "v", "--delete"]])
def test_a_value_and_delete_exclude_each_other(arguments: list[str]) -> None:
    """Exactly one of the two says what is wanted."""
    with pytest.raises(ConfigError, match="exactly one of a value and --delete"):
        homeport.run(["config", "set", *arguments, "--config-path=p"])


def test_a_record_is_one_line() -> None:
    """Offset, type, key, values, source and time; a deletion and damage say so."""

    def line(message: CoordinatorStreamMessage | None, fault: str = "") -> str:
        record = LoggedRecord(7, message, fault)
        return stream_commands.record_line(record, as_json=False, show_secrets=False)

    who = "  (job-runner, u@h1, 1970-01-01T00:00:01.000+00:00)"
    assert line(_stamped(wire.set_config("a", "1"))) == f"7  set-config  a = 1{who}"
    secret = _stamped(wire.set_config("a.token", "1"))
    assert line(secret) == f"7  set-config  a.token = ********{who}"
    mode = _stamped(wire.set_task_container_assignment("t", "0"))
    assert line(mode) == f'7  set-task-container-assignment  t = {{"containerId":"0"}}{who}'
    piece, last = map(_stamped, JobPackageManager.messages(b"PK"))
    assert line(piece).endswith(f'/0 = {{"data":"4 characters of base64"}}{who}')
    assert line(last).endswith(f' = {{"pieces":"1","bytes":"2"}}{who}')
    assert line(wire.tombstone("set-config", "a")) == "7  set-config  a  deleted"
    assert line(None, "no JSON") == "7  damaged: no JSON"


def test_a_record_as_json_has_everything() -> None:
    """Secrets only on request; no values where the key is deleted."""

    def body(message: CoordinatorStreamMessage, *, show_secrets: bool) -> object:
        record = LoggedRecord(7, message)
        line = stream_commands.record_line(record, as_json=True, show_secrets=show_secrets)
        assert "\n" not in line
        return json.loads(line)

    common = {"offset": 7, "type": "set-config", "key": "a.token"}
    written = {"source": "job-runner", "host": "h1", "username": "u", "timestamp": 1_000}
    secret = _stamped(wire.set_config("a.token", "1"))
    assert body(secret, show_secrets=False) == common | written | {"values": {"value": "********"}}
    assert body(secret, show_secrets=True) == common | written | {"values": {"value": "1"}}
    deleted = body(wire.tombstone("set-config", "a.token"), show_secrets=False)
    unknown = {"source": "", "host": "", "username": "", "timestamp": 0}
    assert deleted == common | unknown | {"values": None}


def test_the_version_is_that_of_the_installation(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, for a report of an error; Python has the same."""
    homeport.run(["--version"])
    assert capsys.readouterr().out == f"homeport {metadata.version('homeport')}\n"
    assert __version__ == metadata.version("homeport")


@pytest.mark.parametrize(
    ("line", "word", "offered"),
    [
        ("homeport locali", 1, ["locality"]),
        ("homeport coordinator-stream ", 2, ["show", "tail"]),
        ("homeport explain --js", 2, ["--json"]),
        ("homeport nonsense --js", 2, []),
    ],
)
def test_a_shell_is_answered(
    line: str,
    word: int,
    offered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the variables that the script of bash sets; it goes no further."""
    monkeypatch.setenv(completion_command.VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(word))
    with pytest.raises(SystemExit, match="0"):
        homeport.run([])
    assert capsys.readouterr().out.split() == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It asks the tool by the variable."""
    monkeypatch.setenv(completion_command.VARIABLE, "")
    monkeypatch.delenv(completion_command.VARIABLE)
    with pytest.raises(SystemExit) as end:
        homeport.run(["completion", shell])
    assert not end.value.code
    assert f"{completion_command.VARIABLE}=complete_{shell}" in capsys.readouterr().out
