"""What a launcher has a witness write to Kafka. The witness is a shell that keeps its briefs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.container.launcher import stop_reporter as module
from homeport.container.launcher.stop_recorder import has_ended
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Stopped
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

FIRST, SECOND = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("0"), 2)
KILLED = Stopped(FIRST, StopCause.KILLED, -9)
LIMIT_S = 10.0


class _Am(CoordinatorClient):
    """An AM that only serves the configuration."""

    def __init__(self) -> None:
        super().__init__("http://am:1/", None)

    def config(self) -> dict[str, str]:
        return {"job.name": "flights"}


class _Witnessed:
    """A testimony, the clock that it looks at, and what its witnesses were briefed with."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = 1_000_000
        self._briefs = folder / "briefs"
        self._briefs.mkdir()
        keep = f"cat > {self._briefs}/$$"
        self.reporter = module.StopReporter(1000, ("/bin/sh", "-c", keep))

    def briefs(self) -> list[dict[str, Any]]:
        self.wait()
        return [json.loads(file.read_text()) for file in self._briefs.iterdir()]

    def wait(self) -> None:
        for recorder in self.reporter._recorders:
            recorder.wait(LIMIT_S)


@pytest.fixture(name="unprepared")
def _unprepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Witnessed]:
    made = _Witnessed(tmp_path)
    monkeypatch.setattr(module, "boot_ms", lambda: made.now_ms)
    yield made
    made.wait()


@pytest.fixture(name="witnessed")
def _witnessed(unprepared: _Witnessed) -> _Witnessed:
    unprepared.reporter.prepare(_Am())
    return unprepared


def test_a_brief_names_the_incarnation_and_its_cause(witnessed: _Witnessed) -> None:
    """With how Kafka is reached; there is nothing left to wait for."""
    witnessed.reporter.of_stopped(KILLED)
    assert witnessed.briefs() == [
        {
            "config": {"job.name": "flights"},
            "processor_id": "0",
            "epoch": 1,
            "cause": "killed",
            "pid_fd": None,
            "wait_ms": 6000,
        }
    ]


def test_a_stop_is_written_once(witnessed: _Witnessed) -> None:
    """However often the launcher asks; the stop of another incarnation is written too."""
    for _ in range(3):
        witnessed.reporter.of_stopped(KILLED)
    witnessed.reporter.of_stopped(Stopped(SECOND, StopCause.FAILED, 1))
    assert sorted(brief["epoch"] for brief in witnessed.briefs()) == [1, 2]


def test_without_a_configuration_nothing_is_written(unprepared: _Witnessed) -> None:
    """No permit has come to this launcher: it does not know how Kafka is reached, and goes on."""
    unprepared.reporter.of_stopped(KILLED)
    assert unprepared.briefs() == []


def test_a_report_that_the_am_does_not_take_is_written_after_a_while(witnessed: _Witnessed) -> None:
    """Not at the first call that fails; an answer of the AM gives it its whole time again."""
    assert _told_once_more(witnessed) == []
    witnessed.now_ms += module._PATIENCE_MS - 1
    assert _told_once_more(witnessed) == []
    witnessed.reporter.is_answered()
    witnessed.now_ms += 1
    assert _told_once_more(witnessed) == []
    witnessed.now_ms += module._PATIENCE_MS
    assert len(_told_once_more(witnessed)) == 1


def test_a_stop_witness_leaves_nothing_open(witnessed: _Witnessed) -> None:
    """The brief, which may hold secrets, is the witness's alone."""
    witnessed.reporter.of_stopped(KILLED)
    descriptors = Path("/proc/self/fd")
    open_here = [str(link.readlink()) for link in descriptors.iterdir() if link.is_symlink()]
    assert [name for name in open_here if "homeport-brief" in name] == []


def _told_once_more(witnessed: _Witnessed) -> list[dict[str, Any]]:
    witnessed.reporter.is_unanswered(KILLED)
    return witnessed.briefs()


def test_a_process_has_ended_only_once_it_is_gone() -> None:
    """While it lives, the witness may not write that it has stopped (safety A4)."""
    waits_for_input = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waits_for_input, stdin=subprocess.PIPE) as child:
        pid_fd = os.pidfd_open(child.pid)
        try:
            assert has_ended(pid_fd, 0) is False
            child.kill()
            assert has_ended(pid_fd, 1000 * int(LIMIT_S)) is True
        finally:
            child.kill()
            os.close(pid_fd)
