"""The product on each other Python that ``setup.cfg`` names and this machine has."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest
from clusters_under_test import LocalUnderTest
from installations import ROOT, Installation
from new_jobs import made, run_by_its_readme
from other_pythons import installed, others
from suites import long

IMPORTS = """
import importlib, pkgutil, os, sys, homeport
sys.modules["distutils"] = None
from homeport.appmaster.yarn.skein_driver import import_skein
for module in pkgutil.walk_packages(homeport.__path__, "homeport."):
    importlib.import_module(module.name)
print(import_skein(os.environ).__version__)
"""
_CONTAINER = ("engine", "processing", "rocksdb", "serde", "spark", "test_callables.py")
UNIT = ("appmaster/yarn", "job", *(f"container/{name}" for name in _CONTAINER))
"""Unit tests of what meets user code, compiled packages, and Skein."""


VERSIONS = [*others()] or ["none"]
NEWEST = [*map(long, VERSIONS[:-1]), VERSIONS[-1]]
"""Those between it and our own are for ``scripts/test all``."""


@pytest.fixture(scope="module", params=NEWEST)
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An environment of one of them."""
    if not others():
        pytest.fail("this machine has no other Python that setup.cfg names: python3.12 or 3.13")
    return installed(request.param, tmp_path_factory.mktemp("other"))


def test_every_module_imports_and_skein_too(other: Installation, tmp_path: Path) -> None:
    """From the wheel, without the distutils that Python 3.12 has no more."""
    environment = {"HOMEPORT_CACHE_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [str(other.python), "-I", "-W", "error::SyntaxWarning", "-c", IMPORTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0.8.2\n"), done.stderr


def test_a_new_job_runs_on_yarn(
    other: Installation, cluster: LocalUnderTest, tmp_path: Path
) -> None:
    """run-local, run-job, status and kill by that Python, and so the job's processes."""
    name = f"totals-{uuid.uuid4().hex[:6]}"
    run_by_its_readme(made(tmp_path, name), cluster, other.python.parent)


@pytest.mark.parametrize("folders", [long(UNIT), long(("",))], ids=["processes", "all"])
def test_the_unit_tests_pass(other: Installation, folders: tuple[str, ...]) -> None:
    """Those of the tools of a clone are left out: setup.sh takes Python 3.11."""
    command = [str(other.python), "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    places = [f"tests/unit/{folder}" for folder in folders]
    chosen = ["-m", "not long and not search", "--ignore=tests/unit/scripts"]
    done = subprocess.run(
        [*command, *places, *chosen],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHON"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
