"""The supervisor as a process of its own, over programs of a line each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from homeport.appmaster.runtime.supervision import SHORT_LIVES_LIMIT
from homeport.appmaster.runtime.supervisor import DIAGNOSTICS_NAME, EXIT_HOPELESS

LIMIT_S = 120.0


def test_a_child_that_fails_at_every_start_ends_it_with_the_story(tmp_path: Path) -> None:
    """After so many starts; cause and last lines are where YARN looks for diagnostics."""
    code = (
        "import sys; from homeport.appmaster.runtime import supervisor as s\n"
        "fails = (sys.executable, '-c', 'raise ValueError(\"what went wrong\")')\n"
        "s.PROGRAMS = {'driver': fails}\n"
        "sys.exit(s.main())\n"
    )
    log = tmp_path / "driver.log"
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=out,
            stderr=out,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                "LOG_DIRS": f"{tmp_path},/elsewhere",
            },
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == EXIT_HOPELESS
    assert log.read_text().count("ValueError: what went wrong") == SHORT_LIVES_LIMIT
    story = (tmp_path / DIAGNOSTICS_NAME).read_text()
    assert story.startswith("the driver fails at every start\n")
    assert "ValueError: what went wrong" in story
