"""CI on a machine that never ran it: set-up installs all that the tests need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from clean_machine import CleanMachine

from local_setup.prerequisites import WANTED

ROOT = Path(__file__).resolve().parents[2]
_USING = "test_completion or test_packet_rules or test_dashboard_page or test_travelling"
"""Modules that use the shells, iptables, the browser, Java with Spark; each skips without them."""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="another root is made by root"),
    pytest.mark.skipif(not shutil.which("debootstrap"), reason="debootstrap is not installed"),
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[CleanMachine]:
    """The machine; its files, some 4 GB, go with it."""
    root = tmp_path / "root"
    yield CleanMachine(root, ROOT)
    shutil.rmtree(root)


def test_ci_passes_there_and_skips_nothing(machine: CleanMachine, tmp_path: Path) -> None:
    """``.ci/run`` fails where a test is skipped; each program of the list is there afterwards."""
    log = tmp_path / "log"
    code = machine.run(".ci/run", "-k", _USING, log=log)
    printed = log.read_text(encoding="utf-8", errors="replace")
    assert code == 0, printed[-4000:]
    assert " skipped" not in printed.splitlines()[-1]
    for wanted in WANTED.values():
        found = [
            machine.run("bash", "-c", f"command -v {tool}", log=tmp_path / "found") == 0
            for tool in wanted.packages
        ]
        assert any(found) if wanted.is_any_enough else all(found), wanted
