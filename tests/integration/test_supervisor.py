"""The supervisor as a process of its own, over programs of a line each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.appmaster.attempt.supervision import SHORT_LIVES_LIMIT
from homeport.appmaster.programs.supervisor import DIAGNOSTICS_NAME, EXIT_HOPELESS

LIMIT_S = 120.0


def _supervised(
    program: str, folder: Path, name: str = "driver", before: str = ""
) -> tuple[int, str]:
    """Exit code and log of a supervisor over one program of that name and code.

    ``before``: code that runs in the supervisor's process first.
    """
    code = (
        "import sys; from homeport.appmaster.programs import supervisor as s\n"
        "from homeport.appmaster.attempt import supervision; supervision.SPARE_DELAY_MS = 0\n"
        f"s.PROGRAMS = {{{name!r}: (sys.executable, '-c', {program!r})}}\n"
        "sys.argv.append('--keeper-spare')\n"
        f"{before}\n"
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
        "beats.await_turn()\n"
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


def test_the_next_keeper_has_its_imports_done(tmp_path: Path) -> None:
    """The spare waits, unseen; it gets the number of its start and the port of the one before."""
    keeper = (
        "import os, sys, time; from homeport.appmaster.attempt.heartbeat import Heartbeat\n"
        "from pathlib import Path\n"
        "beats = Heartbeat(os.environ)\n"
        "comm = Path('/proc/self/comm')\n"
        "print('imported', flush=True)\n"
        "beats.await_turn()\n"
        "took = comm.read_text().strip() != 'spare'\n"
        # In one write: the supervisor logs into the same file.
        "print('turn %s %s %s\\n' % (beats.starts, beats.port, took), end='', flush=True)\n"
        "if beats.starts == 3: os._exit(70)\n"
        "beats.start()\n"
        "beats.send_port(4711 + beats.starts)\n"
        "us = os.getppid()\n"
        "children = Path(f'/proc/{us}/task/{us}/children')\n"
        # Nothing announces a spare to the process that it waits for.
        "name = lambda pid: Path(f'/proc/{pid}/comm').read_text()\n"
        "while 'spare\\n' not in map(name, children.read_text().split()): time.sleep(0.01)\n"
        "os._exit(1)\n"
    )
    code, log = _supervised(keeper, tmp_path, name="keeper")
    lines = [line for line in log.splitlines() if line.startswith(("imported", "turn"))]
    assert code == 1
    assert lines[::2] == ["imported"] * 3
    assert lines[1::2] == ["turn 1 None True", "turn 2 4712 True", "turn 3 4713 True"]
    assert log.count(", which was the spare") == 2


KEEPER = """
import os, signal, time; from homeport.appmaster.attempt.heartbeat import Heartbeat
# Nothing announces to the process what its supervisor has done: it looks in the log of both.
def await_line(text, count=1):
    while open('/proc/self/fd/1').read().count(text) < count: time.sleep(0.01)
