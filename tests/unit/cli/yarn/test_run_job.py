"""What run-job says: of an application that has ended, of keys that the writer tool has set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.cli.yarn import run_job, waiting
from homeport.cli.yarn.application import end_of
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.run_job import await_end, with_written_keys
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE


def ended(diagnostics: str) -> Application:
    """A failed application."""
    return Application("application_1_1", "a_1", "FINISHED", "FAILED", diagnostics, "", "", 0)


def test_short_diagnostics_are_one_line_in_full() -> None:
    """Line breaks of YARN become spaces."""
    assert end_of(ended("processor 1 failed\n  twice\n")) == (
        "application_1_1 ended as UnsuccessfulFinish (FAILED): processor 1 failed twice"
    )
    assert end_of(ended("")) == "application_1_1 ended as UnsuccessfulFinish (FAILED)"


def test_long_diagnostics_keep_their_start_and_end() -> None:
    """YARN reports an attempt in many lines: the failure comes first, its message last."""
    lines = "\n".join(f"line {n}" for n in range(20))
    assert end_of(ended(f"application failed\n2 times\n{lines}\nexit code 3")) == (
        "application_1_1 ended as UnsuccessfulFinish (FAILED): "
        "application failed 2 times ... exit code 3"
    )


class Rest(ResourceManagerRest):
    """Answers with ``answers``, one after the other."""

    def __init__(self, *answers: Application | None) -> None:
        super().__init__((), "nowhere")
        self.answers = list(answers)

    def application(self, application_id: str) -> Application | None:
        """None: it does not answer."""
        assert application_id == "application_1_1"
        answer = self.answers.pop(0)
        if answer is None:
            raise UnavailableError("the ResourceManager does not answer")
        return answer


def test_a_resource_manager_that_is_away_says_nothing_of_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job goes on without it: it is waited for, for minutes."""
    runs = replace(ended(""), state="RUNNING")
    monkeypatch.setattr(waiting, "_POLL_S", 0)
    job = Job(Config(), Rest(runs, None, None, ended("")), Config())
    assert await_end(job, runs, None) == ended("")
    monkeypatch.setattr(run_job, "_SILENCE_S", 0.0)
    with pytest.raises(UnavailableError, match="the ResourceManager does not answer"):
        await_end(Job(Config(), Rest(None), Config()), runs, None)


class RecordedJob(Job):
    """A job whose coordinator stream says what the writer tool has set."""

    written: tuple[str, str]

    def has_stream(self) -> bool:
        """It was submitted before."""
        return True

    @contextlib.contextmanager
    def stream(self) -> Iterator[Any]:
        """Read to its head."""
        stream = InMemoryCoordinatorStream(WRITER_SOURCE)
        stream.write([wire.set_config(*self.written)])
        stream.catch_up()
        yield stream


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1" + "0" * 5_000, "3600000", "nan"])
def test_a_resubmission_with_a_number_out_of_its_range_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the key; the note above it says how the value is taken back."""
    key = "job.coordinator.catch-up.interval.ms"
    monkeypatch.setattr(RecordedJob, "written", (key, value), raising=False)
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "systems.kafka.consumer.bootstrap.servers": "b:1",
            "task.class": "m:C",
            "task.inputs": "kafka.in",
        }
    )
    with pytest.raises(ConfigError) as refused:
        with_written_keys(RecordedJob(config, ResourceManagerRest((), ""), config))
    line = str(refused.value)
    assert line.startswith(f"{key} = '{value[:40]}")
    assert len(line) < 500
    assert f"--key {key} --delete takes it back" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("yarn.python.executable", "/tmp/evil.sh"),  # noqa: S108 - never run
        ("yarn.python.archive", "http://evil/e.tar.gz"),
        ("yarn.package.path", "http://evil/p.zip"),
        ("yarn.kerberos.keytab", "/etc/krb5.keytab"),
        ("task.class", "subprocess:Popen"),
        ("task.pipeline.sql", "SELECT reflect('java.lang.Runtime', 'getRuntime')"),
        ("task.spark.conf.spark.driver.extraJavaOptions", "-javaagent:/tmp/evil.jar"),
        ("systems.kafka.consumer.bootstrap.servers", "evil:9092"),
        ("systems.kafka.producer.plugin.library.paths", "/tmp/evil.so"),  # noqa: S108 - never opened
        ("stores.s.key.serde", "evil:Serde"),
    ],
)
def test_run_job_runs_nothing_that_the_stream_alone_names(
    key: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer has no say on this machine; what the file has too is taken."""
    monkeypatch.setattr(RecordedJob, "written", (key, value), raising=False)
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "systems.kafka.consumer.bootstrap.servers": "b:1",
            "task.class": "m:C",
            "task.inputs": "kafka.in",
        }
    )
    with pytest.raises(ConfigError, match="from the properties file alone") as refused:
        with_written_keys(RecordedJob(config, ResourceManagerRest((), ""), config))
    assert str(refused.value).startswith(f"{key} = ")
    same = config.merged({key: value})
    assert with_written_keys(RecordedJob(same, ResourceManagerRest((), ""), same)).config == same


def test_a_tool_makes_no_other_job_of_a_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that was written into the stream would be that of another stream."""
    monkeypatch.setattr(RecordedJob, "written", ("job.name", "other"), raising=False)
    config = Config({"job.name": "j", "job.default.system": "kafka"})
    with pytest.raises(ConfigError, match=r"job\.name = 'other'.*--key=job\.name --delete"):
        with_written_keys(RecordedJob(config, ResourceManagerRest((), ""), config))
