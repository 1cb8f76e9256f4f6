"""``homeport completion``, in real shells at a terminal; zsh and fish where they are installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_LIMIT_S = 30.0
_READY = "ready> "
_ERASE_LINE = "\x15"
_SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "zsh, from a file": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i", "-C", f"function fish_prompt; echo '{_READY}'; end"],
}
_BY_EVAL = 'eval "$(homeport completion {shell})"'
_FROM_A_FILE = (
    'homeport completion zsh > "$HOME/_homeport"; fpath=("$HOME" $fpath); '
    'autoload -Uz compinit; compinit -u -d "$HOME/dump"'
)


class Terminal:
    """A shell that believes a person types."""

    def __init__(self, argv: list[str], home: Path) -> None:
        self._shown = ""
        programs = Path(sys.executable).parent
        path = f"{programs}:{os.environ['PATH']}"
        environment = {"PATH": path, "TERM": "dumb", "PS1": _READY, "HOME": str(home)}
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            os.execvpe(argv[0], argv, environment)  # noqa: S606 - becoming the shell is the purpose

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


@pytest.fixture(scope="module", params=_SHELLS)
def terminal(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Terminal]:
    """One in which the script of the shell has been read."""
    argv = _SHELLS[request.param]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    opened = Terminal(argv, tmp_path_factory.mktemp("home"))
    try:
        read = _FROM_A_FILE if "file" in request.param else _BY_EVAL.format(shell=argv[0])
        opened.type(f'{read}; echo d"on"e\n')
        opened.shown_until("done")
        opened.shown_until(_READY)  # zsh inserts a tab that was typed before its prompt
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("homeport localit\t", "locality "),
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
