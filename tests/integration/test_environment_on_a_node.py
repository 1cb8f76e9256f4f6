"""The program that joins an environment to the Python of a node."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.appmaster.environment.node import adopt

OWN = {
    "python": list(sys.version_info[:2]),
    "machine": platform.machine(),
    "glibc": [2, 17],
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An environment without packages, made for this machine."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "adopt.py").write_text(Path(adopt.__file__).read_text())
    (tmp_path / "environment.json").write_text(json.dumps(OWN))
    return tmp_path


def run(tree: Path) -> subprocess.CompletedProcess[str]:
    """The program, by the interpreter of the tests, as ``start`` runs it."""
    command = [sys.executable, "-I", "-S", str(tree / "adopt.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_afterwards_it_is_a_virtual_environment_of_the_interpreter(tree: Path) -> None:
    """The second run changes nothing, and leaves nothing half made."""
    for _ in range(2):
        assert run(tree).returncode == 0
    shown = subprocess.check_output(
        [str(tree / "bin" / "python"), "-c", "import sys; print(sys.prefix, sys.base_prefix)"],
        text=True,
    ).split()
    assert shown == [str(tree), sys.base_prefix]
    assert sorted(p.name for p in tree.iterdir()) == [
        "adopt.py",
        "bin",
        "environment.json",
        "pyvenv.cfg",
    ]
    assert [p.name for p in (tree / "bin").iterdir()] == ["python"]


@pytest.mark.parametrize(
    ("needed", "named"),
    [
        ({"python": [3, 9]}, "needs CPython 3.9 on"),
        ({"machine": "vax"}, "on vax with"),
        ({"glibc": [9, 99]}, "with glibc 9.99 or later; found CPython"),
    ],
)
def test_what_does_not_fit_is_one_line(tree: Path, needed: dict[str, object], named: str) -> None:
    """Host, what is needed, what was found, and the remedy; nothing is changed."""
    (tree / "environment.json").write_text(json.dumps(OWN | needed))
    done = run(tree)
    assert done.returncode == adopt.EX_CONFIG
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"host {platform.node()}: ")
    assert named in line
    assert f"{platform.python_version()} ({sys.executable})" in line
    assert line.endswith("pack the environment on a machine like it (homeport pack)")
    assert not list((tree / "bin").iterdir())
