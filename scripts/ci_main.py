"""What CI runs: scripts/test, then proof that nothing it started still runs. Run by .ci/run."""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
_CLOSING = re.compile(r"^=* ?((\d+ \w+|no tests ran)\b.* in [\d.]+s\b.*?) ?=*$")
_SKIPPED = re.compile(r"\b\d+ skipped\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below us become our children."""
_GRACE_SECONDS = 10.0
_NO_TESTS = 5
"""pytest's exit code for an empty selection."""

_ABOUT = """\
Runs scripts/test with the arguments given, as CI does, and then looks for processes that it left
behind, names and ends them. The last line is always pytest's closing line, or says in its place
that no tests ran and why. Exit code 0: everything passed, nothing was skipped, nothing was left."""


def _adopt_orphans() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class _Output(threading.Thread):
    """Passes the tests' output on and remembers pytest's closing line.

    A thread, because a process that was left behind may hold the pipe open for ever.
    """

    def __init__(self, lines: IO[str]) -> None:
        super().__init__(name="output", daemon=True)
        self._lines = lines
        self.closing = ""
        self.is_last = False

    def run(self) -> None:
        for line in self._lines:
            print(line, end="", flush=True)
            self.is_last = bool(_CLOSING.match(_COLOURS.sub("", line.strip())))
            if self.is_last:
                self.closing = line.rstrip()


def _start_tests(arguments: list[str]) -> subprocess.Popen[str]:
    tests = subprocess.Popen(
        [str(ROOT / "scripts" / "test"), *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        tests.send_signal(signal.SIGINT)

    # Ctrl-C reaches the tests by itself; we outlive it to look at what is left.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, pass_on)
    return tests


def _wait(tests: subprocess.Popen[str]) -> int:
    """Exit code of the tests; orphans that end meanwhile are reaped at once, as init would do.

    Else they would stay as zombies, and a test that looks whether a process has gone would find it.
    """
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == tests.pid:
            tests.returncode = os.waitstatus_to_exitcode(status)
            return tests.returncode


def _children() -> dict[int, str]:
    """Command lines of our living children, by process id; ended ones are reaped."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        if int(parent) != os.getpid():
            continue
        if state == "Z":
            os.waitpid(int(entry.name), os.WNOHANG)
        else:
            found[int(entry.name)] = words.strip()[:200] or entry.name
    return found


def _left_over() -> list[str]:
    """What the tests left running once they had time to go; it is ended here."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while (living := _children()) and time.monotonic() < deadline:
        time.sleep(0.1)
    stated = [f"{pid} {words}" for pid, words in living.items()]
    while living:  # those whose parent we end become ours, and are next
        for pid in living:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
        living = _children()
    return stated


def _complaints(code: int, closing: str, left: list[str]) -> list[str]:
    found = [f"left behind, and ended now: process {line}" for line in left]
    if code == _NO_TESTS:
        found.append("no test was selected, which proves nothing")
    if _SKIPPED.search(closing):
        found.append("tests were skipped, which proves nothing: pytest names them and says why")
    return found


def main() -> int:
    """Exit code: 0 if all tests passed, none was skipped and nothing was left behind."""
    usage = "%(prog)s [-h] [ARGUMENT OF scripts/test]..."
    parser = argparse.ArgumentParser(
        prog=".ci/run", usage=usage, description=_ABOUT, allow_abbrev=False
    )
    _, arguments = parser.parse_known_args()
    _adopt_orphans()
    tests = _start_tests(arguments)
    if tests.stdout is None:
        raise AssertionError("the tests were started with a pipe")
    output = _Output(tests.stdout)
    output.start()
    code = _wait(tests)
    left = _left_over()
    output.join(_GRACE_SECONDS)
    complaints = _complaints(code, output.closing, left)
    for line in complaints:
        print(f"error: {line}", flush=True)
    if not output.closing:
        print(f"===== no tests ran: scripts/test ended with code {code} before pytest =====")
    elif complaints or not output.is_last:
        print(output.closing)
    return code or (1 if complaints else 0)


if __name__ == "__main__":
    sys.exit(main())