beats = Heartbeat(os.environ)
print('imported', flush=True)
before = open('/proc/self/fd/1').read().count('imported') - 1
"""
SERVE = """
beats.await_turn()
beats.start()
beats.send_port(4711)
"""


def test_a_spare_that_hangs_at_its_turn_is_replaced_as_any_hung_child(tmp_path: Path) -> None:
    """It has its imports done: it does not have the time that they may take."""
    keeper = (
        f"{KEEPER}"
        "if before == 1:\n"
        "    beats.await_turn()\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        f"{SERVE}"
        "if before == 2: os._exit(70)\n"
        "await_line('imported', 2)\n"
        # It is named so when it waits, which nothing announces to this process.
        "us = os.getppid()\n"
        "children = open(f'/proc/{us}/task/{us}/children').read().split()\n"
        "spare = next(pid for pid in children if int(pid) != os.getpid())\n"
        "while open(f'/proc/{spare}/comm').read() != 'spare\\n': time.sleep(0.01)\n"
        "os._exit(1)\n"
    )
    never = "from homeport.appmaster.attempt import supervision; supervision.START_LIMIT_MS = 10**9"
    code, log = _supervised(keeper, tmp_path, "keeper", never)
    assert code == 1
    assert log.count("does not beat: killed") == 1
    assert log.count(", which was the spare") == 1


def test_a_spare_that_dies_is_replaced_by_one_that_serves(tmp_path: Path) -> None:
    """The log says with which code it has ended."""
    keeper = (
        f"{KEEPER}"
        "if before == 1: os._exit(9)\n"
        f"{SERVE}"
        "if before == 2: os._exit(70)\n"
        "await_line('imported', 3)\n"
        "os._exit(1)\n"
    )
    code, log = _supervised(keeper, tmp_path, "keeper", "s.SPARE_PAUSE_MS = 0")
    assert code == 1
    assert log.count("the spare of the keeper has ended with exit code 9") == 1
    assert log.count(", which was the spare") == 1


def test_a_spare_that_dies_is_not_replaced_at_once(tmp_path: Path) -> None:
    """What kills it may kill the next one: ten looks later there is none."""
    keeper = (
        f"{KEEPER}"
        "if before == 1: os._exit(9)\n"
        f"{SERVE}"
        "await_line('has ended with exit code 9')\n"
        "await_line('looked', 10)\n"
        "os._exit(70)\n"
    )
    looks = (
        "look = s.Child._look_at_spare\n"
        "def looked(child):\n"
        "    look(child)\n"
        "    if child._spare_at_ms: print('looked', flush=True)\n"
        "s.Child._look_at_spare = looked"
    )
    code, log = _supervised(keeper, tmp_path, "keeper", looks)
    assert (code, log.count("imported")) == (1, 2)


def test_a_keeper_goes_on_without_a_spare_that_cannot_be_started(tmp_path: Path) -> None:
    """A host may have no process left to give: the log says so once, however often it is tried."""
    keeper = f"{KEEPER}{SERVE}await_line('tried', 4)\nos._exit(70)\n"
    refuses = (
        "popen, s.SPARE_PAUSE_MS = s.subprocess.Popen, 0\n"
        "def tried(*arguments, **options):\n"
        "    print('tried', flush=True)\n"
        "    s.subprocess.Popen = refused\n"
        "    return popen(*arguments, **options)\n"
        "def refused(*arguments, **options):\n"
        "    print('tried', flush=True)\n"
        "    raise OSError(11, 'no process is left')\n"
        "s.subprocess.Popen = tried"
    )
    code, log = _supervised(keeper, tmp_path, "keeper", refuses)
    assert code == 1
    assert log.count("the keeper has no spare, which cannot be started") == 1


_PROGRAM = (
    "import os, sys; from pathlib import Path\n"
    "from homeport.appmaster.attempt.heartbeat import Heartbeat\n"
    "from homeport.appmaster.attempt.wanted_python import WantedPython\n"
    "beats = Heartbeat(os.environ)\n"
    "beats.await_turn()\n"
    "beats.start()\n"
    "beats.send_port(7)\n"
    "own = os.environ.get('HOMEPORT_PYTHON', '')\n"
    "print('start', beats.starts, 'in', own or 'its own', 'on', beats.port, flush=True)\n"
)


def _other(folder: Path, text: str) -> str:
    made = folder / "other-python"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return str(made)


def test_children_go_on_in_the_environment_that_the_driver_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Number and port go on; a child that serves gives way once its successor is ready."""
    monkeypatch.chdir(tmp_path)
    other = _other(tmp_path, f'exec {sys.executable} "$@"')
    driver = (
        f"if beats.starts == 1: WantedPython({other!r}).write(Path.cwd()); os._exit(1)\n"
        "import time\n"
        "while not Path('keeper-2').exists(): time.sleep(0.05)  # the keeper makes it\n"
        "beats.report_ended()\n"
        "os._exit(0)\n"
    )
    # It serves until the supervisor kills it.
    keeper = "import time\nPath(f'keeper-{beats.starts}').touch()\nwhile True: time.sleep(60)\n"
    programs = (
        f"s.PROGRAMS = {{'keeper': (sys.executable, '-c', {_PROGRAM + keeper!r}),"
        f" 'driver': (sys.executable, '-c', {_PROGRAM + driver!r})}}"
    )
    code, log = _supervised("", tmp_path, before=programs)
    assert code == 0
    assert "start 1 in its own on None" in log
    assert log.count(f"start 2 in {other} on 7") == 2
    assert "the keeper gives way to one of another environment" in log


def test_an_environment_in_which_a_child_always_fails_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt goes on in the environment of the submission."""
    monkeypatch.chdir(tmp_path)
    other = _other(tmp_path, "exit 1")
    driver = (
        f"if beats.starts == 1: WantedPython({other!r}).write(Path.cwd()); os._exit(1)\n"
        "beats.report_ended()\n"
        "os._exit(0)\n"
    )
    code, log = _supervised(_PROGRAM + driver, tmp_path)
    assert code == 0
    assert f"the driver fails at every start in {other}" in log
    assert f"start {SHORT_LIVES_LIMIT + 2} in its own on 7" in log
