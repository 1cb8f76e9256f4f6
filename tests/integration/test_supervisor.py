"""The supervisor as a process of its own, over programs of a line each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from homeport.appmaster.attempt.supervision import SHORT_LIVES_LIMIT
from homeport.appmaster.programs.supervisor import DIAGNOSTICS_NAME, EXIT_HOPELESS

LIMIT_S = 120.0


def _supervised(driver: str, folder: Path) -> tuple[int, str]:
    """Exit code and log of a supervisor over a driver of this code."""
    code = (
        "import sys; from homeport.appmaster.programs import supervisor as s\n"
        f"s.PROGRAMS = {{'driver': (sys.executable, '-c', {driver!r})}}\n"
        "sys.exit(s.main())\n"
    )
    log = folder / "driver.log"
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=out,
            stderr=out,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                "LOG_DIRS": f"{folder},/elsewhere",
                "CONTAINER_ID": "container_1_0001_01_000001",
                "NM_HOST": "nm1",
            },
            timeout=LIMIT_S,
            check=False,
        )
    return done.returncode, log.read_text()


def test_exit_code_0_alone_is_no_end_of_the_application(tmp_path: Path) -> None:
    """A driver that has not said that the application has ended is started again.

    Code of the job's that the driver runs, or a library of it, may exit with 0.
    """
    driver = (
        "import os; from homeport.appmaster.attempt.heartbeat import Heartbeat\n"
        "beats = Heartbeat(os.environ)\n"
        "if beats.starts == 2: beats.report_ended()\n"
        "if beats.starts < 3: os._exit(0)\n"
        "os._exit(70)\n"
    )
    code, log = _supervised(driver, tmp_path)
    assert (code, log.count("the driver runs as pid")) == (0, 2)


def test_a_child_that_fails_at_every_start_ends_it_with_the_story(tmp_path: Path) -> None:
    """After so many starts; the cause, and no line of the log, is where YARN looks for it."""
    fails = (
        "import os; from homeport.appmaster.attempt.heartbeat import Heartbeat\n"
        "Heartbeat(os.environ).log_cause('no port\\nis free')\n"
        "raise ValueError('a secret')\n"
    )
    code, log = _supervised(fails, tmp_path)
    assert code == EXIT_HOPELESS
    assert log.count("ValueError: a secret") == SHORT_LIVES_LIMIT
    assert (tmp_path / DIAGNOSTICS_NAME).read_text() == (
        "the driver fails at every start: no port is free; its log is application.driver.log of "
        "container_1_0001_01_000001 on nm1\n"
    )
