"""Clones that share an engine: what one of them still needs, another does not stop."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from docker_cluster import engine

BASH = shutil.which("bash") or ""


def test_an_engine_in_use_is_not_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone that still fetches has no container yet; afterwards the engine may end."""
    socket = engine._socket(tmp_path)
    socket.parent.mkdir(parents=True)
    socket.touch()
    monkeypatch.setattr(engine.Engine, "call", lambda *_, **__: pytest.fail("it asks the engine"))
    with engine.in_use(tmp_path), engine.in_use(tmp_path):
        engine.stop_own(tmp_path, print)
    assert socket.exists()
    with pytest.raises(pytest.fail.Exception, match="it asks the engine"):
        engine.stop_own(tmp_path, print)


def test_an_engine_is_found_by_its_folder_whatever_its_pid_file_says(tmp_path: Path) -> None:
    """An engine that ends late removes the pid file of its successor: that one must end too.

    A program of that name that takes no notice of SIGTERM is killed; one of another folder stays.
    """
    own, other = tmp_path / "engine", tmp_path / "other"
    script = "trap '' TERM; echo ready; while :; do read -t 9 <> <(:) || :; done"
    started = [
        subprocess.Popen(
            [BASH, "-c", f'exec -a dockerd bash -c "$0" {where}/data', script],
            stdout=subprocess.PIPE,
        )
        for where in (own, other)
    ]
    lines: list[str] = []
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        engine._end(own, lines.append, limit_s=0.2)
        assert started[0].wait(5) == -signal.SIGKILL
        assert started[1].poll() is None
        assert lines == ["our Docker engine did not end within 0.2 s: killing it"]
    finally:
        for process in started:
            process.kill()
            process.communicate()
