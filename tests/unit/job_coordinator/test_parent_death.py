"""Children of a process that is killed: none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from homeport.job_coordinator.parent_death import run_child

PARENT = """
import sys
from pathlib import Path
from homeport.job_coordinator.parent_death import run_child
run_child([sys.executable, "-c", "import os, time; "
    "open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'child'); time.sleep(600)"], 600)
"""
LIMIT_S = 30.0


def test_a_child_dies_with_the_command_that_is_killed(tmp_path: Path) -> None:
    """By SIGKILL, of which the command hears nothing."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not (tmp_path / "child").exists():
            assert time.monotonic() < deadline
            assert parent.poll() is None
            time.sleep(0.01)
        child = os.pidfd_open(int((tmp_path / "child").read_text()))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    try:
        os.set_blocking(child, False)
        deadline = time.monotonic() + LIMIT_S
        while Path(f"/proc/{(tmp_path / 'child').read_text()}").exists():
            assert time.monotonic() < deadline, "it outlives its parent"
            time.sleep(0.01)
    finally:
        os.close(child)


def test_a_child_is_run_to_its_end(tmp_path: Path) -> None:
    """Its input, its variables, its folder; its output here or in a log."""
    script = ["/bin/sh", "-c", "cat; echo $A; pwd; echo oops >&2; exit 3"]
    done = run_child(script, 60, given=b"in ", environment={"A": "1"}, folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, b"oops\n")
    assert done.stdout == f"in 1\n{tmp_path}\n".encode()
    with (tmp_path / "log").open("wb") as log:
        assert run_child(script, 60, environment={"A": "1"}, log=log).stdout is None
    assert (tmp_path / "log").read_bytes().endswith(b"oops\n")


def test_a_child_is_killed_at_its_limit() -> None:
    """The caller goes on."""
    with pytest.raises(subprocess.TimeoutExpired):
        run_child(["/bin/sleep", "600"], 0.05)
