"""A test that hangs ends by itself, is named with its stacks, and the others run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import worker_groups

_PYTEST_READS = ("PYTEST", "CI", "BUILD_NUMBER", "COLUMNS")
"""Prefixes of names that change what pytest prints: with CI its summary has whole messages."""
_CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(worker_groups.__file__).parent)!r})
import hanging_tests
import pytest
from hanging_tests import (
    pytest_exception_interact, pytest_timeout_cancel_timer, pytest_timeout_set_timer
)
from worker_groups import GroupScheduling

def pytest_configure(config):
    hanging_tests.begin(config)

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return GroupScheduling(config, log)
"""
_HANGS = """
import threading

def test_before(): pass

def test_that_hangs(): threading.Event().wait()

def test_after(): pass
"""
_HANGS_AFTER_ITS_FAILURE = """
import threading
import pytest

@pytest.fixture
def cluster():
    yield
    threading.Event().wait()

def test_before(): pass

def test_that_hangs(cluster): assert False

def test_after(): pass
"""


@pytest.mark.search
@pytest.mark.parametrize(
    ("hangs", "frame", "failures"),
    [(_HANGS, "test_that_hangs", 1), (_HANGS_AFTER_ITS_FAILURE, "cluster", 2)],
    ids=["in the test", "in a fixture after a failure"],
)
def test_a_hang_is_one_failure_with_all_stacks(
    tmp_path: Path, hangs: str, frame: str, failures: int
) -> None:
    """Its worker ends; another one runs what is left of the group, and the hanging test no more."""
    (tmp_path / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 2\n")
    (tmp_path / "test_a.py").write_text(hangs, encoding="utf-8")
    for name in ("b", "c"):
        (tmp_path / f"test_{name}.py").write_text("def test_it(): pass\n", encoding="utf-8")
    options = ["-n", "2", "--dist", "loadscope", "-p", "no:cacheprovider", "--color=no"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if not k.startswith(_PYTEST_READS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    assert done.returncode == 1, done.stdout
    assert sum(line.endswith(f" in {frame}") for line in lines) == 1
    crash = "crashed while running 'test_a.py::test_that_hangs'"
    assert sum(crash in line for line in lines) == 1
    assert f"{failures} failed, 4 passed in " in lines[-1]
