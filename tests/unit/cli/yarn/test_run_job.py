"""What run-job says: of an end, of written keys, of what a running job waits for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from jobs_at_hand import job_at_hand, written
from small_jobs import KEYS
from statuses import status_of

from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.cli.yarn import run_job, waiting
from homeport.cli.yarn.application import end_of
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.run_job import await_end, with_written_keys
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError


def _ended(diagnostics: str) -> Application:
    return Application("application_1_1", "a_1", "FINISHED", "FAILED", diagnostics, "", "", 0)


def test_short_diagnostics_are_one_line_in_full() -> None:
    """Line breaks of YARN become spaces."""
    assert end_of(_ended("processor 1 failed\n  twice\n")) == (
        "application_1_1 ended as UnsuccessfulFinish (FAILED): processor 1 failed twice"
    )
    assert end_of(_ended("")) == "application_1_1 ended as UnsuccessfulFinish (FAILED)"


def test_long_diagnostics_keep_their_start_and_end() -> None:
    """YARN reports an attempt in many lines: the failure comes first, its message last."""
    lines = "\n".join(f"line {n}" for n in range(20))
    assert end_of(_ended(f"application failed\n2 times\n{lines}\nexit code 3")) == (
        "application_1_1 ended as UnsuccessfulFinish (FAILED): "
        "application failed 2 times ... exit code 3"
    )


class _Rest(ResourceManagerRest):
    def __init__(self, *answers: Application | None) -> None:
        super().__init__((), "nowhere")
        self.answers = list(answers)

    def application(self, application_id: str) -> Application | None:
        assert application_id == "application_1_1"
        answer = self.answers.pop(0)
        if answer is None:
            raise UnavailableError("the ResourceManager does not answer")
        return answer


def test_a_resource_manager_that_is_away_says_nothing_of_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job goes on without it: it is waited for, for minutes."""
    runs = replace(_ended(""), state="RUNNING")
    monkeypatch.setattr(waiting, "_POLL_S", 0)
    job = Job(Config(), _Rest(runs, None, None, _ended("")), Config())
    assert await_end(job, runs, None) == _ended("")
    monkeypatch.setattr(run_job, "_SILENCE_S", 0.0)
    with pytest.raises(UnavailableError, match="the ResourceManager does not answer"):
        await_end(Job(Config(), _Rest(None), Config()), runs, None)


def _resubmitted(config: Config, key: str, value: str) -> Config:
    """What is submitted of a job for which the writer tool has set the key."""
    stream = written(**{key: value})
    return with_written_keys(job_at_hand(config, stream)).config


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1" + "0" * 5_000, "3600000", "nan"])
def test_a_resubmission_with_a_number_out_of_its_range_is_refused(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the key; the note above it says how the value is taken back."""
    key = "job.coordinator.catch-up.interval.ms"
    with pytest.raises(ConfigError) as refused:
        _resubmitted(Config(KEYS), key, value)
    line = str(refused.value)
    assert line.startswith(f"{key} = '{value[:40]}")
    assert len(line) < 500
    assert f"homeport config set {key} --delete takes it back" in capsys.readouterr().err


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
def test_run_job_runs_nothing_that_the_stream_alone_names(key: str, value: str) -> None:
    """Its writer has no say on this machine; what the file has too is taken."""
    with pytest.raises(ConfigError, match="from the properties file alone") as refused:
        _resubmitted(Config(KEYS), key, value)
    assert str(refused.value).startswith(f"{key} = ")
    same = Config({**KEYS, key: value})
    assert _resubmitted(same, key, value) == same


def test_a_tool_makes_no_other_job_of_a_submission() -> None:
    """A name that was written into the stream would be that of another stream."""
    with pytest.raises(ConfigError, match=r"job\.name = 'other'.*config set job\.name --delete"):
        _resubmitted(Config(KEYS), "job.name", "other")


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"waiting": {"says": "waiting for 1 container"}}, "waiting for 1 container\n"),
        ({"waiting": None}, ""),
        ({}, ""),
    ],
)
def test_the_sentence_of_the_am_is_said(
    status: dict[str, Any],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On standard error, as standard output has Samza's word alone; an older AM says nothing."""
    running = SimpleNamespace(client=SimpleNamespace(status=lambda: status_of(status)))
    monkeypatch.setattr(waiting, "require_running", lambda _: running)
    waiting.log_shortage(Config({}))
    assert capsys.readouterr() == ("", line)


def test_an_am_that_does_not_answer_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is YARN's word, and that was said."""

    def away(_: Config) -> None:
        raise UnavailableError("nobody")

    monkeypatch.setattr(waiting, "require_running", away)
    waiting.log_shortage(Config({}))
    assert capsys.readouterr() == ("", "")
