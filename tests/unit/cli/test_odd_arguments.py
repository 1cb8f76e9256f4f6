"""Whatever stands on a command line: one line that says what is wrong, and never a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.cli import main as homeport
from homeport.cli.host.checkpoint_commands import milliseconds
from homeport.cli.job import coordinator_stream_writer
from homeport.cli.job.coordinator_stream_writer import WritableType, message_of
from homeport.cli.yarn import run_job
from homeport.config.errors import ConfigError
from homeport.container.progress.host_directories import duration_ms
from homeport.job_coordinator.coordinator_stream import message as wire

ODD = (
    *("", " ", "-1", "0", "1.5", "1e400", "nan", "inf", "true", "²", "٣", "0x10", "1_000"),
    *(str(10**400), str(-(10**400)), "7" * 5_000, str(2**31), str(2**63), "x" * 5_000),
)
COMMANDS = (
    ("homeport", "move", "0", "any", "--expiry-ms={}"),
    ("homeport", "move", "{}", "{}"),
    ("homeport", "restart", "{}"),
    ("homeport", "explain", "0", "--last={}"),
    ("homeport", "coordinator-stream", "tail", "--lines={}"),
    ("homeport", "checkpoint", "set", "--task=t", "--ssp=s.t.{}", "--offset={}"),
    ("homeport", "checkpoint", "set", "--task=t", "--ssp=s.t.0", "--timestamp={}"),
    ("homeport", "state", "dump", "s", "--task=t", "--limit={}"),
    ("homeport", "clean", "--older-than={}"),
    ("homeport", "job-model", "--version={}"),
    ("homeport", "config", "set", "job.coordinator.catch-up.interval.ms", "{}"),
    ("homeport", "what-if", "--host={}"),
    ("coordinator-stream-writer", "--type=set-config", "--key=task.commit.ms", "--value={}"),
    ("coordinator-stream-writer", "--type=set-changelog", "--key=Partition 0", "--value={}"),
    ("run-job", "--config=job.container.count={}"),
    ("run-job", "--config=cluster-manager.jobcoordinator.url.port={}"),
    ("run-job", "--config=task.commit.ms={}"),
)
MAINS: dict[str, Callable[[], None]] = {
    "homeport": homeport.main,
    "coordinator-stream-writer": coordinator_stream_writer.main,
    "run-job": run_job.main,
}
FILE = """\
job.name=j
job.default.system=kafka
systems.kafka.consumer.bootstrap.servers=
task.class=m:C
task.inputs=kafka.in
"""
"""Every command ends at the missing brokers, if not before: none asks anybody."""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_line_is_refused_in_one_line(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1 or 2, and a last line of the form of all errors."""
    path = tmp_path / "j.properties"
    path.write_text(FILE, encoding="utf-8")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for odd in ODD:
        name, *arguments = command
        given = [argument.replace("{}", odd) for argument in arguments]
        monkeypatch.setattr(sys, "argv", [name, *given, f"--config-path={path}"])
        with pytest.raises(SystemExit) as ended:
            MAINS[name]()
        stated = capsys.readouterr().err
        if isinstance(ended.value.code, str):
            stated += ended.value.code
        assert ended.value.code not in {0, None}
        assert stated.splitlines()[-1].startswith("error: ")
        assert "Traceback" not in stated


@pytest.mark.parametrize(
    "text", [str(10**400), "7" * 5_000, "253402300800000", "0001-01-01T00:00Z"]
)
def test_a_time_that_kafka_cannot_look_for_is_refused(text: str) -> None:
    """Before 1970, or after the year 9999."""
    with pytest.raises(ConfigError, match="--timestamp = "):
        milliseconds(text)
    assert milliseconds("253402300799999") == 253_402_300_799_999
    assert milliseconds("1970-01-01T00:00:00Z") == 0


@pytest.mark.search
@given(st.text() | st.sampled_from(ODD) | st.datetimes(timezones=st.timezones()).map(str))
def test_any_text_is_a_time_a_duration_a_partition_or_refused(text: str) -> None:
    """Each within its range."""
    with contextlib.suppress(ConfigError):
        at_ms = milliseconds(text)
        assert at_ms is not None
        assert 0 <= at_ms <= 253_402_300_799_999
    with contextlib.suppress(ConfigError):
        message = message_of(WritableType.SET_CHANGELOG, "Partition 0", text)
        assert 0 <= wire.changelog_partition(message) < 2**31
    length_ms = duration_ms(text)
    assert length_ms is None or 0 <= length_ms < 2**63
