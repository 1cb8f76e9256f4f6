"""``homeport completion``, in a real bash at a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_LIMIT_S = 30.0
_READY = "ready> "
_ERASE_LINE = "\x15"


class Terminal:
    """A bash that believes a person types."""

    def __init__(self) -> None:
        self._shown = ""
        programs = Path(sys.executable).parent
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "TERM": "dumb", "PS1": _READY}
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)  # noqa: S606, S607 - becoming bash is the purpose
        self.shown_until(_READY)

    def type(self, keys: str) -> None:
        """As from a keyboard."""
        os.write(self._file, keys.encode())

    def shown_until(self, text: str) -> str:
        """What has come to the screen since the last call, to the end of ``text``."""
        deadline = time.monotonic() + _LIMIT_S
        while text not in self._shown:
            left = deadline - time.monotonic()
            assert left > 0, self._shown
            if select.select([self._file], [], [], left)[0]:
                self._shown += os.read(self._file, 65536).decode()
        before, _, self._shown = self._shown.partition(text)
        return before + text

    def close(self) -> None:
        """The shell is gone."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._file)


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    """One in which the script of bash has been read."""
    opened = Terminal()
    try:
        opened.type('eval "$(homeport completion bash)"; echo d"on"e\n')
        opened.shown_until("done")
        opened.shown_until(_READY)
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("homeport loca\t\t\t", "locality"),
        ("homeport local kill-node-m\t", "kill-node-manager "),
        ("homeport local up --zo\t", "--zookeeper "),
        ("homeport local up --scheduler ca\t", "capacity "),
        ("homeport coordinator-stream ta\t", "tail "),
        ("homeport explain --js\t", "--json "),
    ],
)
def test_a_word_is_completed(terminal: Terminal, typed: str, completed: str) -> None:
    """Commands, those below them, options, and the values that an option can have."""
    terminal.type(f"{_ERASE_LINE}{typed}")
    assert completed in terminal.shown_until(completed)
